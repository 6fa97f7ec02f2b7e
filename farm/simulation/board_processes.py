"""The processes of simulated boards, found by the marks in their environment.

A process belongs to a board when its environment names the board and the board's root. That
holds for detached children too, so a power cut can end what no SSH session holds any more.
"""

import asyncio
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_ENVIRON_LIMIT = 256 * 1024
_END_ROUNDS = 100
_END_PAUSE_S = 0.02


def board_marks(name: str, root: Path) -> dict[str, str]:
    """The environment variables that mark a board's processes."""
    return {"FARM_SIM_BOARD": name, "FARM_ROOT": str(root)}


@dataclass(slots=True)
class _Watched:
    """A board's live processes: pid to CPU ticks used so far; and what they used of late."""

    marks: frozenset[bytes]
    ticks: dict[int, int] = field(default_factory=dict)
    busy_cores: float = 0.0


class BoardProcesses:
    """Watches all boards of one lab with one pass over /proc."""

    def __init__(self) -> None:
        self._boards: dict[str, _Watched] = {}
        self._foreign: dict[int, int] = {}
        self._last_s: float | None = None

    def watch(self, name: str, root: Path) -> None:
        """Begin to watch a board's processes."""
        marks = board_marks(name, root)
        encoded = frozenset(f"{key}={value}".encode() for key, value in marks.items())
        self._boards[name] = _Watched(encoded)

    def busy_cores(self, name: str) -> float:
        """How many cores the board's processes kept busy between the last two passes."""
        return self._boards[name].busy_cores

    def refresh(self, now_s: float) -> None:
        """One pass: find new processes, forget ended ones, measure CPU use."""
        seconds = now_s - self._last_s if self._last_s is not None else 0.0
        self._last_s = now_s
        pids = set(_pids())
        self._adopt(pids)
        for board in self._boards.values():
            used = 0
            for pid, before in list(board.ticks.items()):
                ticks = _cpu_ticks(pid) if pid in pids else None
                if ticks is None:
                    del board.ticks[pid]
                    continue
                used += ticks - before
                board.ticks[pid] = ticks
            board.busy_cores = used / _TICKS_PER_S / seconds if seconds > 0 else 0.0

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
            self._boards[name].ticks.clear()

    def _adopt(self, pids: set[int]) -> None:
        """Give new processes to their boards.

        A process may be seen between fork and exec, when it still has its parent's
        environment: only what was foreign in three passes is not asked again.
        """
        known = {pid for board in self._boards.values() for pid in board.ticks}
        passes_before = self._foreign
        self._foreign = {}
        for pid in pids - known:
            passes = passes_before.get(pid, 0)
            if passes < 3:  # noqa: PLR2004 -- see above
                entries = _environment(pid)
                owner = next((b for b in self._boards.values() if b.marks <= entries), None)
                if owner is not None:
                    owner.ticks[pid] = _cpu_ticks(pid) or 0
                    continue
            self._foreign[pid] = passes + 1


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


def _cpu_ticks(pid: int) -> int | None:
    """User and system time in ticks, or None when the process has ended."""
    fields = _stat_fields(pid)
    if not fields or fields[0] in "ZX":
        return None
    return int(fields[11]) + int(fields[12])


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return
