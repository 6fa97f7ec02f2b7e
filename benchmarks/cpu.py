"""CPU time and memory of processes, from the kernel's own accounts."""

import os
import resource
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


def own_cpu_s() -> float:
    """User and system seconds of this process and its reaped children."""
    parts = (
        resource.getrusage(resource.RUSAGE_SELF),
        resource.getrusage(resource.RUSAGE_CHILDREN),
    )
    return sum(part.ru_utime + part.ru_stime for part in parts)


def own_rss_mb() -> float:
    """Resident memory of this process, in MB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE / 2**20


def tree_cpu_s(root: int) -> float:
    """User and system seconds of a live process tree, its reaped children included."""
    stats = _stats()
    return sum(stats[pid][1] for pid in _tree(root, stats) if pid in stats)


def tree_size(root: int) -> int:
    """How many processes live in the tree."""
    return len(_tree(root, _stats()))


def _stats() -> dict[int, tuple[int, float]]:
    """pid -> parent, CPU seconds: proc(5), fields 4 and 14 to 17."""
    stats = {}
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                rest = (path / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            stats[int(path.name)] = (int(rest[1]), sum(map(int, rest[11:15])) / _TICK)
    return stats


def _tree(root: int, stats: dict[int, tuple[int, float]]) -> list[int]:
    children: dict[int, list[int]] = {}
    for pid, (parent, _) in stats.items():
        children.setdefault(parent, []).append(pid)
    found, todo = [], [root]
    while todo:
        pid = todo.pop()
        found.append(pid)
        todo += children.get(pid, ())
    return found
