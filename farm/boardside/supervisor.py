"""Runs one payload within its limits and writes down how it ended. Outlives the agent."""

import os
import select
import signal
import time

import processes
import records
from launch import STOP_MODE, STUCK_S, Payload
from output import BoundedLog
from place import boot_time
from wire import NO_SPACE

GRACE_S = 5.0  # between SIGTERM and SIGKILL
MEMORY_POLL_S = 0.2
DRAIN_S = 5.0  # an escaped process may hold the pipe and write for ever
SHUTDOWN_S = 0.2  # how long after the payload's SIGTERM our own may come at a shutdown
PIECE = 65536


class Supervisor:
    """One payload by an order of the agent's. `boot_id` is the board's present boot."""

    def __init__(self, order, boot_id, signals, is_reaper):
        self._order, self._boot_id, self._signals = order, boot_id, signals
        self._folder = order["folder"]
        self._is_reaper = is_reaper
        self.is_clean = True  # nothing of the payload is left
        self._poll = select.poll()
        self._logs = {}  # pipe -> BoundedLog
        self._names = {}  # pipe -> file name
        self._status = 0  # of the main process, once it has ended
        self._has_ended = False
        self._ended_by = ""
        self._message = ""
        self._kill_at = None
        self._pid = 0

    def run(self):
        """Everything: start, watch, end, record. The exit event, or None at a shutdown."""
        order = self._order
        payload = Payload(order["argv"], self._folder + "/work", order["environment"])
        for pipe, name in ((payload.stdout, "stdout.log"), (payload.stderr, "stderr.log")):
            log = BoundedLog(self._folder + "/" + name, order["output_limit"])
            self._logs[pipe] = log
            self._names[pipe] = name
            self._poll.register(pipe, select.POLLIN)
        self._poll.register(self._signals.wakeup, select.POLLIN)
        begin = boot_time()
        self._pid = payload.start()
        if self._pid:
            self._watch(begin)
        end = boot_time()
        self._end_leftovers()
        for pipe in list(self._logs):
            self._pump(pipe)
        if payload.fault:
            self._ended_by = "start"
            self._message = "{}: {}".format(order["argv"][0], payload.fault)
        payload.close()
        cuts = self._close_logs()
        if self._is_lost():
            return None
        return records.write_exit(self._folder, order, self._record(begin, end), cuts)

    def _is_stop_asked(self):
        """Whether the signal that came was meant for this attempt."""
        if not self._signals.is_stop_asked:
            return False
        self._signals.is_stop_asked = False
        return os.stat(self._folder + "/lock").st_mode & 0o777 == STOP_MODE

    def _watch(self, begin):
        """Until the main process ended."""
        limit = self._order["time_limit_s"]
        deadline = None if limit is None else begin + limit
        memory = self._order["memory_limit_mb"]
        next_memory = begin if memory is not None else None
        while not self._reap():
            now = boot_time()
            if self._is_stop_asked():
                self._begin_end("stop", "asked to stop")
            if self._kill_at is not None and now >= self._kill_at:
                self._kill(signal.SIGKILL)
                self._kill_at = now + 0.5  # again: a tree may grow while it is killed
            if deadline is not None and now >= deadline:
                deadline = None
                self._begin_end("timeout", "longer than {} s".format(limit))
            if next_memory is not None and now >= next_memory:
                next_memory = now + MEMORY_POLL_S
                self._check_memory(memory)
            self._wait(now, (deadline, next_memory, self._kill_at))

    def _wait(self, now, times):
        known = [at for at in times if at is not None]
        timeout = None if not known else max(0, int((min(known) - now) * 1000) + 1)
        for fd, _ in self._poll.poll(timeout):
            if fd == self._signals.wakeup:
                os.read(fd, 4096)
            else:
                self._pump(fd, is_once=True)

    def _pump(self, pipe, is_once=False):
        """Move bytes from a pipe to its log, one piece or all there is now."""
        log = self._logs[pipe]
        give_up = boot_time() + DRAIN_S
        while boot_time() < give_up:
            try:
                data = os.read(pipe, PIECE)
            except BlockingIOError:
                return
            if not data:
                if is_once:
                    self._poll.unregister(pipe)
                return
            self._keep(log, data)
            if is_once:
                return

    def _keep(self, log, data):
        if self._ended_by == "full":
            log.drop(data)
            return
        try:
            log.write(data)
        except OSError as error:
            self._begin_end("full" if error.errno in NO_SPACE else "start", str(error))
            self._kill(signal.SIGKILL)

    def _reap(self):
        """Collect what ended; True once the main process has."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return self._has_ended
            if pid == 0:
                return self._has_ended
            if pid == self._pid:
                self._status, self._has_ended = status, True

    def _begin_end(self, ended_by, message):
        """Ask the payload to end, once; the kill follows after the grace."""
        if self._ended_by:
            return
        self._ended_by, self._message = ended_by, message
        self._kill_at = boot_time() + GRACE_S
        self._kill(signal.SIGTERM)

    def _check_memory(self, limit_mb):
        used = processes.rss_bytes(processes.descendants(os.getpid()))
        if used > limit_mb * 1024 * 1024 and not self._ended_by:
            text = "{} MB resident, more than {} MB".format(used // (1024 * 1024), limit_mb)
            self._begin_end("memory", text)
            self._kill(signal.SIGKILL)

    def _tree(self):
        pids = set(processes.descendants(os.getpid()))
        if not self._is_reaper:
            pids.update(processes.marked(self._folder))
        return pids

    def _kill(self, number):
        processes.kill_all(self._tree(), number)

    def _end_leftovers(self):
        """Kill what the main process left behind, so that nothing disturbs the next trial."""
        give_up = boot_time() + STUCK_S
        while boot_time() < give_up:
            self._reap()
            if self._is_reaper and not _has_children():
                return
            left = self._tree()
            if not left and not self._is_reaper:
                return
            processes.kill_all(left, signal.SIGKILL)
            time.sleep(0.002)
        self.is_clean = False
        self._message = (self._message + "; some processes could not be killed").lstrip("; ")

    def _close_logs(self):
        """Write the tails; bytes left out by file name."""
        cuts = {}
        for pipe, log in self._logs.items():
            try:
                log.close()
            except OSError as error:
                self._ended_by, self._message = "full", str(error)
            cuts[self._names[pipe]] = log.cut_bytes
        return cuts

    def _is_lost(self):
        """The board is shutting down and took the payload: that is no word of the payload's."""
        if self._ended_by or not os.WIFSIGNALED(self._status):
            return False
        if os.WTERMSIG(self._status) == signal.SIGTERM and not self._signals.is_shutdown:
            time.sleep(SHUTDOWN_S)
        return self._signals.is_shutdown

    def _record(self, begin, end):
        exit_status = os.WEXITSTATUS(self._status) if os.WIFEXITED(self._status) else None
        number = os.WTERMSIG(self._status) if os.WIFSIGNALED(self._status) else None
        ended_by = self._ended_by or ("exit" if number is None else "signal")
        if ended_by == "exit" and exit_status and records.is_disk_full(self._folder):
            ended_by = "full"
            self._message = "exit status {} while the disk was full".format(exit_status)
        if ended_by == "start":
            exit_status = None
        return {
            "attempt_id": self._order["attempt_id"],
            "ended_by": ended_by,
            "exit_status": exit_status,
            "signal": number,
            "message": self._message,
            "begin_s": begin,
            "end_s": end,
            "boot_id": self._boot_id,
        }


def _has_children():
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True
