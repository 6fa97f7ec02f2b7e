"""One command's channel: a thread reads it, another writes while there is something to write.

The event loop never calls what may wait for the board. The reading thread hands over one chunk
and waits until the loop took it, so that a slow reader slows the board down by SSH's own window.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import paramiko

from farm.drivers.transports.board_threads import BoardThreads
from farm.drivers.transports.orderly_packetizer import speak_for
from farm.drivers.transports.paramiko_errors import PARAMIKO_FAULTS
from farm.drivers.transports.ssh_session import CommandSession, SessionChannel

SEND_PIECE = 32 * 1024
"""Bytes of one send: one packet. `sendall` copies the rest of its value after each packet, which
takes a minute for 50 MB (paramiko#2659)."""

RECEIVE_LIMIT = 4 * 1024 * 1024
"""Bytes. More than the window (2 MiB): a read that leaves a rest moves it, at a cost."""

QUEUE_HIGH, QUEUE_LOW = 1024 * 1024, 256 * 1024
"""Bytes waiting to be sent, above which writers shall wait, and until when."""


class Bell(threading.Event):
    """Rung by each of a channel's buffers; only the reading thread silences it."""

    def clear(self) -> None:
        """Called by a buffer that is empty, while another may not be: not heeded."""

    def answer(self) -> None:
        """Wait for a ring."""
        self.wait()
        super().clear()


class PumpedChannel(SessionChannel):
    """A channel with its threads. Methods are for the event loop, except `serve`.

    Args:
        session: hears what comes.
        threads: of the connection.
        death: what ended the connection, or None while it stands.
    """

    def __init__(
        self,
        session: CommandSession,
        threads: BoardThreads,
        death: Callable[[], Exception | None],
    ) -> None:
        self._session, self._threads, self._death = session, threads, death
        self._loop = asyncio.get_running_loop()
        self._channel: paramiko.Channel | None = None
        self._bell = Bell()
        self._is_taken = threading.Event()
        self._is_paused = self._is_aborted = self._is_writing = False
        self._queue: deque[bytes | None] = deque()  # None: the end of the input
        self._queued = 0
        self._lock = threading.Lock()  # of the queue and _is_writing

    # In the event loop

    def write(self, data: bytes) -> None:
        """Queue bytes."""
        if data:
            self._queued += len(data)
            if self._queued > QUEUE_HIGH:
                self._session.pause_writing()
            self._enqueue(data)

    def write_eof(self) -> None:
        """End the input once all is sent."""
        self._enqueue(None)

    def _enqueue(self, piece: bytes | None) -> None:
        with self._lock:
            self._queue.append(piece)
            must_start = not self._is_writing
            self._is_writing = True
        if must_start:
            self._threads.start("write", self._write_out)

    def abort(self) -> None:
        """Close at once: the session hears no more, the reading thread tells the board."""
        self._is_aborted = True
        self._is_taken.set()
        self._bell.set()

    def pause_reading(self) -> None:
        """Take no more output for now."""
        self._is_paused = True

    def resume_reading(self) -> None:
        """Take output again."""
        self._is_paused = False
        self._is_taken.set()

    def _take(self, data: bytes, datatype: int | None) -> None:
        try:
            if not self._is_aborted:
                self._session.data_received(data, datatype)
        finally:
            if not self._is_paused:
                self._is_taken.set()

    def _end(self, cause: Exception | None) -> None:
        self._session.connection_lost(None if self._is_aborted else cause)

    def _note_sent(self, size: int) -> None:
        self._queued -= size
        if self._queued <= QUEUE_LOW:
            self._session.resume_writing()

    # In threads

    def _tell(self, call: Callable[[], None]) -> None:
        try:
            self._loop.call_soon_threadsafe(call)
        except RuntimeError:  # the loop is closed: nobody listens
            self.abort()

    def serve(self, channel: paramiko.Channel, command: str, on_begin: Callable[[], None]) -> None:
        """Run a command on a fresh channel and pump until its end; blocks.

        `on_begin` is called in the event loop when the board has begun. Raises PARAMIKO_FAULTS
        before that.
        """
        self._channel = channel
        speak_for(channel)
        try:
            channel.in_buffer.set_event(self._bell)
            channel.in_stderr_buffer.set_event(self._bell)
            channel.status_event = self._bell  # also rung when the channel is closed
            channel.exec_command(command)
            self._tell(partial(self._session.connection_made, self))
            self._tell(on_begin)
            self._pump(channel)
        finally:
            with suppress(*PARAMIKO_FAULTS):
                channel.close()

    def _pump(self, channel: paramiko.Channel) -> None:
        cause: Exception | None = RuntimeError("the reading thread failed")
        is_told = False
        try:
            while not self._is_aborted:
                self._bell.answer()
                # asked before reading: what came before the status and the end is read below
                is_over, status = channel.closed, channel.exit_status
                while self._hand_over(channel):
                    pass
                if status >= 0 and not is_told:
                    is_told = True
                    self._tell(partial(self._session.exit_status_received, status))
                if is_over:
                    cause = None if channel.eof_received else self._death()
                    break
        except PARAMIKO_FAULTS as exc:
            cause = exc
        finally:
            self._tell(partial(self._end, cause))

    def _hand_over(self, channel: paramiko.Channel) -> bool:
        """Give the loop what there is; False if there is nothing."""
        chunks = (
            (channel.recv_ready, channel.recv, None),
            (channel.recv_stderr_ready, channel.recv_stderr, 1),  # RFC 4254, 5.2
        )
        has_some = False
        for is_ready, receive, datatype in chunks:
            if self._is_aborted or not is_ready():
                continue
            has_some = True
            self._is_taken.clear()
            self._tell(partial(self._take, receive(RECEIVE_LIMIT), datatype))
            if not self._is_aborted:
                self._is_taken.wait()
        return has_some and not self._is_aborted

    def _write_out(self) -> None:
        if self._channel is not None:
            speak_for(self._channel)
        while True:
            with self._lock:
                if not self._queue:
                    self._is_writing = False
                    return
                piece = self._queue.popleft()
            with suppress(*PARAMIKO_FAULTS):  # the reading thread tells of a channel's end
                self._send(piece)
            self._tell(partial(self._note_sent, len(piece or b"")))

    def _send(self, piece: bytes | None) -> None:
        channel = self._channel
        if channel is None or self._is_aborted:
            return
        if piece is None:
            channel.shutdown_write()
            return
        at = 0
        while at < len(piece) and not self._is_aborted:
            sent = channel.send(piece[at : at + SEND_PIECE])
            if not sent:
                return  # closed
            at += sent
