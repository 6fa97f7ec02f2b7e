"""An established connection of fabric, as a `Link` uses it: never blocking, never dead unnoticed.

paramiko's own keepalive never counts the answers (paramiko#918, #2326), and TCP knows nothing of
an SSH server that hangs; so requests that must be answered are sent from here.
"""

import asyncio
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import fabric
import paramiko

from farm.drivers.transports.board_threads import BoardThreads
from farm.drivers.transports.fabric_channel import PumpedChannel
from farm.drivers.transports.paramiko_errors import PARAMIKO_FAULTS, explain_loss
from farm.drivers.transports.ssh_link import OPEN_PAUSE_S, OPEN_TRIES, Connection, Fate
from farm.drivers.transports.ssh_session import CommandSession, SessionChannel
from farm.model.board import ConnectionLimits

OPEN_TIMEOUT_S = 60.0
"""For the board's answer to a new session; callers have limits of their own. Assumed."""

JOIN_TIMEOUT_S = 2.0


class WatchedSocket(socket.socket):
    """The connection's socket.

    Attributes:
        heard: bytes received so far.
        is_hasty: acknowledge at once what comes: sshd's small packets of a login wait for that
            by Nagle's rule, and Linux waits 40 ms. The kernel forgets the wish with each read.
    """

    heard = 0
    is_hasty = True

    def recv(self, bufsize: int, flags: int = 0) -> bytes:
        """Receive, and take note."""
        data = super().recv(bufsize, flags)
        self.heard += len(data)
        if self.is_hasty and hasattr(socket, "TCP_QUICKACK"):
            with suppress(OSError):  # closed meanwhile
                self.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
        return data

    def cut(self) -> None:
        """End the connection at once; wakes threads that wait for it."""
        with suppress(OSError):
            self.shutdown(socket.SHUT_RDWR)


class FabricConnection(Connection, Fate):
    """Sessions of one connection, each on threads of its own.

    Args:
        board: the board's name.
        connection: open.
        wire: its socket.
        threads: of this connection.
        limits: how often to ask whether the board is there, and how often in vain.
    """

    def __init__(
        self,
        board: str,
        connection: fabric.Connection,
        wire: WatchedSocket,
        threads: BoardThreads,
        limits: ConnectionLimits,
    ) -> None:
        self.board = board
        self._connection, self._wire = connection, wire
        self._threads, self._limits = threads, limits
        self._transport: paramiko.Transport = connection.transport
        self._opening = threading.Lock()
        self._reason: Exception | None = None
        self._heard, self._missed = wire.heard, 0
        self._asking: asyncio.Future[object] | None = None
        self._loop = asyncio.get_running_loop()
        self._beat = self._loop.call_later(limits.keepalive_s, self._check_life)

    @property
    def transport(self) -> paramiko.Transport:
        """Paramiko's side of it, for threads."""
        return self._transport

    @property
    def threads(self) -> BoardThreads:
        """Those that work for this connection."""
        return self._threads

    # Fate

    @property
    def is_lost(self) -> bool:
        """The connection is gone."""
        return self._reason is not None or not self._transport.is_active()

    @property
    def reason(self) -> Exception | None:
        """Why, if that is known."""
        return self._reason or self._transport.saved_exception

    def _death(self) -> Exception | None:
        """Why a channel ended that the board did not close; called in threads."""
        saved = self._transport.saved_exception
        if isinstance(saved, paramiko.ChannelException):
            saved = None  # of a session that was refused
        if self._reason or saved or not self._transport.is_active():
            return self._reason or saved or ConnectionResetError("closed")
        return None

    # Keepalive: worst case keepalive_s * (keepalive_count + 1)

    def _check_life(self) -> None:
        if self.is_lost:
            return
        heard, self._heard = self._heard, self._wire.heard
        self._missed = 0 if heard != self._heard else self._missed + 1
        if self._missed >= self._limits.keepalive_count:
            silent_s = self._missed * self._limits.keepalive_s
            self._reason = TimeoutError(f"the board was silent for {silent_s:g} s")
            self.close()
            return
        if self._asking is None or self._asking.done():
            self._asking = self._threads.start("keepalive", self._ask)
        self._beat = self._loop.call_later(self._limits.keepalive_s, self._check_life)

    def _ask(self) -> object:
        # a request that no server knows, and each must refuse (RFC 4254, 4)
        return self._transport.global_request("keepalive@openssh.com", wait=True)

    # Connection

    async def create_session(
        self,
        session_factory: Callable[[], CommandSession],
        command: str,
        *,
        encoding: None,
    ) -> tuple[SessionChannel, object]:
        """Start a command. Raises LinkLostError, TransportError."""
        del encoding
        session = session_factory()
        channel = PumpedChannel(session, self._threads, self._death)
        begun = asyncio.Event()
        work = partial(self._serve, channel, command, begun.set)
        serving = self._threads.start("read", work)
        serving.add_done_callback(lambda _: begun.set())
        await begun.wait()
        failure = serving.exception() if serving.done() else None
        if isinstance(failure, Exception):
            is_alive = not self.is_lost
            raise explain_loss(failure, self.board, session.step, is_alive=is_alive) from failure
        self._wire.is_hasty = False
        return channel, session

    def _serve(self, pumped: PumpedChannel, command: str, on_begin: Callable[[], None]) -> None:
        pumped.serve(self.open_channel(), command, on_begin)

    def open_channel(self) -> paramiko.Channel:
        """A new session; blocks. Raises PARAMIKO_FAULTS.

        A board counts a session for a moment after its end, so a refusal is tried again.
        """
        for tried in range(OPEN_TRIES - 1):
            try:
                return self._open_once()
            except paramiko.ChannelException:
                if self.is_lost:
                    raise
            time.sleep(OPEN_PAUSE_S * 2**tried)
        return self._open_once()

    def _open_once(self) -> paramiko.Channel:
        with self._opening:  # paramiko keeps one refusal for all who wait
            return self._transport.open_session(timeout=OPEN_TIMEOUT_S)

    def close(self) -> None:
        """Begin to close."""
        self._beat.cancel()
        self._reason = self._reason or ConnectionAbortedError("closed by farm")
        self._wire.cut()
        self._threads.start("close", self._close)

    def _close(self) -> None:
        with suppress(*PARAMIKO_FAULTS):
            self._connection.close()
        self._wire.close()
        self._transport.join(JOIN_TIMEOUT_S)

    def abort(self) -> None:
        """Nothing more can be done than `close` has."""

    async def wait_closed(self) -> None:
        """Wait for the threads."""
        await self._threads.ended()
