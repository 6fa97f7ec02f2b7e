"""The board puts itself back when its host never comes back.

`restore.json` holds what would put the board back, written before anything is changed. A small
process sleeps until the lease ends and then does that, once. It is no service: a reboot ends
it, and what was left undone is told to whoever asks next.
"""

import fcntl
import gc
import json
import os
import select
import signal
import time

import processes
from commands import Command
from lease import locked
from place import boot_time
from wire import RequestError, bytes_of, number_of, packed, read_json, texts_of, write_file

NAME = "watchdog"
"""The run id of the lease that the board holds while it puts itself back."""
WHOLE_S = 600.0
"""All steps together end by then: so long the board's own lease lasts."""
MOST_STEPS = 2000
BUSY_S = 1.0  # how often it looks whether the last payload has ended
SAID = 300


def checked_step(step):
    """One step with every field of the right type; RequestError otherwise."""
    if not isinstance(step, dict) or not texts_of(step, "argv"):
        raise RequestError("bad_request", "a step must be an object with an argv")
    bytes_of(step, "stdin")
    return {
        "argv": step["argv"],
        "needs_root": bool(step.get("needs_root")),
        "stdin": step.get("stdin", ""),
        "timeout_s": number_of(step, "timeout_s", 60.0),
        "expects": str(step.get("expects", "")),
        "may_fail": bool(step.get("may_fail")),
    }


class Restore:
    """`restore.json`, changed under the lease's lock; and the process that acts on it."""

    def __init__(self, place, lease, attempts):
        self._place, self._lease, self._attempts = place, lease, attempts
        self._path = place.work + "/restore.json"
        self._guard = place.work + "/watchdog.lock"

    def keep(self, run_id, steps):
        """Write the list of the run that holds the lease, and see that a process watches."""
        if len(steps) > MOST_STEPS:
            raise RequestError("bad_request", "more than {} steps".format(MOST_STEPS))
        checked = [checked_step(step) for step in steps]
        with locked(self._lease.path):
            lease = self._lease.show()
            if lease is None or lease["run_id"] != run_id:
                raise RequestError("bad_request", "run {} has no lease".format(run_id))
            self._write(
                {
                    "run_id": run_id,
                    "holder": lease["holder"],
                    "boot_id": lease["boot_id"],
                    "steps": checked,
                    "done": None,
                }
            )
            self._watch()

    def show(self):
        """What lies here, and whether a process watches over it; None without a list."""
        plan = self._read()
        if plan is not None:
            plan["is_watched"] = plan["done"] is None and self._is_watched()
        return plan

    def drop(self, run_id):
        """The board is as it was: forget the list. Not of this run is no error."""
        with locked(self._lease.path):
            plan = read_json(self._path)
            if plan is not None and plan.get("run_id") == run_id:
                os.unlink(self._path)
        self.wake()

    def wake(self):
        """Let the process look again: the lease was given back."""
        who = read_json(self._guard)
        if who is not None and processes.start_ticks(who.get("pid")) == who.get("start"):
            processes.kill_all([who["pid"]], signal.SIGUSR1)

    def _read(self):
        plan = read_json(self._path)
        fields = {"run_id", "holder", "boot_id", "steps", "done"}
        return plan if plan is not None and set(plan) == fields else None

    def _write(self, plan):
        write_file(self._path, json.dumps(plan).encode("ascii"), is_durable=True)

    def _is_watched(self):
        try:
            fd = os.open(self._guard, os.O_RDONLY)
        except OSError:
            return False
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(fd)
        return False

    def _watch(self):
        """Start the process unless there is one: it has the lock from us."""
        fd = os.open(self._guard, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            return
        pid = os.fork()
        if pid:
            os.close(fd)
            os.waitpid(pid, 0)
            return
        try:
            gc.disable()  # it would touch, and so copy, all pages that we share with the agent
            os.setsid()
            if os.fork() == 0:
                self._guard_board(_alone(fd))
        finally:
            os._exit(0)

    def _guard_board(self, guard):
        """What the process does: sleep, look, put back, end."""
        _announce(guard)
        wait_s = 0.0
        while wait_s is not None:
            if wait_s > 0:
                signal.sigtimedwait([signal.SIGUSR1], wait_s)
            with locked(self._lease.path):
                wait_s = self._wait_s()
                if wait_s is None:
                    os.close(guard)  # under the lease's lock: who comes next starts another
                    return
                if wait_s == 0:
                    plan = self._read()
                    self._lease.seize(NAME, "the board itself", WHOLE_S)
                    break
        _default_signals()
        done = _do(plan["steps"])
        with locked(self._lease.path):
            now = self._read()
            if now is not None and dict(now, done=None) == plan:
                self._write(dict(plan, done=done))
            self._lease.forget(NAME)
            os.close(guard)

    def _wait_s(self):
        """How long to sleep, 0 when it is time, None when there is nothing to watch over."""
        plan = self._read()
        if plan is None or plan["done"] is not None:
            return None
        if plan["boot_id"] != self._place.boot_id():
            return None
        lease = self._lease.show()
        if lease is not None:
            return max(0.01, lease["expires_s"] - boot_time())
        ids = self._attempts.all_ids()
        is_busy = any(self._attempts.is_alive(self._place.attempt(each)) for each in ids)
        return BUSY_S if is_busy else 0


def _do(steps):
    """Run all steps, each whatever the others did; what came of it."""
    begin = boot_time()
    record = {"time": time.time(), "t": begin, "results": []}
    for step in steps:
        left = begin + WHOLE_S - boot_time()
        result = _run(dict(step, timeout_s=min(step["timeout_s"], left)), left)
        record["results"].append(result)
    record["is_complete"] = all(one["is_good"] for one in record["results"])
    return record


def _run(step, left):
    status, said = None, "not run: the time was over"
    if left > 0:
        try:
            status, said = _run_command(Command(step))
        except (OSError, RequestError) as error:
            said = str(error)
    is_good = status == 0 if not step["expects"] else step["expects"] in said
    return {
        "argv": step["argv"],
        "exit_status": status,
        "said": packed(said.encode("utf-8")[-SAID:]),
        "is_good": is_good or step["may_fail"],
    }


def _run_command(command):
    """Its exit status (None: killed at its limit), and what it said."""
    poll = select.poll()
    for fd in command.pipes:
        poll.register(fd, select.POLLIN)
    while not command.is_over and boot_time() < command.deadline:
        for fd, _ in poll.poll(50):
            if not command.read(fd):
                poll.unregister(fd)
    if not command.is_over:
        command.kill()
        error = command.timeout_error()
        command.close()
        return None, error.text
    answer = command.answer()
    said = [bytes_of(answer, name).decode("utf-8", "replace") for name in ("stdout", "stderr")]
    return answer["exit_status"], "\n".join(said).strip()


def _alone(kept):
    """Let go of everything of the agent's but one descriptor, which is returned."""
    null = os.open("/dev/null", os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2 and int(name) != kept:
            try:
                os.close(int(name))
            except OSError:  # the folder's own descriptor, closed already
                continue
    os.chdir("/")
    return kept


def _announce(guard):
    """Tell by the lock file who we are, once a signal is kept for us."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
    who = {"pid": os.getpid(), "start": processes.start_ticks(os.getpid())}
    os.ftruncate(guard, 0)
    os.pwrite(guard, json.dumps(who).encode("ascii"), 0)


def _default_signals():
    """What we start from here on inherits neither a blocked nor an ignored signal."""
    signal.signal(signal.SIGUSR1, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGUSR1])
    for number in (signal.SIGPIPE, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
