"""Bring an attempt's files from the board into a folder: whole, hashed, durable."""

import asyncio
import errno
import functools
import hashlib
import os
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath

from farm.drivers.agent_answers import Answer
from farm.drivers.agent_channel import AgentChannel
from farm.errors import CommandTimeoutError, StoreError, StoreFullError, TransferError
from farm.interfaces.agent import AttemptExit
from farm.model.attempt import FileRecord

PIECE = 256 * 1024
IN_FLIGHT = 4
"""Pieces asked for at once: 1 MB on its way hides a round trip of 10 ms at 100 MB/s."""
PIECE_TIMEOUT_S = 60.0
FEW_FILES, FEW_BYTES = 16, 64 * 1024
"""So much is written in a fraction of a millisecond; to wake a thread takes as long."""
_STEP = "collect"


@functools.lru_cache(maxsize=1024)  # a run has the same few names in each attempt
def checked_path(path: str) -> PurePosixPath:
    """A path that stays inside the attempt's folder. Raises TransferError for any other."""
    pure = PurePosixPath(path)
    is_plain = str(pure) == path and path.isprintable() and "\\" not in path
    if not is_plain or pure.is_absolute() or ".." in pure.parts or path == ".":
        raise TransferError(_STEP, f"the board offers a file with a hostile path: {path!r}")
    return pure


async def collect(
    channel: AgentChannel, exited: AttemptExit, inline: Mapping[str, bytes], folder: Path
) -> tuple[FileRecord, ...]:
    """Write all files of `exited` below `folder`; contents in `inline` are not asked for again.

    Raises TransferError when a file is not what the exit record says, StoreError when this
    host cannot write it.
    """
    paths = [checked_path(file.path) for file in exited.files]
    if len(set(paths)) != len(paths):
        raise TransferError(_STEP, "the board lists a file twice")
    small: dict[PurePosixPath, bytes] = {}
    large: list[Path] = []
    for file, path in zip(exited.files, paths, strict=True):
        data = inline.get(file.path)
        if data is not None and len(data) == file.size:
            _check(file, hashlib.sha256(data).hexdigest())
            small[path] = data
        else:
            large.append(await _fetch(channel, exited.attempt_id, file, folder / path))
    try:
        if not large and len(small) <= FEW_FILES and sum(map(len, small.values())) <= FEW_BYTES:
            _commit(folder, small, large)  # quicker than to hand it to a thread
        else:
            await asyncio.to_thread(_commit, folder, small, large)
    except OSError as error:
        raise _not_kept(folder, error) from error
    return exited.files


def _not_kept(path: Path, error: OSError) -> StoreError:
    """This host cannot keep it. Asking the board again helps only once there is room."""
    kind = StoreFullError if error.errno in (errno.ENOSPC, errno.EDQUOT) else StoreError
    return kind(
        f"{path}: cannot write here: {error.strerror or error}. Nothing is lost: the board keeps "
        "the files until `farm resume` has them"
    )


def _check(file: FileRecord, sha256: str) -> None:
    if sha256 != file.sha256:
        raise TransferError(_STEP, f"{file.path} is not what the board recorded (hash)")


async def _fetch(channel: AgentChannel, attempt_id: str, file: FileRecord, target: Path) -> Path:
    """One large file to ``NAME.part``, several pieces asked for at once."""
    part = target.with_name(target.name + ".part")
    digest = hashlib.sha256()
    offsets = iter(range(0, file.size, PIECE))
    asked: deque[asyncio.Future[Answer]] = deque()
    try:
        part.parent.mkdir(parents=True, exist_ok=True)
        with part.open("wb") as out:
            for offset in offsets:
                asked.append(_ask(channel, attempt_id, file, offset))
                if len(asked) == IN_FLIGHT:
                    await _take(asked.popleft(), out.write, digest.update)
            while asked:
                await _take(asked.popleft(), out.write, digest.update)
            size = out.tell()
    except OSError as error:
        raise _not_kept(part, error) from error
    finally:
        for future in asked:
            if not future.cancel() and not future.cancelled():
                future.exception()  # seen: the first fault is the one that is told
    if size != file.size:
        raise TransferError(_STEP, f"{file.path} has {size} bytes, not {file.size}")
    _check(file, digest.hexdigest())
    return part


def _ask(
    channel: AgentChannel, attempt_id: str, file: FileRecord, offset: int
) -> asyncio.Future[Answer]:
    limit = min(PIECE, file.size - offset)
    fields = {"attempt": attempt_id, "path": file.path, "offset": offset, "limit": limit}
    return channel.post("read_file", **fields)[1]


async def _take(future: asyncio.Future[Answer], *sinks: Callable[[bytes], object]) -> None:
    try:
        async with asyncio.timeout(PIECE_TIMEOUT_S):
            data = (await future).data("data")
    except TimeoutError as error:
        raise CommandTimeoutError(_STEP, f"no data within {PIECE_TIMEOUT_S:g} s") from error
    for sink in sinks:
        sink(data)


def _commit(folder: Path, small: Mapping[PurePosixPath, bytes], large: list[Path]) -> None:
    """Write and rename everything. Whoever commits the attempt flushes it with all else."""
    folder.mkdir(parents=True, exist_ok=True)
    for part in large:
        part.replace(part.with_name(part.name.removesuffix(".part")))
    for path, data in small.items():
        if len(path.parts) > 1:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
        _write(f"{folder}/{path}", data)


def _write(path: str, data: bytes) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]
    finally:
        os.close(fd)
