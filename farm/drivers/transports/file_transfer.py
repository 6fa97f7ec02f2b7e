"""Files to and from a board over exec channels: no SFTP needed, nothing half done left.

A tar stream moves many small files 3 to 4 times faster than SFTP or scp (measured), and
dropbear has neither of them. What arrives lies in a temporary folder beside its place until
all hashes are right; then each file is renamed.
"""

import asyncio
import hashlib
import re
import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import IO

from farm.drivers.transports.file_scripts import GET, NO_TAR, PUT_CAT, PUT_TAR
from farm.drivers.transports.ssh_link import Link
from farm.drivers.transports.ssh_session import CommandSession
from farm.drivers.transports.tar_stream import digest_of, is_executable, pieces_of, tar_stream
from farm.errors import LinkLostError, TransferError

BUFFER_LIMIT = 8 * 1024 * 1024  # bytes received and not yet on our disk
FILE_LIMIT = 4 * 1024**3  # bytes of one file from a board: it must not fill our disk
_SAID_LIMIT = 500  # characters of the board's own words in a message

_DIGEST = re.compile(rb"([0-9a-f]{64})[^\n]*\s*\Z")


async def put_files(
    link: Link, files: Mapping[str, Path | bytes], folder: str, timeout_s: float
) -> None:
    """Write files below `folder`; see `Transport.put`. Raises TransferError and link errors."""
    step = f"put into {folder}"
    sources = _checked(files, link.board, step)
    if not sources:
        return
    transfer = _Upload(link, step, folder, time.monotonic() + timeout_s, timeout_s)
    status, said = await transfer.send(
        ("sh", "-c", PUT_TAR, "sh", folder, transfer.temporary), tar_stream(sources)
    )
    if status == NO_TAR:
        for name, source in sources.items():
            await _put_one(transfer, name, source)
    elif status:
        raise transfer.failed(said)


async def _put_one(transfer: "_Upload", name: str, source: Path | bytes) -> None:
    try:
        digest = await asyncio.to_thread(digest_of, source)
    except OSError as exc:
        raise transfer.unreadable(exc) from exc
    mode = "755" if is_executable(source) else "644"
    argv = ("sh", "-c", PUT_CAT, "sh", transfer.folder, transfer.temporary, digest, mode, name)
    status, said = await transfer.send(argv, pieces_of(source))
    if status:
        raise transfer.failed(f"{name}: {said}")


class _Upload:
    """Sends pieces to commands on the board, within one time limit."""

    def __init__(
        self, link: Link, step: str, folder: str, deadline_s: float, limit_s: float
    ) -> None:
        self.link, self.step, self.folder = link, step, folder
        self._deadline_s, self._limit_s = deadline_s, limit_s
        self.temporary = f".farm-put-{secrets.token_hex(6)}"

    async def send(self, argv: tuple[str, ...], pieces: Iterator[bytes]) -> tuple[int, str]:
        """Run argv with the pieces as its stdin; its status and what it printed to stderr."""
        said = bytearray()

        def keep(data: bytes) -> None:
            del said[_SAID_LIMIT * 4 :]
            said.extend(data)

        session = self.link.command(self.step, lambda _: None, keep)
        await self.link.start(session, argv, timeout_s=self._left_s())
        try:
            async with asyncio.timeout(self._left_s()):
                await self._feed(session, pieces)
        except TimeoutError as exc:
            await self.link.end(session)
            raise self.link.too_late(self.step, self._limit_s) from exc
        except BaseException:
            session.abort()  # the script's input ends, and it cleans up
            raise
        status = await self.link.finish(session, self._left_s(), self._limit_s)
        return status, _one_line(bytes(said))

    async def _feed(self, session: CommandSession, pieces: Iterator[bytes]) -> None:
        while True:
            try:
                piece = await asyncio.to_thread(next, pieces, b"")
            except OSError as exc:
                raise self.unreadable(exc) from exc
            if not piece or session.has_ended:
                break
            try:
                session.write(piece)
            except LinkLostError:
                return  # the script ended early; its status says why
            await session.drain()
        session.write_eof()

    def _left_s(self) -> float:
        return self._deadline_s - time.monotonic()

    def unreadable(self, exc: OSError) -> TransferError:
        """The error for a file of this host that cannot be sent."""
        return TransferError(
            self.step, f"a file of this host cannot be read: {exc}", board=self.link.board
        )

    def failed(self, said: str) -> TransferError:
        """The board's own words as an error."""
        return TransferError(
            self.step,
            said or "the board did not say why it failed",
            board=self.link.board,
            remedy=_remedy_for(said),
        )


