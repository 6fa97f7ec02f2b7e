"""The agent: one select loop over its channel, its commands and its attempts.

No thread: a board that measures should do nothing else. It sleeps until something comes;
only while a log is followed, or an attempt of an earlier agent is watched, it looks about
seven times a second.
"""

import gc
import json
import math
import os
import select
import signal
import sys

import operations
import processes
from facts import hello
from place import Place, boot_time
from wire import PIECE, RequestError, as_request_error, line, write_all

LONGEST_LINE = 8 * 1024 * 1024
TICK_S = 0.15
LONGEST_POLL_MS = 60000  # poll takes no more than a C int


class Agent:
    """Reads requests from fd 0, writes answers to fd 1."""

    def __init__(self, place):
        self.place = place
        self._timed = None  # an object with due (boot time, or None) and ring()
        self._operations = operations.Operations(self)
        self._poll = select.poll()
        self._callbacks = {}  # descriptor -> what to do when it is readable
        self._buffer = bytearray()
        self._is_skipping = False  # inside a line that is too long
        self._is_open = True  # the host may still ask
        self._commands = {}  # Command -> request id
        self._tickers = []  # objects with tick() -> is there more to do at once / None at the end
        self._later = []  # work that may wait until the answers are sent

    def run(self):
        """Serve until stdin ends and the commands that were begun have ended."""
        for fd in (0, 1):  # whoever started us may have left them otherwise
            os.set_blocking(fd, True)
        wakeup, inlet = os.pipe()
        for fd in (wakeup, inlet):
            os.set_blocking(fd, False)
        signal.set_wakeup_fd(inlet)
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        self.watch(wakeup, lambda: os.read(wakeup, 4096))
        self.watch(0, self._read_requests)
        self.send(hello(self.place))
        processes.load_prctl()
        # From Python 3.7 on: leave the pages alone that forks share with us.
        getattr(gc, "freeze", gc.collect)()
        while self._is_open or self._commands:
            ready = self._poll.poll(self._timeout_ms())
            for fd, _ in ready:
                if fd in self._callbacks:
                    self._callbacks[fd]()
            if self._commands:
                self._check_commands()
            if self._tickers:
                self._tick()
            while self._later:
                self._later.pop(0)()
            if self._timed is not None and self._timed.due is not None:
                if boot_time() >= self._timed.due:
                    self._timed.ring()
        self._operations.close()

    def watch(self, fd, callback):
        """Call back when `fd` is readable."""
        self._callbacks[fd] = callback
        self._poll.register(fd, select.POLLIN)

    def _unwatch(self, fd):
        if self._callbacks.pop(fd, None) is not None:
            self._poll.unregister(fd)

    def forget(self, fd):
        """Stop watching `fd` and close it."""
        self._unwatch(fd)
        os.close(fd)

    def later(self, work):
        """Do it once what was asked is answered."""
        self._later.append(work)

    def add_ticker(self, ticker):
        """Call `ticker.tick()` often until it says None; True: at once again."""
        self._tickers.append(ticker)

    def drop_tickers(self, is_dropped):
        """Forget the tickers that a predicate names."""
        self._tickers = [ticker for ticker in self._tickers if not is_dropped(ticker)]

    def call_when_due(self, timed):
        """Call `timed.ring()` whenever `timed.due` has passed."""
        self._timed = timed

    def send(self, message):
        """Write a message as one line. A host that is gone is noticed on stdin."""
        self.send_line(line(message))

    def send_line(self, text):
        """Write a line that is one already."""
        try:
            write_all(1, text)
        except OSError:
            self._is_open = False

    def run_command(self, command, request_id):
        """Run to the end, answer then."""
        for fd in command.pipes:
            self.watch(fd, lambda fd=fd: command.read(fd) or self._unwatch(fd))
        # It may have ended already: we look once more before we sleep. Supervisors tell
        # their end by their pipes, and need no signal.
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._commands[command] = request_id

    def answer(self, request_id, fields):
        """Send a good answer."""
        self.send(dict(fields, id=request_id, ok=True))

    def refuse(self, request_id, error):
        """Send an error."""
        self.send({"id": request_id, "ok": False, "error": error.as_answer()})

    def _timeout_ms(self):
        if any(ticker.is_busy for ticker in self._tickers):
            return 0
        times = [command.deadline - boot_time() for command in self._commands]
        if self._timed is not None and self._timed.due is not None:
            times.append(self._timed.due - boot_time())
        if self._tickers:
            times.append(TICK_S)
        if not times:
            return None
        return max(0, min(math.ceil(min(times) * 1000), LONGEST_POLL_MS))

    def _tick(self):
        for ticker in list(self._tickers):
            if not ticker.tick():
                self._tickers.remove(ticker)

    def _check_commands(self):
        for command, request_id in list(self._commands.items()):
            is_late = not command.is_over and boot_time() >= command.deadline
            if not command.is_over and not is_late:
                continue
            del self._commands[command]
            for fd in command.pipes:
                self._unwatch(fd)
            if is_late:
                command.kill()
                self.refuse(request_id, command.timeout_error())
                command.close()
            else:
                self.answer(request_id, command.answer())
        if not self._commands:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)

    def _read_requests(self):
        data = os.read(0, PIECE)
        if not data:
            self._is_open = False
            self._unwatch(0)
            return
        if b"\n" not in data:
            self._extend(data)
            return
        first, _, rest = data.partition(b"\n")
        self._extend(first)
        complete, self._buffer = bytes(self._buffer), bytearray()
        if self._is_skipping:
            self._is_skipping = False
        else:
            self._serve(complete)
        lines = rest.split(b"\n")
        self._buffer += lines.pop()
        for each in lines:
            self._serve(each)

    def _extend(self, data):
        if len(self._buffer) + len(data) > LONGEST_LINE:
            self._buffer = bytearray()
            if not self._is_skipping:
                self._is_skipping = True
                self.refuse(None, RequestError("bad_request", "a line of more than 8 MB"))
        elif not self._is_skipping:
            self._buffer += data

    def _serve(self, text):
        if not text.strip():
            return
        request_id = None
        try:
            try:
                request = json.loads(text.decode("utf-8"))
            except ValueError as error:
                raise RequestError("bad_request", "no JSON: {}".format(error))
            if not isinstance(request, dict):
                raise RequestError("bad_request", "no JSON object")
            request_id = request.get("id")
            fields = self._operations.serve(request)
            if fields is not None:
                self.answer(request_id, fields)
        except RequestError as error:
            self.refuse(request_id, error)
        except OSError as error:
            self.refuse(request_id, as_request_error(error))
        except Exception as error:  # a fault of ours is answered; the agent lives on
            text = "{}: {}".format(type(error).__name__, error)
            self.refuse(request_id, RequestError("internal", text))


def serve(work, root, pyz):
    """Run the agent in this process."""
    if root:
        os.environ["FARM_ROOT"] = root
    place = Place(work, root or os.environ.get("FARM_ROOT", ""), pyz)
    try:
        place.make()
        operations.unpack_helpers(place)
    except OSError as error:
        answer = as_request_error(error).as_answer()
        write_all(1, line(dict(answer, farm="fail")))
        sys.exit(1)
    Agent(place).run()
