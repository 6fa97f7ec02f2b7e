"""Processes of this board through /proc, and the prctl call that keeps a tree together."""

import os

from wire import read_whole

PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h; kernel 3.4
PAGE = os.sysconf("SC_PAGE_SIZE")

_prctl = None


def load_prctl():
    """Find prctl once, before the first fork: ctypes costs some ms to import."""
    global _prctl
    try:
        import ctypes

        _prctl = ctypes.CDLL(None).prctl
    except (ImportError, OSError, AttributeError):  # a Python without ctypes
        _prctl = None


def become_subreaper():
    """Orphans of our tree become our children. False where that is not possible."""
    return _prctl is not None and _prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0


def stat_fields(pid):
    """Fields of /proc/PID/stat after the name: state, parent, group, ...; None if gone."""
    try:
        return read_whole("/proc/{}/stat".format(pid)).rpartition(b")")[2].split()
    except OSError:
        return None


def start_ticks(pid):
    """When the process began, in clock ticks since boot; None if it is gone or a zombie."""
    fields = stat_fields(pid)
    if fields is None or fields[0] in (b"Z", b"X"):
        return None
    return int(fields[19])


def all_pids():
    """Every process id now."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def descendants(root):
    """Ids of all processes below `root`, zombies left out."""
    children = {}
    for pid in all_pids():
        fields = stat_fields(pid)
        if fields is not None and fields[0] not in (b"Z", b"X"):
            children.setdefault(int(fields[1]), []).append(pid)
    found, queue = [], [root]
    while queue:
        below = children.get(queue.pop(), [])
        found.extend(below)
        queue.extend(below)
    return found


def marked(folder):
    """Ids of processes whose environment names this attempt's folder: also those that left the tree.

    Not the attempt's id, which another work folder on this machine may have too.
    """
    mark = b"FARM_OUT=" + os.fsencode(folder) + b"/artifacts"
    found = []
    for pid in all_pids():
        try:
            with open("/proc/{}/environ".format(pid), "rb") as file:
                if mark in file.read().split(b"\0") and pid != os.getpid():
                    found.append(pid)
        except OSError:  # gone, or another user's
            continue
    return found


def rss_bytes(pids):
    """Resident memory of these processes. Shared pages count once for each process."""
    total = 0
    for pid in pids:
        try:
            with open("/proc/{}/statm".format(pid), "rb") as file:
                total += int(file.read().split()[1]) * PAGE
        except (OSError, IndexError):
            continue
    return total


def kill_all(pids, number):
    """Send a signal to each; those that are gone or not ours are passed over."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            continue
