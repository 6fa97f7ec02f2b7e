"""Processes below a process, as /proc tells them, and signals to them."""

import os
import signal
from pathlib import Path


def descendants(pid: int) -> list[int]:
    """All processes below `pid`, its children first."""
    children = _children()
    found, todo = [], [pid]
    while todo:
        below = children.get(todo.pop(0), [])
        found += below
        todo += below
    return found


def state_of(pid: int) -> str:
    """The state letter of proc(5); "X" when it is gone."""
    return (_stat(pid) or ["X"])[0]


def send_signal(pid: int, number: signal.Signals) -> None:
    """Send a signal; a process that is gone is no error."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def _children() -> dict[int, list[int]]:
    children: dict[int, list[int]] = {}
    for path in Path("/proc").iterdir():
        if path.name.isdigit() and (stat := _stat(int(path.name))):
            children.setdefault(int(stat[1]), []).append(int(path.name))
    return children


def _stat(pid: int) -> list[str]:
    """Fields of proc(5)'s stat from the third (state) on; empty when it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []
