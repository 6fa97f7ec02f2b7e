"""Processes that are none of ours and keep a core busy while an attempt runs.

One pass over /proc costs some milliseconds on a small board, so it is made every five
seconds only, and not at all while the cores together were idle.
"""

import os

from wire import read_whole

PASS_S = 5.0
OLDEST_S = 60.0  # an older pass is of another time
LEAST_PERCENT = 10.0  # of one core
MOST_TOLD = 3
KERNEL_THREAD = 0x00200000  # PF_KTHREAD, include/linux/sched.h
TICK_S = 1.0 / os.sysconf("SC_CLK_TCK")
FLAGS, UTIME, STIME, START = 6, 11, 12, 19  # of the fields after the name, proc(5)


class OtherLoad:
    """Compares two passes. `roots()` are the processes whose trees are ours."""

    def __init__(self, place, roots):
        self._proc, self._roots = place.rooted("/proc"), roots
        self._before, self._at, self._busy = {}, 0.0, 0.0
        self._kernel = set()  # threads of the kernel: they work for the payload too

    def look(self, now):
        """Busy foreign processes as (since, name, percent of a core), the busiest first."""
        span = now - self._at
        if span < PASS_S:
            return []
        busy = self._busy_s()
        is_fresh = span < OLDEST_S
        if is_fresh and (busy - self._busy) * 100 < LEAST_PERCENT * span:
            return []  # nothing was busy: the earlier pass still holds
        before, at = self._before, self._at
        self._before, self._at, self._busy = self._pass(), now, busy
        if not is_fresh:
            return []
        return [(at, name, percent) for percent, name in self._foreign(before, span)]

    def _busy_s(self):
        """User, nice and system time of all cores."""
        try:
            first = read_whole(self._proc + "/stat").split(b"\n", 1)[0].split()
            return sum(int(number) for number in first[1:4]) * TICK_S
        except (OSError, ValueError):
            return 0.0

    def _pass(self):
        """pid -> (start, parent, seconds, name) of every process but the kernel's."""
        found = {}
        try:
            pids = [name for name in os.listdir(self._proc) if name.isdigit()]
        except OSError:
            return found
        self._kernel.intersection_update(pids)
        for pid in pids:
            if pid in self._kernel:
                continue
            try:
                text = read_whole("{}/{}/stat".format(self._proc, pid))
            except OSError:  # it ended meanwhile
                continue
            head, _, rest = text.rpartition(b")")
            fields = rest.split()
            if len(fields) <= START:
                continue
            if int(fields[FLAGS]) & KERNEL_THREAD:
                self._kernel.add(pid)
                continue
            seconds = (int(fields[UTIME]) + int(fields[STIME])) * TICK_S
            found[int(pid)] = (fields[START], int(fields[1]), seconds, head.partition(b"(")[2])
        return found

    def _foreign(self, before, span):
        now, ours = self._before, set(self._roots())
        found = []
        for pid, (start, _, seconds, name) in now.items():
            known = before.get(pid)
            used = seconds - (known[2] if known is not None and known[0] == start else 0.0)
            percent = 100.0 * used / span
            if percent >= LEAST_PERCENT and not self._is_below(pid, ours):
                found.append((round(percent, 1), name.decode("ascii", "replace")[:32]))
        return sorted(found, reverse=True)[:MOST_TOLD]

    def _is_below(self, pid, roots):
        seen = set()
        while pid in self._before and pid not in seen:
            if pid in roots:
                return True
            seen.add(pid)
            pid = self._before[pid][1]
        return pid in roots
