"""asyncssh's client connection without what costs CPU and gains nothing here.

Three things are left out:

- the ``none`` login, which only asks for the methods, and the question whether a key would do:
  where there is one key, it is used at once, as libssh2 does, which also spares two round trips.
  After a refusal all goes on as ever, with the methods that the board then names;
- an ignored packet before each packet. It protects ciphers in CBC mode, which are not proposed;
- texts for a log that nobody keeps, and a thread for putting the settings together.

This relies on parts of asyncssh that may change: `IS_KNOWN` tells whether they are those that
were looked at, and asyncssh's own `connect` is used where they are not.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol

import asyncssh
from asyncssh.auth import _ClientPublicKeyAuth
from asyncssh.logging import SSHLogger
from asyncssh.packet import SSHPacket, SSHPacketLogger

IS_KNOWN = asyncssh.__version__.startswith("2.24.")

_MSG_IGNORE = 2  # RFC 4253, 12


class _Quiet(SSHLogger):
    """Looks whether a line is wanted before its parts are made to text."""

    def log(self, level: int, msg: object, *args: object, **kwargs: object) -> None:
        """Log it if it is wanted."""
        if self.isEnabledFor(level):
            super().log(level, msg, *args, **kwargs)


class _KeyAtOnce(_ClientPublicKeyAuth):
    """Logs in with the key, without the question whether it would do."""

    async def _start(self) -> None:
        self._keypair = await self._conn.public_key_auth_requested()
        if self._keypair is None:
            self._conn.try_next_auth(next_method=True)
        else:
            await self._send_signed_request()


class LeanConnection(asyncssh.SSHClientConnection):
    """Arguments as asyncssh's own."""

    _has_begun = False

    def __init__(
        self, loop: asyncio.AbstractEventLoop, options: asyncssh.SSHClientConnectionOptions
    ) -> None:
        super().__init__(loop, options, wait="auth")
        self._logger = _Quiet()

    def send_packet(
        self, pkttype: int, *args: bytes, handler: SSHPacketLogger | None = None
    ) -> None:
        """Send it, unless the board is only to ignore it."""
        if pkttype != _MSG_IGNORE:
            super().send_packet(pkttype, *args, handler=handler)

    def log_sent_packet(
        self, pkttype: int, pktid: int | None, packet: bytes | SSHPacket, note: str = ""
    ) -> None:
        """Log it if that is wanted."""
        if self._logger.isEnabledFor(logging.DEBUG):
            super().log_sent_packet(pkttype, pktid, packet, note)

    def log_received_packet(
        self, pkttype: int, pktid: int | None, packet: bytes | SSHPacket, note: str = ""
    ) -> None:
        """Log it if that is wanted."""
        if self._logger.isEnabledFor(logging.DEBUG):
            super().log_received_packet(pkttype, pktid, packet, note)

    def try_next_auth(self, *, next_method: bool = False) -> None:
        """Begin with the key where there is just one, and else as asyncssh does."""
        if self._has_begun or len(self._client_keys) != 1:
            super().try_next_auth(next_method=next_method)
            return
        self._has_begun = True
        self._auth_methods = [b"publickey"]
        self._auth = _KeyAtOnce(self, b"publickey")


class _Wire(Protocol):
    async def create_connection(
        self, session_factory: Callable[[], asyncio.Protocol], remote_host: str, remote_port: int
    ) -> tuple[asyncio.Transport, asyncio.Protocol]: ...


async def connect_lean(
    options: asyncssh.SSHClientConnectionOptions, wire: _Wire
) -> LeanConnection:
    """Connect by `wire` and log in, as `asyncssh.connect` does. Raises what that raises.

    `options` are of this connection alone, and it waits for what it is told by them.
    """
    loop = asyncio.get_running_loop()
    options.waiter = loop.create_future()
    connection = LeanConnection(loop, options)
    try:
        await wire.create_connection(lambda: connection, options.host, options.port)
        connection.set_extra_info(host=options.host, port=options.port)
        await options.waiter
    except BaseException:
        options.waiter.cancel()
        connection.abort()
        raise
    return connection
