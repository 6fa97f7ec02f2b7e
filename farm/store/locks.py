"""One process works on a run at a time. The lock goes with the process, also by kill -9."""

import fcntl
import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from farm.errors import RunHeldError
from farm.store.durable import make_folder
from farm.store.failures import file_errors

_TRIES = 10  # a look by `holder` takes the lock for an instant; that is not a run
_PAUSE_S = 0.02


@dataclass(frozen=True, slots=True)
class Holder:
    """The process that works on a run. `since` is UTC; "" and 0 if it could not be read."""

    host: str
    pid: int
    since: str

    def __str__(self) -> str:
        return f"process {self.pid or '?'} on {self.host or '?'} since {self.since or '?'}"


def this_process(now: datetime | None = None) -> Holder:
    """Ourselves."""
    since = (now or datetime.now(UTC)).isoformat(timespec="seconds")
    return Holder(socket.gethostname(), os.getpid(), since)


@contextmanager
def locked(path: Path, what: str) -> Iterator[None]:
    """Hold the lock file. Raises RunHeldError telling who has it, StoreError."""
    with file_errors(path):
        make_folder(path.parent)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        if not _take(descriptor, fcntl.LOCK_EX, _TRIES):
            raise RunHeldError(
                f"{what} is worked on by {_read(path)}. Wait for it, or end it with `farm stop`"
            )
        with file_errors(path):
            _write(descriptor, this_process())
        yield
    finally:
        # Closing frees the lock. The file stays: removing it would let a third process lock a
        # file that no longer has a name.
        os.close(descriptor)


def holder(path: Path) -> Holder | None:
    """Who holds the lock file, None if nobody does."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        if _take(descriptor, fcntl.LOCK_SH, 1):
            return None
        return _read(path)
    finally:
        os.close(descriptor)


def _take(descriptor: int, kind: int, tries: int) -> bool:
    for last in range(tries - 1, -1, -1):
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if last:
                time.sleep(_PAUSE_S)
        else:
            return True
    return False


def _write(descriptor: int, owner: Holder) -> None:
    os.ftruncate(descriptor, 0)
    text = json.dumps({"host": owner.host, "pid": owner.pid, "since": owner.since})
    os.pwrite(descriptor, text.encode() + b"\n", 0)


def _read(path: Path) -> Holder:
    try:
        found = json.loads(path.read_text("utf-8"))
        return Holder(str(found["host"]), int(found["pid"]), str(found["since"]))
    except (OSError, ValueError, KeyError, TypeError):
        return Holder("", 0, "")
