"""One process works on a run at a time. The lock goes with the process, also by kill -9.

Within one results folder the kernel's lock on a file decides. Hosts that share a database but
no folder are told apart by `farm.store.claims`.
"""

import fcntl
import json
import os
import secrets
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from farm.errors import RunHeldError
from farm.store.durable import make_folder
from farm.store.failures import file_errors
from farm.store.traces import host_boot_id

_TRIES = 10  # a look by `holder` takes the lock for an instant; that is not a run
_PAUSE_S = 0.02


@dataclass(frozen=True, slots=True)
class Holder:
    """The process that works on a run. `since` is UTC; "" and 0 if it could not be read.

    `boot_id` and `started` (clock ticks since boot) tell it from a later process of the same
    number; `token` tells apart what one process holds one after another.
    """

    host: str
    pid: int
    since: str
    boot_id: str = ""
    started: int = 0
    token: str = ""

    def __str__(self) -> str:
        return f"process {self.pid or '?'} on {self.host or '?'} since {self.since or '?'}"

    @property
    def is_here(self) -> bool:
        """Whether it runs, or ran, on this boot of this host."""
        return bool(self.boot_id) and (self.host, self.boot_id) == (
            socket.gethostname(),
            host_boot_id(),
        )

    @property
    def is_dead(self) -> bool:
        """Whether it surely lives no more: only what is of this boot of this host can be seen."""
        return self.is_here and process_start(self.pid) != self.started

    def to_json(self) -> str:
        """As it lies in lock files and in the database."""
        return json.dumps(asdict(self))


def this_process(now: datetime | None = None) -> Holder:
    """Ourselves."""
    since = (now or datetime.now(UTC)).isoformat(timespec="seconds")
    pid = os.getpid()
    return Holder(
        socket.gethostname(),
        pid,
        since,
        host_boot_id(),
        process_start(pid) or 0,
        secrets.token_hex(8),
    )


def process_start(pid: int) -> int | None:
    """When a process of this host began, in clock ticks since boot; None if there is none.

    A zombie counts as gone: it holds nothing any more.
    """
    try:
        text = Path(f"/proc/{pid}/stat").read_text("ascii", "replace")
        fields = text.rpartition(")")[2].split()
        return None if fields[0] in "ZX" else int(fields[19])  # proc(5): state is 3, start 22
    except (OSError, ValueError, IndexError):
        return None


@contextmanager
def locked(path: Path, what: str) -> Iterator[Holder]:
    """Hold the lock file; yields ourselves, as it tells.

    The file's time of change is a sign of life: see `beat`.

    Raises RunHeldError telling who has it, StoreError.
    """
    with file_errors(path):
        make_folder(path.parent)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        if not _take(descriptor, fcntl.LOCK_EX, _TRIES):
            raise RunHeldError(held_text(what, _read(path)))
        owner = this_process()
        with file_errors(path):
            _write(descriptor, owner)
        yield owner
    finally:
        # Closing frees the lock. The file stays: removing it would let a third process lock a
        # file that no longer has a name.
        os.close(descriptor)


def held_text(what: str, owner: Holder) -> str:
    """What to tell who finds a run taken."""
    where = "" if owner.host == socket.gethostname() else f" on {owner.host or 'its host'}"
    return (
        f"{what} is worked on by {owner}. `farm watch` shows it; wait for it, or end it with "
        f"`farm stop`{where}"
    )


def beat(path: Path) -> None:
    """Show that the holder lives, and its event loop turns. Works on a full disk."""
    with file_errors(path):
        os.utime(path)


def last_beat(path: Path) -> datetime | None:
    """When the lock was taken or `beat` last, UTC; None if never."""
    try:
        return datetime.fromtimestamp(path.stat().st_mtime, UTC)
    except OSError:
        return None


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
    os.pwrite(descriptor, owner.to_json().encode() + b"\n", 0)


def _read(path: Path) -> Holder:
    try:
        return read_holder(path.read_text("utf-8"))
    except (OSError, ValueError):
        return Holder("", 0, "")


def read_holder(text: str) -> Holder:
    """From `Holder.to_json`; unknown if it is nothing of the kind."""
    try:
        found = json.loads(text)
        return Holder(
            str(found["host"]),
            int(found["pid"]),
            str(found["since"]),
            str(found.get("boot_id", "")),
            int(found.get("started", 0)),
            str(found.get("token", "")),
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return Holder("", 0, "")
