"""Becoming: the supervisor from the agent, the payload from the supervisor, by fork."""

import fcntl
import gc
import os
import signal
import sys
import traceback

import processes
from wire import compact, write_all


def open_lock(folder):
    """Open and hold `lock`: whoever holds it is the attempt's supervisor."""
    fd = os.open(folder + "/lock", os.O_RDWR | os.O_CREAT, 0o644)
    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return fd


def fork_supervisor(folder, body):
    """Run `body(pipe)` in a process of its own session that outlives us.

    One fork is enough: when the agent goes, init inherits the supervisor, and nothing
    sends signals to a session of its own. Returns its pid and the other end of the pipe,
    which ends with it.
    """
    lock = open_lock(folder)
    ended, held = os.pipe()
    try:
        pid = os.fork()
    except OSError:
        for fd in (ended, held, lock):
            os.close(fd)
        raise
    if pid:
        os.close(held)
        os.close(lock)
        return pid, ended
    try:
        gc.disable()  # it would touch, and so copy, all pages that we share with the agent
        os.setsid()
        _leave_agent({lock, held})
        write_all(lock, compact(identity()).encode("ascii"))
        body(held)
    except BaseException:
        _note_crash(folder)
    finally:
        os._exit(0)


def identity():
    """Who we are, so that a later agent signals us and nobody else."""
    return {"pid": os.getpid(), "start": processes.start_ticks(os.getpid())}


def _leave_agent(kept):
    """Let go of everything of the agent's: its channel would stay open otherwise."""
    null = os.open("/dev/null", os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    for name in os.listdir("/proc/self/fd"):
        fd = int(name)
        if fd > 2 and fd not in kept:
            try:
                os.close(fd)
            except OSError:  # the folder's own descriptor, closed already
                continue


def _note_crash(folder):
    """A fault of ours: keep its trace beside the attempt, which is then `lost`."""
    try:
        with open(folder + "/supervisor.log", "w") as file:
            traceback.print_exc(file=file)
    except OSError:
        sys.exc_info()


class Payload:
    """How to start the payload's main process, and the pipes from it."""

    def __init__(self, argv, cwd, environment):
        self._argv, self._cwd, self._environment = argv, cwd, environment
        self.stdout, self._stdout_in = os.pipe()
        self.stderr, self._stderr_in = os.pipe()
        self._fault, self._fault_in = os.pipe()  # closed by a successful exec
        for fd in (self.stdout, self.stderr, self._fault):
            os.set_blocking(fd, False)

    def fork(self):
        """Start it; its pid."""
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            try:
                self._become(parent)
            except BaseException as error:
                text = getattr(error, "strerror", None) or str(error)
                write_all(self._fault_in, text.encode("utf-8", "replace"))
            finally:
                os._exit(127)
        for fd in (self._stdout_in, self._stderr_in, self._fault_in):
            os.close(fd)
        return pid

    def start_fault(self):
        """Why it could not be started, or '' when it was."""
        try:
            return os.read(self._fault, 4096).decode("utf-8", "replace")
        except BlockingIOError:
            return ""
        finally:
            os.close(self._fault)

    def _become(self, parent):
        os.setsid()
        signal.set_wakeup_fd(-1)
        for number in (
            signal.SIGPIPE,
            signal.SIGHUP,
            signal.SIGINT,
            signal.SIGTERM,
            signal.SIGUSR1,
            signal.SIGCHLD,
        ):
            signal.signal(number, signal.SIG_DFL)
        processes.die_with_parent()
        if os.getppid() != parent:
            os._exit(127)
        _volunteer_for_oom()
        null = os.open("/dev/null", os.O_RDONLY)
        for source, target in ((null, 0), (self._stdout_in, 1), (self._stderr_in, 2)):
            os.dup2(source, target)
        os.chdir(self._cwd)
        os.execvpe(self._argv[0], self._argv, self._environment)


def _volunteer_for_oom():
    """The kernel's OOM killer should take the payload rather than us or sshd."""
    try:
        fd = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
        os.write(fd, b"500")
        os.close(fd)
    except OSError:  # a container without it
        return
