"""The processes of simulated boards, found by the marks in their environment.

A process belongs to a board when its environment names the board and the board's root. That
holds for detached children too, so a power cut can end what no SSH session holds any more.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

_NS_PER_TICK = 10**9 // os.sysconf("SC_CLK_TCK")
_NS_PER_S = 10**9
_FOREIGN_AFTER_S = 2.0
_ENVIRON_LIMIT = 256 * 1024
_END_ROUNDS = 100
_END_PAUSE_S = 0.02
_BEGUN_NS = _NS_PER_S // 5  # what an interpreter takes to start, and more
_HARD_WORK = 0.8  # of a core, which it has or waits for
_NICENESS = 10  # a tenth of the share that others get of a core that all want


def board_marks(name: str, root: Path) -> dict[str, str]:
    """The environment variables that mark a board's processes."""
    return {"FARM_SIM_BOARD": name, "FARM_ROOT": str(root)}


@dataclass(frozen=True, slots=True)
class Process:
    """A process of a board; its resident memory in kB."""

    pid: int
    name: str
    resident_kb: int


@dataclass(slots=True)
class _Watched:
    """A board's live processes: pid to busy nanoseconds so far; and what they used of late."""

    marks: frozenset[bytes]
    busy_ns: dict[int, int] = field(default_factory=dict)
    busy_cores: float = 0.0


class BoardProcesses:
    """Watches all boards of one lab with one pass over /proc."""

    def __init__(self) -> None:
        self._boards: dict[str, _Watched] = {}
        self._foreign: dict[int, float] = {}
        self._last_s: float | None = None
        self._made_way: set[int] = set()

    def watch(self, name: str, root: Path) -> None:
        """Begin to watch a board's processes."""
        marks = board_marks(name, root)
        encoded = frozenset(f"{key}={value}".encode() for key, value in marks.items())
        self._boards[name] = _Watched(encoded)

    def busy_cores(self, name: str) -> float:
        """How many cores the board's processes kept busy between the last two passes."""
        return self._boards[name].busy_cores

    @property
    def count(self) -> int:
        """How many processes all boards have."""
        return sum(len(board.busy_ns) for board in self._boards.values())

    def refresh(self, now_s: float) -> None:
        """One pass: find new processes, forget ended ones, measure what keeps them busy.

        A process that waits for a core of this machine is busy too: a board has its cores
        for itself, however many boards share this machine.
        """
        seconds = now_s - self._last_s if self._last_s is not None else 0.0
        self._last_s = now_s
        pids = set(_pids())
        self._adopt(pids, now_s)
        for board in self._boards.values():
            used = 0
            for pid, before in list(board.busy_ns.items()):
                now = _busy_ns(pid) if pid in pids else None
                if now is None:
                    del board.busy_ns[pid]
                    self._made_way.discard(pid)
                    continue
                used += max(0, now - before)  # an ended thread takes its time with it
                board.busy_ns[pid] = now
                if seconds > 0 and now - before > _HARD_WORK * seconds * _NS_PER_S:
                    self._make_way(pid)
            board.busy_cores = used / _NS_PER_S / seconds if seconds > 0 else 0.0

    async def end(self, *names: str) -> None:
        """Kill every process of these boards, also such as begin meanwhile."""
        marks = {name: self._boards[name].marks for name in names}
        for _ in range(_END_ROUNDS):
            ended = 0
            for pid in _pids():
                entries = _environment(pid)
                if pid != os.getpid() and any(mark <= entries for mark in marks.values()):
                    _kill(pid)
                    ended += 1
            if not ended:
                break
            await asyncio.sleep(_END_PAUSE_S)
        for name in names:
            self._boards[name].busy_ns.clear()

    def signal(self, name: str, number: signal.Signals, *, look_again: bool = False) -> None:
        """Send a signal to the board's processes: those of the last pass, or all there are."""
        board = self._boards[name]
        if look_again:
            pids = [pid for pid in _pids() if board.marks <= _environment(pid)]
        else:
            pids = list(board.busy_ns)
        for pid in pids:
            if pid != os.getpid():
                _send(pid, number)

    def largest(self, name: str, mark: bytes) -> Process | None:
        """The process with the most memory among those with `mark` in their environment."""
        found = (
            _process(pid)
            for pid in self._boards[name].busy_ns
            if any(entry.startswith(mark) for entry in _environment(pid))
        )
        return max(filter(None, found), key=lambda one: one.resident_kb, default=None)

    def _make_way(self, pid: int) -> None:
        """Let a process that keeps a core busy step back, once; not one that just begins."""
        if pid not in self._made_way and (_cpu_ns(pid) or 0) >= _BEGUN_NS:
            self._made_way.add(pid)
            _step_back(pid)

    def _adopt(self, pids: set[int], now_s: float) -> None:
        """Give new processes to their boards.

        A process may be seen between fork and exec, when it still has its parent's
        environment: only what stayed foreign for a while is not asked again.
        """
        known = {pid for board in self._boards.values() for pid in board.busy_ns}
        seen_before = self._foreign
        self._foreign = {}
        for pid in pids - known:
            since_s = seen_before.get(pid, now_s)
            if now_s - since_s <= _FOREIGN_AFTER_S:
                entries = _environment(pid)
                owner = next((b for b in self._boards.values() if b.marks <= entries), None)
                if owner is not None:
                    owner.busy_ns[pid] = _busy_ns(pid) or 0
                    continue
            self._foreign[pid] = since_s


