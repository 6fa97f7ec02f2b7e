"""Short commands: argv, stdin, a time limit, output bounded; many may run at once."""

import contextlib
import errno
import fcntl
import os
import pty
import signal
import subprocess
import termios

from place import boot_time
from wire import RequestError, bytes_of, number_of, packed, texts_of

DEFAULT_LIMIT = 1024 * 1024
KILL_S = 5
LARGEST_LIMIT = 4 * 1024 * 1024
LONGEST_STDIN = 4096
"""Any pipe has room for so much (PIPE_BUF of Linux): written at once, nobody waits."""
_ROOT = []  # the answer of `is_root`, once it is known
SYSTEM_FOLDERS = ("/usr/local/sbin", "/usr/sbin", "/sbin")
"""Where nvpmodel and jetson_clocks lie; a non-root SSH login often lacks them in PATH."""


def command_environment():
    """The agent's environment with English output and the system's folders in PATH."""
    environment = dict(os.environ, LC_ALL="C")
    folders = environment.get("PATH", os.defpath).split(":")
    folders += [folder for folder in SYSTEM_FOLDERS if folder not in folders]
    environment["PATH"] = ":".join(folders)
    return environment


def is_root():
    """Whether commands run as root, by the board's own `id`: asked once.

    A container or a simulated board has its own idea of root, which the process's uid
    does not tell.
    """
    if not _ROOT:
        try:
            text = subprocess.check_output(
                ["id", "-u"], stdin=subprocess.DEVNULL, env=command_environment(), timeout=KILL_S
            )
            _ROOT.append(text.strip() == b"0")
        except (OSError, subprocess.SubprocessError):
            _ROOT.append(os.geteuid() == 0)
    return _ROOT[0]


class Command:
    """One running command. `pipes` are to be read until `is_over`; then `answer` tells."""

    def __init__(self, request):
        argv = texts_of(request, "argv")
        if not argv or any("\0" in text for text in argv):
            raise RequestError("bad_request", "argv is empty or has a NUL")
        stdin = bytes_of(request, "stdin")
        if len(stdin) > LONGEST_STDIN:
            raise RequestError("bad_request", "stdin is longer than {}".format(LONGEST_STDIN))
        self.timeout_s = number_of(request, "timeout_s", 30.0)
        self._limit = min(int(number_of(request, "limit", DEFAULT_LIMIT)), LARGEST_LIMIT)
        if request.get("needs_root") and not is_root():
            argv = ["sudo", "-n", "--"] + argv
        self.begin = boot_time()
        self.deadline = self.begin + self.timeout_s
        self._kept = {}
        self._is_cut = False
        self._failure = None
        self._process = None
        self._out, self._err = None, None
        try:
            with _input(stdin) as given:
                self._start(argv, bool(request.get("needs_tty")), given)
        except OSError as error:
            # What a shell says of a command that is absent, or not executable.
            status = 127 if error.errno == errno.ENOENT else 126
            self._failure = (status, "{}: {}".format(argv[0], error.strerror))
        self.pipes = list(self._kept)

    def _start(self, argv, needs_tty, stdin):
        options = {
            "stdin": stdin,
            "start_new_session": True,
            "env": command_environment(),
            "cwd": "/",
        }
        if needs_tty:
            master, slave = pty.openpty()
            try:
                self._process = subprocess.Popen(
                    argv, stdout=slave, stderr=slave, preexec_fn=_own_terminal, **options
                )
            except OSError:
                os.close(master)
                raise
            finally:
                os.close(slave)
            self._out, self._err = master, None
        else:
            self._process = subprocess.Popen(
                argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options
            )
            self._out = self._process.stdout.fileno()
            self._err = self._process.stderr.fileno()
        for fd in (self._out, self._err):
            if fd is not None:
                os.set_blocking(fd, False)
                self._kept[fd] = bytearray()

    def read(self, fd):
        """Take what a pipe has now; False at its end."""
        while True:
            try:
                data = os.read(fd, 65536)
            except BlockingIOError:
                return True
            except OSError:  # EIO: the terminal's other side closed
                return False
            if not data:
                return False
            room = self._limit - len(self._kept[fd])
            self._kept[fd] += data[:room]
            self._is_cut = self._is_cut or len(data) > room
            if len(data) < 65536:
                return True

    @property
    def is_over(self):
        """Whether the command itself ended; what it left in the background does not count."""
        return self._process is None or self._process.poll() is not None

    def kill(self):
        """End it and its group, because its time is over."""
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return
        except PermissionError:  # root's, through sudo: then root must do it
            group = "-{}".format(self._process.pid)
            argv = ["sudo", "-n", "kill", "-KILL", "--", group]
            subprocess.call(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL, timeout=KILL_S)

    def answer(self):
        """Close everything; the answer of a command that ended."""
        for fd in self._kept:
            self.read(fd)
        status, text = self._failure or (self._process.returncode, "")
        said = bytes(self._kept.get(self._err, b"")) or text.encode("utf-8", "replace")
        result = {
            "exit_status": status,
            "stdout": packed(bytes(self._kept.get(self._out, b""))),
            "stderr": packed(said),
            "cut": self._is_cut,
            "duration_s": boot_time() - self.begin,
        }
        self.close()
        return result

    def timeout_error(self):
        """What to answer when the time limit passed, with what the command said last."""
        said = b"".join(bytes(kept[-300:]) for kept in self._kept.values())
        return RequestError(
            "timeout",
            "no end within {} s; it said: {}".format(
                self.timeout_s, said.decode("utf-8", "replace").strip() or "nothing"
            ),
        )

    def close(self):
        """Close the pipes."""
        if self._process is None:
            return
        if self._process.stdout is None:
            os.close(self._out)
        else:
            self._process.stdout.close()
            self._process.stderr.close()


@contextlib.contextmanager
def _input(data):
    """What a command reads: `data` and then the end."""
    if not data:
        yield subprocess.DEVNULL
        return
    reader, writer = os.pipe()
    try:
        with os.fdopen(writer, "wb", 0) as pipe:
            pipe.write(data)
        yield reader
    finally:
        os.close(reader)


def _own_terminal():
    """Make the pseudo-terminal on stdout the controlling one (sudo's requiretty asks for it)."""
    fcntl.ioctl(1, termios.TIOCSCTTY, 0)
