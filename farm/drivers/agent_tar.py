"""What a board lacks of a payload, as a tar stream; made once for all boards that want it now.

The members are named by their SHA-256. A fleet that begins a run asks for the same files at
about the same time: reading them and making the stream would cost each board's push again.
"""

import asyncio
import tarfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from farm.errors import TransferError
from farm.model.payload import Payload, PayloadFile

PIECE = 128 * 1024
"""Bytes of one write. Larger ones are new pages for each copy of them (measured: 10 % slower)."""
BATCH = 1024 * 1024
"""Bytes read by a thread at once: fewer changes between it and the event loop."""
SHARED_LIMIT = 64 * 1024 * 1024
"""Bytes that are kept in memory while boards are being sent to; more is read for each anew."""

_STEP = "push the payload"
_OCTAL_LIMIT = 8**11  # larger sizes need GNU's binary form
_END = b"\0" * (2 * tarfile.BLOCKSIZE)

_Key = tuple[Path, tuple[tuple[str, str], ...]]
_shared: dict[_Key, "TarFeed"] = {}


@asynccontextmanager
async def tar_of(payload: Payload, files: Sequence[PayloadFile]) -> AsyncIterator["TarFeed"]:
    """The stream, shared while anybody is inside with the same files."""
    key = payload.folder, tuple((file.sha256, file.path) for file in files)
    is_kept = sum(file.size for file in files) <= SHARED_LIMIT
    feed = _shared.get(key) or TarFeed(tar_pieces(payload, files), is_kept=is_kept)
    if is_kept:
        _shared[key] = feed
    feed.users += 1
    try:
        yield feed
    finally:
        feed.users -= 1
        if not feed.users:
            _shared.pop(key, None)
            await feed.close()


class TarFeed:
    """Pieces of a stream, read by a thread one batch ahead of who is furthest."""

    def __init__(self, source: Iterator[bytes], *, is_kept: bool) -> None:
        self.users = 0
        self._source, self._is_kept = source, is_kept
        self._pieces: list[bytes] = []
        self._reading: asyncio.Task[None] | None = None
        self._is_whole = False

    async def follow(self) -> AsyncIterator[bytes]:
        """All pieces from the first; once only if they are not kept. Raises TransferError."""
        at = 0
        while at < len(self._pieces) or not self._is_whole:
            if self._reading is None and not self._is_whole:
                self._reading = asyncio.create_task(self._read())
            pieces = self._pieces[at:]
            at = len(self._pieces)
            if not self._is_kept:
                self._pieces, at = [], 0
            for piece in pieces:
                yield piece
            if not pieces and self._reading is not None:
                # shielded: who gives up must not end it for the others
                await asyncio.shield(self._reading)

    async def _read(self) -> None:
        batch = await asyncio.to_thread(_batch, self._source)
        self._pieces += batch
        self._is_whole = not batch
        self._reading = None

    async def close(self) -> None:
        """Leave no thread reading."""
        if self._reading is not None:
            await asyncio.wait([self._reading])
            if not self._reading.cancelled():
                self._reading.exception()


def _batch(source: Iterator[bytes]) -> list[bytes]:
    pieces: list[bytes] = []
    held = 0
    while held < BATCH and (piece := next(source, b"")):
        pieces.append(piece)
        held += len(piece)
    return pieces


def tar_pieces(payload: Payload, files: Sequence[PayloadFile]) -> Iterator[bytes]:
    """A tar stream of the files, each named by its SHA-256, in pieces of about PIECE bytes.

    Raises TransferError when a file is not as long as when the payload was read.
    """
    parts: list[bytes] = []
    held = 0
    for file in files:
        parts.append(_header(file.sha256, file.size))
        for data in _contents(payload, file):
            parts.append(data)
            held += len(data)
            if held >= PIECE:
                yield b"".join(parts)
                parts, held = [], 0
        parts.append(b"\0" * (-file.size % tarfile.BLOCKSIZE))
    yield b"".join((*parts, _END))


def _header(name: str, size: int) -> bytes:
    """As `tarfile.TarInfo.tobuf` makes it, at a tenth of its cost."""
    if size >= _OCTAL_LIMIT:
        entry = tarfile.TarInfo(name)
        entry.size = size
        return entry.tobuf(tarfile.GNU_FORMAT)
    begin = b"%-100b0000644\0%b%011o\0%011o\0" % (name.encode("ascii"), b"0000000\0" * 2, size, 0)
    begin = begin.replace(b" ", b"\0")
    end = b"0".ljust(101, b"\0") + tarfile.GNU_MAGIC
    total = sum(begin) + 8 * 0x20 + sum(end)
    return (begin + b"%06o\0 " % total + end).ljust(tarfile.BLOCKSIZE, b"\0")


def _contents(payload: Payload, file: PayloadFile) -> Iterator[bytes]:
    left = file.size
    try:
        with (payload.folder / file.path).open("rb", buffering=0) as source:
            while data := source.read(PIECE):
                left -= len(data)
                if left < 0:
                    break
                yield data
    except OSError as error:
        raise TransferError(_STEP, f"cannot read {file.path}: {error}") from error
    if left:
        raise TransferError(_STEP, f"{file.path} changed while it was sent")
