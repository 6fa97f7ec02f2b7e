"""Becoming: the supervisor from the agent, the payload from the supervisor."""

import gc
import os
import select
import signal
import subprocess
import sys
import time
import traceback

import processes

STUCK_S = 10.0  # how long killed processes may take to vanish
OOM_SCORE = b"500"
STOP_MODE = 0o744  # of the lock of an attempt that is to be stopped


def fork_supervisor(body, chore):
    """Run `body(orders, said)` in a process of a session of its own that outlives us.

    Between it and us stands a guard: the kernel gives it what a killed supervisor leaves,
    and it kills that. It does `chore()` as often as we write to it, so that we wait for no
    disk. When the agent goes, init inherits both, and nothing sends signals to their session.
    Returns the guard's pid, a pipe to the supervisor, one from it, which ends with it, and
    one to the guard. Raises OSError.
    """
    orders, to_orders = os.pipe()
    from_said, said = os.pipe()
    chores, to_chores = os.pipe()
    try:
        pid = os.fork()
    except OSError:
        for fd in (orders, to_orders, from_said, said, chores, to_chores):
            os.close(fd)
        raise
    if pid:
        for fd in (orders, said, chores):
            os.close(fd)
        os.set_blocking(to_chores, False)
        return pid, to_orders, from_said, to_chores
    try:
        gc.disable()  # it would touch, and so copy, all pages that we share with the agent
        os.setsid()
        _leave_agent({orders, said, chores})
        pid = os.fork()
        if pid == 0:
            os.close(chores)
            body(orders, said)
        else:
            os.close(orders)
            os.close(said)
            _guard(pid, chores, chore)
    finally:
        os._exit(0)


def _guard(supervisor, chores, chore):
    """Until its end; then kill what it left. Signals are for the supervisor, not for us."""
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGUSR1):
        signal.signal(number, signal.SIG_IGN)
    processes.become_subreaper()
    _do_chores(supervisor, chores, chore)
    give_up = time.monotonic() + STUCK_S
    while time.monotonic() < give_up:
        try:
            os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        processes.kill_all(processes.descendants(os.getpid()), signal.SIGKILL)
        time.sleep(0.002)


def _do_chores(supervisor, chores, chore):
    wakeup, inlet = os.pipe()
    os.set_blocking(inlet, False)
    signal.set_wakeup_fd(inlet)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    poll = select.poll()
    for fd in (wakeup, chores):
        poll.register(fd, select.POLLIN)
    while os.waitpid(supervisor, os.WNOHANG)[0] == 0:
        for fd, _ in poll.poll():
            if os.read(fd, 4096) and fd == chores:
                chore()
            elif fd == chores:  # the agent is gone
                poll.unregister(fd)


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


def note_crash(folder):
    """A fault of ours: keep its trace beside the attempt, which is then `lost`."""
    try:
        with open(folder + "/supervisor.log", "w") as file:
            traceback.print_exc(file=file)
    except OSError:
        sys.exc_info()


def programs(name, path):
    """Where a program may be by PATH: what can be executed, or all when nothing can."""
    if "/" in name:
        return [name]
    all_of_them = [(folder or ".") + "/" + name for folder in path.split(":")]
    return [each for each in all_of_them if os.access(each, os.X_OK)] or all_of_them


class Payload:
    """How to start the payload's main process, and the pipes from it."""

    def __init__(self, argv, cwd, environment):
        self._argv, self._cwd, self._environment = argv, cwd, environment
        self.stdout, self._stdout_in = os.pipe()
        self.stderr, self._stderr_in = os.pipe()
        for fd in (self.stdout, self.stderr):
            os.set_blocking(fd, False)
        self.fault = ""  # why it could not be started

    def start(self):
        """Start it; its pid, or 0 with a `fault`.

        No code of ours runs between fork and exec, so that Python may use vfork: forks
        that copy what they write to cost more than all else here.
        """
        try:
            with _oom_volunteer():
                process = subprocess.Popen(
                    self._argv,
                    executable=program(self._argv[0], self._environment),
                    stdout=self._stdout_in,
                    stderr=self._stderr_in,
                    cwd=self._cwd,
                    env=self._environment,
                    close_fds=False,  # all of ours close by themselves
                    start_new_session=True,
                )
        except OSError as error:
            self.fault = error.strerror or str(error)
            return 0
        finally:
            os.close(self._stdout_in)
            os.close(self._stderr_in)
        process.returncode = 0  # we wait for it, with all the others
        return process.pid

    def close(self):
        """Close the pipes."""
        os.close(self.stdout)
        os.close(self.stderr)


def program(name, environment):
    """Where PATH has a program, or its name."""
    if "/" not in name:
        for folder in environment.get("PATH", os.defpath).split(":"):
            path = folder + "/" + name
            if folder.startswith("/") and os.access(path, os.X_OK) and os.path.isfile(path):
                return path
    return name


class _oom_volunteer:
    """The kernel's OOM killer should take the payload rather than us or sshd.

    What we start meanwhile inherits it. One may raise it, and lower it again to where it was.
    """

    def __enter__(self):
        try:
            self._fd = os.open("/proc/self/oom_score_adj", os.O_RDWR)
            self._before = os.read(self._fd, 16)
            os.write(self._fd, OOM_SCORE)
        except OSError:  # a container without it
            self._fd = -1

    def __exit__(self, *_):
        if self._fd >= 0:
            os.write(self._fd, self._before)
            os.close(self._fd)
