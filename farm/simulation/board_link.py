"""The link to one simulated board: between its socket and its SSH server, with faults.

asyncssh takes a "tunnel" as the maker of its listener; ours listens on an ordinary socket and
puts a `_Wire` between each connection and asyncssh. A wire without a fault hands on at once. A
link that is dead reads nothing more from its sockets, so that the other side's data pile up
there, and tells neither side of the other's end.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from random import Random
from typing import cast

from asyncssh.listener import SSHListener

_RESENT_S = 0.2
"""The kernel's shortest wait before it sends again what got lost; it doubles each time."""
_MOST_RESENT = 8
_BACKLOG = 200

Deed = Callable[[], object]


class BoardLink:
    """What all connections to one board have in common.

    Args:
        seed: of loss and jitter.
    """

    def __init__(self, seed: int = 1) -> None:
        self._random = Random(seed)  # noqa: S311 -- chance, no secret
        self._wires: set[_Wire] = set()
        self._holds = 0
        self._drops = 0
        self.delay_s = 0.0
        self.jitter_s = 0.0
        self.loss = 0.0

    @property
    def is_held(self) -> bool:
        """Nothing passes, and nobody is told."""
        return self._holds > 0

    @property
    def is_dropped(self) -> bool:
        """Connections are reset."""
        return self._drops > 0

    def hold(self) -> None:
        """From now on nothing passes; as often as called it needs `release`."""
        self._holds += 1
        self._changed()

    def release(self) -> None:
        """Undo one `hold`: what waited goes on."""
        self._holds -= 1
        self._changed()

    def drop(self) -> None:
        """Reset every connection, new ones too, until `mend`."""
        self._drops += 1
        self.reset()

    def mend(self) -> None:
        """Undo one `drop`."""
        self._drops -= 1

    def reset(self) -> None:
        """Reset every connection that there is now."""
        for wire in list(self._wires):
            wire.abort()

    def lag_s(self) -> float:
        """How long what is sent now takes: delay, jitter, and being sent again."""
        lag_s = self.delay_s
        if self.jitter_s:
            lag_s += self._random.uniform(0.0, self.jitter_s)
        wait_s = _RESENT_S
        for _ in range(_MOST_RESENT):
            if not self.loss or self._random.random() >= self.loss:
                break
            lag_s += wait_s
            wait_s *= 2
        return lag_s

    async def create_server(
        self, session_factory: Callable[[str, int], object], listen_host: str, listen_port: int
    ) -> SSHListener:
        """What asyncssh asks of a tunnel. Raises OSError when the address is in use."""

        def wire() -> _Wire:
            return _Wire(self, lambda: cast("asyncio.Protocol", session_factory("", 0)))

        loop = asyncio.get_running_loop()
        server = await loop.create_server(wire, listen_host, listen_port, backlog=_BACKLOG)
        return cast("SSHListener", server)  # asyncssh closes it, and waits until it is closed

    def close(self) -> None:
        """What asyncssh may ask of a tunnel; the listener is closed by itself."""

    async def wait_closed(self) -> None:
        """What asyncssh may ask of a tunnel."""

    def add(self, wire: "_Wire") -> None:
        """A connection begins."""
        self._wires.add(wire)

    def remove(self, wire: "_Wire") -> None:
        """A connection has ended."""
        self._wires.discard(wire)

    def _changed(self) -> None:
        for wire in list(self._wires):
            wire.follow_link()


class _Lane:
    """One direction of a wire: what is done in order, at once or later."""

    def __init__(self, link: BoardLink) -> None:
        self._link = link
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[tuple[float, Deed]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    def push(self, deed: Deed) -> None:
        """Do it when what was pushed before is done and the link lets it pass."""
        lag_s = self._link.lag_s()
        if not self._waiting and not lag_s and not self._link.is_held:
            deed()
            return
        last_s = self._waiting[-1][0] if self._waiting else 0.0
        self._waiting.append((max(last_s, self._loop.time() + lag_s), deed))
        self.go_on()

    def go_on(self) -> None:
        """Have what waits done in time, unless the link is dead."""
        if self._timer is None and self._waiting and not self._link.is_held:
            self._timer = self._loop.call_at(self._waiting[0][0], self._do)

    def clear(self) -> None:
        """Forget what waits."""
        self._waiting.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _do(self) -> None:
        self._timer = None
        while self._waiting and not self._link.is_held:
            if self._waiting[0][0] > self._loop.time():
                break
            self._waiting.popleft()[1]()
        self.go_on()


class _Wire(asyncio.Protocol, asyncio.Transport):
    """One connection: the socket's protocol on one side, asyncssh's transport on the other."""

    def __init__(self, link: BoardLink, make_server: Callable[[], asyncio.Protocol]) -> None:
        super().__init__()
        self._link, self._make_server = link, make_server
        self._server = asyncio.Protocol()
        self._inward, self._outward = _Lane(link), _Lane(link)
        self._socket: asyncio.Transport | None = None
        self._is_aborted = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._socket = cast("asyncio.Transport", transport)
        if self._link.is_dropped:
            self._socket.abort()
            return
        self._link.add(self)
        self._server = self._make_server()
        self._server.connection_made(self)
        self.follow_link()

    def data_received(self, data: bytes) -> None:
        self._inward.push(lambda: self._server.data_received(data))

    def eof_received(self) -> bool:
        self._inward.push(self._end_of_input)
        return True  # the socket stays open until asyncssh has heard of it

    def connection_lost(self, exc: Exception | None) -> None:
        if self._is_aborted:  # by our side, which must not wait for the link
            self._forget(exc)
        else:
            self._inward.push(lambda: self._forget(exc))

    def pause_writing(self) -> None:
        self._server.pause_writing()

    def resume_writing(self) -> None:
        self._server.resume_writing()

    def follow_link(self) -> None:
        """The link died or came back."""
        if self._socket is None or self._socket.is_closing():
            return
        if self._link.is_held:
            self._socket.pause_reading()
            return
        self._socket.resume_reading()
        self._inward.go_on()
        self._outward.go_on()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._socket is not None:
            kept, target = bytes(data), self._socket
            self._outward.push(lambda: target.write(kept))

    def close(self) -> None:
        if self._socket is not None:
            self._outward.push(self._socket.close)

    def abort(self) -> None:
        self._is_aborted = True
        self._inward.clear()
        self._outward.clear()
        if self._socket is not None:
            self._socket.abort()

    def is_closing(self) -> bool:
        return self._socket is None or self._socket.is_closing()

    def get_extra_info(self, name: str, default: object = None) -> object:
        return self._socket.get_extra_info(name, default) if self._socket else default

    def _end_of_input(self) -> None:
        if not self._server.eof_received():
            self.close()

    def _forget(self, exc: Exception | None) -> None:
        self._link.remove(self)
        self._inward.clear()
        self._outward.clear()
        self._server.connection_lost(exc)
