"""What the board says of itself while the agent runs: a tool's lines, and small files.

Everything is stamped with the boot-time clock when it is read, kept in a bounded buffer, and
sent in batches when the channel has room: a host that does not listen holds nothing up here.
A tool that is not there, or ends, leaves the files.
"""

import collections
import os
import select
import shutil
import signal
import subprocess

from commands import command_environment, is_root
from place import boot_time
from telemetry_files import Readings
from telemetry_load import OtherLoad
from wire import PIECE, RequestError, compact, number_of, texts_of

SLOWEST_HZ, FASTEST_HZ = 0.1, 10.0
FLUSH_S = 1.0
MOST_KEPT = 1200  # items; two minutes of both sources at 5 Hz
ROOM = 4096  # PIPE_BUF: what a pipe that can be written takes without waiting
LONGEST_LINE = 8192
MOST_STARTS = 4  # of a tool that ends by itself
MARK_AGE_S = 0.1
"""A reading this old brackets an attempt well enough: trials of milliseconds cost no more."""


class Telemetry:
    """One stream for one agent. `roots()` are the processes whose trees are our own."""

    def __init__(self, agent, roots, running):
        self._agent, self._running = agent, running
        self._place = agent.place
        self._readings = None
        self._load = OtherLoad(agent.place, roots)
        self._tool = None
        self._kept = collections.deque()
        self._dropped = 0
        self._period = 1.0
        self._read_at = self._sent_at = 0.0
        self.due = None  # when `ring` is to be called, in boot time

    def start(self, request):
        """Begin, or begin anew: {rate_hz, argv}; what is read from files by its names."""
        rate = number_of(request, "rate_hz", 1.0)
        argv = texts_of(request, "argv")
        if not SLOWEST_HZ <= rate <= FASTEST_HZ or any("\0" in text for text in argv):
            raise RequestError("bad_request", "rate_hz must be 0.1 to 10, argv without NUL")
        self.stop()
        self._period = 1.0 / rate
        self._readings = Readings(self._place)
        if argv:
            self._tool = Tool(self._agent, argv, self._take_line)
        self.due = boot_time()
        return {"channels": self._readings.names(), "has_tool": self._tool is not None}

    def stop(self):
        """End the stream; what was read is sent as far as there is room."""
        if self._tool is not None:
            self._tool.close()
        self._flush()
        self._tool = self._readings = self.due = None
        self._kept.clear()

    def mark(self):
        """An attempt begins or ends: a reading now, unless there is one of this moment."""
        if self._readings is None:
            return
        now = boot_time()
        if now - self._read_at >= MARK_AGE_S:
            self._read(now)
        self._flush()

    def ring(self):
        """A reading is due."""
        now = boot_time()
        self._read(now)
        # A fixed grid: a late reading costs those that it covers, not the phase.
        self.due += self._period * (1 + int((now - self.due) / self._period))
        if now - self._sent_at >= FLUSH_S - self._period / 2:
            self._flush()

    def _read(self, now):
        self._read_at = now
        has_all = self._tool is not None and self._tool.tells_all
        values = self._readings.read(is_short=has_all)
        running = self._running()
        values["attempts"] = running
        self._keep(["v", round(now, 4), values])
        if running:
            for since, name, percent in self._load.look(now):
                self._keep(["p", round(now, 4), round(since, 4), name, percent])

    def _take_line(self, text):
        self._keep(["l", round(boot_time(), 4), text])

    def _keep(self, item):
        if len(self._kept) >= MOST_KEPT:
            self._kept.popleft()
            self._dropped += 1
        self._kept.append(item)

    def _flush(self):
        self._sent_at = boot_time()
        while self._kept and _has_room():
            items, size = [], 200
            while self._kept and (not items or size < ROOM):
                text = compact(self._kept[0])
                size += len(text) + 1
                if size < ROOM or not items:
                    items.append(self._kept.popleft())
            self._agent.send({
                "event": "telemetry",
                "source": "tool" if self._tool is not None and self._tool.has_spoken else "files",
                "dropped": self._dropped,
                "items": items,
            })
            self._dropped = 0


def _has_room():
    """Whether the channel takes a piece without waiting."""
    poll = select.poll()
    poll.register(1, select.POLLOUT)
    return bool(poll.poll(0))


class Tool:
    """A program that prints a line now and then, as root where sudo lets us."""

    def __init__(self, agent, argv, take_line):
        self._agent, self._take_line = agent, take_line
        self._environment = command_environment()
        program = self._program(argv[0])
        plain = [program] + argv[1:]
        self._ways = [] if program is None else [plain]
        if self._ways and not is_root():
            self._ways.insert(0, ["sudo", "-n", "--"] + plain)
        self._starts = MOST_STARTS
        self._process = None
        self._ended = []  # what may still be to wait for
        self._pipe = -1
        self._buffer = b""
        self._is_as_root = False
        self.has_spoken = False
        self._start()

    @property
    def tells_all(self):
        """It prints what only root may know: files add nothing."""
        return self.has_spoken and self._is_as_root

    def _program(self, name):
        path = self._environment["PATH"]
        home = os.path.join(os.path.expanduser("~"), name)  # where it lay on L4T R28
        return shutil.which(name, path=path) or shutil.which(home)

    def _start(self):
        """Start the first way that is left."""
        self.has_spoken = False
        while self._ways and self._starts > 0:
            self._starts -= 1
            argv = self._ways[0]
            self._is_as_root = argv[0] == "sudo" or is_root()
            self._pipe, inlet = os.pipe()
            os.set_blocking(self._pipe, False)
            try:
                self._process = subprocess.Popen(
                    argv,
                    stdin=subprocess.DEVNULL,
                    stdout=inlet,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                    env=self._environment,
                    cwd="/",
                )
                self._agent.watch(self._pipe, self._read)
                return
            except OSError:
                os.close(self._pipe)
                self._pipe = -1
                self._ways.pop(0)
            finally:
                os.close(inlet)

    def _read(self):
        try:
            data = os.read(self._pipe, PIECE)
        except BlockingIOError:
            return
        if not data:
            self._over()
            return
        *lines, rest = (self._buffer + data).split(b"\n")
        self._buffer = rest[-LONGEST_LINE:]
        for text in lines:
            if text.strip():
                self.has_spoken = True
                self._take_line(text[:LONGEST_LINE].decode("ascii", "replace"))

    def _over(self):
        """It ended: the next way when this one never spoke, else the same again."""
        self._leave()
        if not self.has_spoken and self._ways:
            self._ways.pop(0)
        self._start()

    def _leave(self):
        self._agent.forget(self._pipe)
        self._pipe, self._buffer = -1, b""
        self._ended.append(self._process)
        self._ended = [process for process in self._ended if process.poll() is None]

    def close(self):
        """End it. Root's is not ours to signal: it ends at its next line, into a closed pipe."""
        self._ways = []
        if self._pipe < 0:
            return
        try:
            os.killpg(self._process.pid, signal.SIGTERM)
        except (ProcessLookupError, PermissionError):
            pass
        self._leave()
