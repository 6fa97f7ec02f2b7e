"""Runs one payload within its limits and writes down how it ended. Outlives the agent."""

import os
import select
import signal
import time

import processes
import records
from launch import Payload
from output import BoundedLog
from place import boot_time
from wire import NO_SPACE, write_all

GRACE_S = 5.0  # between SIGTERM and SIGKILL
STUCK_S = 10.0  # how long killed processes may take to vanish
MEMORY_POLL_S = 0.2
DRAIN_S = 5.0  # an escaped process may hold the pipe and write for ever
SHUTDOWN_S = 0.2  # how long after the payload's SIGTERM our own may come at a shutdown
PIECE = 65536


class Supervisor:
    """One payload. `job` is the host's, `boot_id` the board's present boot."""

    def __init__(self, folder, job, environment, boot_id):
        self._folder, self._job, self._boot_id = folder, job, boot_id
        self._environment = environment
        self._poll = select.poll()
        self._logs = {}  # pipe -> BoundedLog
        self._names = {}  # pipe -> file name
        self._status = None  # of the main process
        self._ended_by = ""
        self._message = ""
        self._kill_at = None
        self._is_shutdown = False
        self._is_stop_asked = False
        self._wakeup = -1
        self._is_reaper = False
        self._pid = 0

    def run(self, tell):
        """Everything: start, watch, end, record; the agent hears of the end by the pipe `tell`."""
        self._listen()
        self._is_reaper = processes.become_subreaper()
        payload = Payload(self._job["argv"], self._folder + "/work", self._environment)
        for pipe, name in ((payload.stdout, "stdout.log"), (payload.stderr, "stderr.log")):
            log = BoundedLog(self._folder + "/" + name, self._job["output_limit"])
            self._logs[pipe] = log
            self._names[pipe] = name
            self._poll.register(pipe, select.POLLIN)
        begin = boot_time()
        self._pid = payload.fork()
        self._watch(begin)
        end = boot_time()
        self._end_leftovers()
        for pipe in list(self._logs):
            self._pump(pipe)
        fault = payload.start_fault()
        if fault:
            self._ended_by, self._message = "start", "{}: {}".format(self._job["argv"][0], fault)
        cuts = self._close_logs()
        if self._is_lost():
            return
        event = records.write_exit(self._folder, self._job, self._record(begin, end), cuts)
        try:
            write_all(tell, event)
        except OSError:  # the agent is gone; who comes next reads exit.json
            return

    def _listen(self):
        """Signals wake the poll: SIGUSR1 is our stop, SIGTERM the board's shutdown."""
        self._wakeup, inlet = os.pipe()
        for fd in (self._wakeup, inlet):
            os.set_blocking(fd, False)
        signal.set_wakeup_fd(inlet)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGUSR1, self._note_signal)
        signal.signal(signal.SIGTERM, self._note_signal)
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGPIPE):
            signal.signal(number, signal.SIG_IGN)
        self._poll.register(self._wakeup, select.POLLIN)

    def _note_signal(self, number, _frame):
        if number == signal.SIGUSR1:
            self._is_stop_asked = True
        else:
            self._is_shutdown = True

    def _watch(self, begin):
        """Until the main process ended."""
        limit = self._job["time_limit_s"]
        deadline = None if limit is None else begin + limit
        memory = self._job["memory_limit_mb"]
        next_memory = begin if memory is not None else None
        while not self._reap():
            now = boot_time()
            if self._is_stop_asked:
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
            if fd == self._wakeup:
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
                return self._status is not None
            if pid == 0:
                return self._status is not None
            if pid == self._pid:
                self._status = status

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
            pids.update(processes.marked(self._job["attempt_id"]))
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
        if os.WTERMSIG(self._status) == signal.SIGTERM and not self._is_shutdown:
            time.sleep(SHUTDOWN_S)
        return self._is_shutdown

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
            "attempt_id": self._job["attempt_id"],
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