def is_alive(pid: int) -> bool:
    """Whether the process runs (a zombie does not)."""
    return _stat_fields(pid)[:1] not in ([], ["Z"], ["X"])


def _pids() -> Iterator[int]:
    return (int(name) for name in os.listdir("/proc") if name.isdigit())  # noqa: PTH208 -- hot


def _environment(pid: int) -> frozenset[bytes]:
    """The entries of the process's environment; none when it is gone or not ours to read."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123 -- hot: all processes
            return frozenset(file.read(_ENVIRON_LIMIT).split(b"\0"))
    except OSError:
        return frozenset()


def _stat_fields(pid: int) -> list[str]:
    """The fields of /proc/PID/stat from the state on; empty when the process is gone."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:  # noqa: PTH123
            return file.read().rpartition(")")[2].split()
    except OSError:
        return []


def _busy_ns(pid: int) -> int | None:
    """Time that its threads ran or waited for a core; None when the process has ended."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208 -- hot
    except OSError:
        return None
    total = 0
    for thread in threads:
        try:
            with open(f"/proc/{pid}/task/{thread}/schedstat", "rb") as file:  # noqa: PTH123
                ran, waited, *_ = file.read().split()
        except (OSError, ValueError):
            continue  # ended meanwhile, or a kernel without it
        total += int(ran) + int(waited)
    return total or _cpu_ns(pid)


def _cpu_ns(pid: int) -> int | None:
    """User and system time, in a clock tick's steps; None when the process has ended."""
    fields = _stat_fields(pid)
    if not fields or fields[0] in "ZX":
        return None
    return (int(fields[11]) + int(fields[12])) * _NS_PER_TICK


def _step_back(pid: int) -> None:
    """Let the lab, and who measures it, go first: meters that falter make trials suspect.

    Where the kernel shares cores among sessions first (autogroup), the session's niceness
    counts.
    """
    with contextlib.suppress(OSError):  # it has ended, or the kernel has no such groups
        niceness = max(_NICENESS, os.getpriority(os.PRIO_PROCESS, pid))
        os.setpriority(os.PRIO_PROCESS, pid, niceness)
        if os.getsid(pid) != os.getsid(0):
            Path(f"/proc/{pid}/autogroup").write_text(f"{_NICENESS}\n", encoding="ascii")


def _process(pid: int) -> Process | None:
    fields = _stat_fields(pid)
    if not fields or fields[0] in "ZX":
        return None
    with contextlib.suppress(OSError):
        name = Path(f"/proc/{pid}/comm").read_text("utf-8", "replace").strip()
        return Process(pid, name, int(fields[21]) * os.sysconf("SC_PAGE_SIZE") // 1024)
    return None


def _kill(pid: int) -> None:
    _send(pid, signal.SIGKILL)


def _send(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)
