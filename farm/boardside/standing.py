"""Supervisors that stand by: each runs one attempt at a time, then waits for the next.

A supervisor outlives its agent while it runs an attempt, and ends with it otherwise. One that
stays saves each short trial a fork, with all the pages that both sides write to afterwards.
"""

import fcntl
import json
import os
import select
import signal

import launch
import processes
from supervisor import Supervisor
from wire import PIECE, compact, write_all

MOST_ATTEMPTS = 200
"""Then a supervisor ends: it collects no garbage, which would touch all that it shares."""
IDLE = b"idle\n"


class Supervisors:
    """The supervisors of one agent. `tell(attempt_id, event)` hears of ends.

    The event is a line of the protocol in the supervisor's own words, or None when it was
    killed or the board shuts down.
    """

    def __init__(self, agent, boot_id, sweeper, tell):
        self._agent, self._boot_id, self._tell = agent, boot_id, tell
        self._sweeper = sweeper
        self._standing = []
        self._environment = dict(os.environ, PYTHONDONTWRITEBYTECODE="1")
        self._idle = []
        self._ended = []  # pids of guards that may not have ended yet

    def begin(self, attempt_id, folder, order):
        """Have an attempt run. Raises OSError.

        Until its end we hold its lock too: it is never unlocked before the supervisor has it.
        """
        text = (compact(dict(order, folder=folder)) + "\n").encode("ascii")
        lock = os.open(folder + "/lock", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(lock, fcntl.LOCK_SH)
            one = self._ordered(text)
        except OSError:
            os.close(lock)
            raise
        one.attempt_id, one.lock = attempt_id, lock

    def _ordered(self, text):
        while self._idle:
            one = self._idle.pop()
            try:
                write_all(one.orders, text)
                return one
            except OSError:  # killed while it waited; the end of its pipe buries it
                continue
        one = _Standing(*launch.fork_supervisor(self._serve, self._sweeper.sweep))
        self._standing.append(one)
        self._agent.watch(one.said, lambda: self._read(one))
        write_all(one.orders, text)
        return one

    def sweep(self):
        """Have the trash removed, by a guard if there is one: it may wait for the disk."""
        for one in self._standing:
            try:
                os.write(one.chores, b"\n")
                return
            except BlockingIOError:  # it has been told often enough
                return
            except OSError:  # killed; the end of its pipe buries it
                continue
        self._sweeper.sweep()

    def _serve(self, orders, said):
        """What the new process does."""
        _stand_by(orders, said, self._environment, self._boot_id)

    def _read(self, one):
        data = os.read(one.said, PIECE)
        one.text += data
        if not data:
            self._bury(one)
        elif b"\n" in data:
            *lines, one.text = one.text.split(b"\n")
            for text in lines:
                if text + b"\n" == IDLE:
                    self._rest(one)
                else:
                    self._tell(one.release(), text + b"\n")

    def _rest(self, one):
        if self._idle:  # one is enough, unless attempts run side by side
            os.close(one.orders)
            one.orders = -1
        else:
            self._idle.append(one)

    def _bury(self, one):
        """It ended: nothing of it is left with us."""
        if one in self._idle:
            self._idle.remove(one)
        self._standing.remove(one)
        self._agent.forget(one.said)
        os.close(one.chores)
        if one.orders >= 0:
            os.close(one.orders)
        self._ended.append(one.pid)
        self._ended = [pid for pid in self._ended if os.waitpid(pid, os.WNOHANG)[0] == 0]
        if one.attempt_id is not None:
            self._tell(one.release(), None)


class _Standing:
    """One supervisor as its agent sees it."""

    def __init__(self, pid, orders, said, chores):
        self.pid, self.orders, self.said, self.chores = pid, orders, said, chores
        self.text = b""
        self.attempt_id = None
        self.lock = -1

    def release(self):
        """Its attempt ended; the attempt's id."""
        attempt_id, self.attempt_id = self.attempt_id, None
        os.close(self.lock)
        return attempt_id


class Signals:
    """Signals of a supervisor wake its polls: SIGUSR1 is our stop, SIGTERM the shutdown.

    None is ignored, because the payload would inherit that: its exec makes handlers default.
    """

    def __init__(self):
        self.is_stop_asked = False
        self.is_shutdown = False
        self.wakeup, inlet = os.pipe()
        for fd in (self.wakeup, inlet):
            os.set_blocking(fd, False)
        signal.set_wakeup_fd(inlet)
        for number in (signal.SIGUSR1, signal.SIGTERM):
            signal.signal(number, self._note)
        for name in ("SIGCHLD", "SIGHUP", "SIGINT", "SIGPIPE", "SIGXFSZ"):
            signal.signal(getattr(signal, name), _nothing)

    def _note(self, number, _frame):
        if number == signal.SIGUSR1:
            self.is_stop_asked = True
        else:
            self.is_shutdown = True


def _nothing(_number, _frame):
    """A signal that wakes us, or that is not for us."""


def _stand_by(orders, said, environment, boot_id):
    """Run what is ordered until the agent is gone."""
    signals = Signals()
    who = {"pid": os.getpid(), "start": processes.start_ticks(os.getpid())}
    is_reaper = processes.become_subreaper()
    for left in reversed(range(MOST_ATTEMPTS)):
        order = _next_order(orders, signals)
        if order is None:
            return
        folder = order["folder"]
        try:
            lock = _hold_lock(folder, who)
            order["environment"] = _merged(environment, order["environment"])
            supervisor = Supervisor(order, boot_id, signals, is_reaper)
            event = supervisor.run()
        except BaseException:
            launch.note_crash(folder)
            return
        if event is None:
            return
        is_last = left == 0 or signals.is_shutdown or not supervisor.is_clean
        try:
            write_all(said, event if is_last else event + IDLE)
        except OSError:  # the agent is gone; who comes next reads exit.json
            return
        if is_last:
            return
        os.close(lock)


def _next_order(orders, signals):
    """An order, or None when the agent is gone or the board shuts down."""
    poll = select.poll()
    for fd in (orders, signals.wakeup):
        poll.register(fd, select.POLLIN)
    text = b""
    while not text.endswith(b"\n"):
        ready = [fd for fd, _ in poll.poll()]
        if signals.wakeup in ready:
            os.read(signals.wakeup, 4096)
        if signals.is_shutdown:
            return None
        if orders in ready:
            data = os.read(orders, PIECE)
            if not data:
                return None
            text += data
    signals.is_stop_asked = True  # it may have been before we held the lock
    return json.loads(text.decode("ascii"))


def _merged(environment, additions):
    merged = dict(environment)
    merged.update(additions)
    return merged


def _hold_lock(folder, who):
    """Hold the lock from now on, and tell by it who we are."""
    lock = os.open(folder + "/lock", os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_SH)
    write_all(lock, compact(who).encode("ascii"))
    return lock