def _remedy_for(said: str) -> str:
    low = said.lower()
    if "no space" in low or "quota" in low:
        return "Free space on the board, e.g. with `farm boards clean`"
    if "read-only" in low:
        return "The board's file system is read-only: it may need a check, or another work_dir"
    if "permission denied" in low:
        return "Choose a work_dir that the login user may write"
    return ""


def _checked(
    files: Mapping[str, Path | bytes], board: str, step: str
) -> Mapping[str, Path | bytes]:
    for name, source in files.items():
        path = PurePosixPath(name)
        is_plain = path.parts and not path.is_absolute() and ".." not in path.parts
        if not is_plain or str(path) != name or any(char in name for char in "\n\r\0"):
            raise TransferError(step, f"{name!r} is not a plain relative path", board=board)
        if isinstance(source, Path) and not source.is_file():
            raise TransferError(step, f"{source} is not a file on this host", board=board)
    return files


async def get_file(link: Link, path: str, target: Path, timeout_s: float) -> None:
    """Copy a file from the board; see `Transport.get`. Raises TransferError and link errors."""
    step = f"get {path}"
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(6)}")
    started = time.monotonic()
    try:
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with temporary.open("wb") as file:
                inflow = _Inflow(link, step, file)
                argv = ("sh", "-c", GET, "sh", path)
                await link.start(inflow.session, argv, timeout_s=timeout_s)
                inflow.session.write_eof()
                await inflow.pump(timeout_s - (time.monotonic() - started), timeout_s)
            await asyncio.to_thread(temporary.replace, target)
        except OSError as exc:
            raise TransferError(
                step, f"{target} cannot be written: {exc}", board=link.board
            ) from exc
    finally:
        with suppress(OSError):
            temporary.unlink()


class _Inflow:
    """What comes from the board, written down by a thread and hashed on the way."""

    def __init__(self, link: Link, step: str, file: IO[bytes]) -> None:
        self._link, self._step, self._file = link, step, file
        self._chunks: list[bytes] = []
        self._waiting = self._total = 0
        self._said = bytearray()
        self._digest = hashlib.sha256()
        self._is_news = asyncio.Event()
        self.session = link.command(step, self._take, self._hear)

    def _take(self, data: bytes) -> None:
        self._chunks.append(data)
        self._waiting += len(data)
        self._total += len(data)
        if self._total > FILE_LIMIT:
            self.session.abort()
        elif self._waiting > BUFFER_LIMIT:
            self.session.pause()
        self._is_news.set()

    def _hear(self, data: bytes) -> None:
        self._said += data
        del self._said[: -_SAID_LIMIT * 4]

    async def pump(self, left_s: float, limit_s: float) -> None:
        """Write until the end, then judge. Raises TransferError and link errors."""
        self.session.when_ended(self._is_news.set)
        try:
            async with asyncio.timeout(left_s):
                while not self.session.has_ended or self._chunks:
                    await self._is_news.wait()
                    self._is_news.clear()
                    chunks, self._chunks, self._waiting = self._chunks, [], 0
                    await asyncio.to_thread(self._write, chunks)
                    self.session.resume()
        except TimeoutError as exc:
            await self._link.end(self.session)
            raise self._link.too_late(self._step, limit_s) from exc
        finally:
            self.session.abort()
        self._judge()

    def _write(self, chunks: list[bytes]) -> None:
        for chunk in chunks:
            self._digest.update(chunk)
            self._file.write(chunk)
        self._file.flush()

    def _judge(self) -> None:
        if self._total > FILE_LIMIT:
            raise self._failed(f"the file is larger than {FILE_LIMIT} bytes")
        if self.session.status():
            raise self._failed(_one_line(bytes(self._said)))
        told = _DIGEST.search(self._said)
        if told is None or told[1].decode() != self._digest.hexdigest():
            raise self._failed("what arrived is not what the board has; is it being written?")

    def _failed(self, said: str) -> TransferError:
        return TransferError(self._step, said, board=self._link.board, remedy=_remedy_for(said))


def _one_line(said: bytes) -> str:
    text = said.decode("utf-8", "replace")
    return " ".join(text.split())[:_SAID_LIMIT]
