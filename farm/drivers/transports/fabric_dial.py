"""Opens one connection with fabric, with every wait bounded and every fault named.

The blocking work is done in a thread, which is given up by closing its socket.
"""

import asyncio
import hashlib
import logging
import socket
from base64 import b64encode
from collections.abc import Sequence
from contextlib import suppress

import fabric
import paramiko

from farm.drivers.transports.board_threads import BoardThreads
from farm.drivers.transports.fabric_connection import FabricConnection, WatchedSocket
from farm.drivers.transports.fabric_login import Login, login_keys
from farm.drivers.transports.orderly_packetizer import OrderlyPacketizer
from farm.drivers.transports.paramiko_errors import (
    PARAMIKO_FAULTS,
    explain_login,
    explain_timeout,
)
from farm.drivers.transports.ssh_context import SshContext, TrustedKeys, describe_key
from farm.drivers.transports.ssh_dial import TCP_TIMEOUT_S
from farm.drivers.transports.ssh_errors import (
    Stage,
    changed_host_key,
    revoked_host_key,
    unknown_host_key,
)
from farm.errors import FarmError
from farm.model.board import Board, ConnectionLimits

KEY_EXCHANGE = ("curve25519-sha256@libssh.org", "ecdh-sha2-nistp256")
CIPHERS = ("aes128-gcm@openssh.com", "aes256-gcm@openssh.com", "aes128-ctr")
"""Put first, the rest is kept for old boards. As in the asyncssh driver, but paramiko has no
ChaCha20."""

_log = logging.getLogger("paramiko")
if _log.level == logging.NOTSET:
    # it logs each lost link as an error with a traceback; what it knows stands in our errors
    _log.setLevel(logging.CRITICAL)


async def dial(board: Board, context: SshContext, password: str | None) -> FabricConnection:
    """Connect and log in, once.

    Raises ConnectError (DroppedBeforeLoginError among them), AuthError, HostKeyError, and
    TransportError when there is no algorithm in common.
    """
    limits = context.limits
    threads = BoardThreads(board.name, (*PARAMIKO_FAULTS, FarmError))
    has_key = password is None or board.identity_file is not None
    keys = login_keys(board, context) if has_key else ()
    call = _Call(board, limits, context.trusted_keys(board), keys, password)
    calling = threads.start("connect", call.make)
    try:
        async with asyncio.timeout(limits.login_timeout_s):
            connection, wire = await asyncio.shield(calling)
    except TimeoutError as exc:
        call.give_up()
        has_tcp = call.wire is not None
        raise explain_timeout(board, limits.login_timeout_s, call.stage, has_tcp=has_tcp) from exc
    except asyncio.CancelledError:
        call.give_up()
        raise
    except PARAMIKO_FAULTS as exc:
        raise explain_login(exc, board, call.stage, call.methods) from exc
    return FabricConnection(board.name, connection, wire, threads, limits)


class _Call(paramiko.MissingHostKeyPolicy):
    """One try to connect, made in a thread and given up from the event loop.

    Attributes:
        wire: the socket, once there is a TCP connection.
    """

    def __init__(
        self,
        board: Board,
        limits: ConnectionLimits,
        trusted: TrustedKeys,
        keys: Sequence[paramiko.PKey],
        password: str | None,
    ) -> None:
        self._board, self._limits, self._trusted = board, limits, trusted
        self._login = Login(board.user, keys, password)
        self.wire: WatchedSocket | None = None
        self._transport: paramiko.Transport | None = None
        self._is_trusted = self._is_given_up = False

    @property
    def methods(self) -> tuple[str, ...]:
        """Login methods that the board offered when it refused ours."""
        return self._login.methods

    @property
    def stage(self) -> Stage:
        """How far the connection came."""
        if self._is_trusted:
            return Stage.HOST_KEY
        has_banner = self._transport is not None and bool(self._transport.remote_version)
        return Stage.BANNER if has_banner else Stage.NOTHING

    def give_up(self) -> None:
        """End it; called in the event loop."""
        self._is_given_up = True
        if self.wire is not None:
            self.wire.cut()

    def make(self) -> tuple[fabric.Connection, WatchedSocket]:
        """Connect and log in; blocks. Raises PARAMIKO_FAULTS, HostKeyError."""
        wire = self.wire = self._open_wire()
        try:
            if self._is_given_up:
                raise ConnectionAbortedError("given up")
            connection = self._connect(wire)
            if self._is_given_up:
                raise ConnectionAbortedError("given up")
        except BaseException:
            wire.cut()
            self._clean_up()
            wire.close()
            raise
        return connection, wire

    def _clean_up(self) -> None:
        transport = self._transport
        if transport is None:
            return
        with suppress(*PARAMIKO_FAULTS):
            transport.close()
        transport.packetizer.complete_handshake()  # ends a timer's thread
        if transport.ident is not None:
            transport.join(self._limits.login_timeout_s)

    def _open_wire(self) -> WatchedSocket:
        timeout_s = min(TCP_TIMEOUT_S, self._limits.login_timeout_s)
        address = self._board.host, self._board.port
        raw = socket.create_connection(address, timeout=timeout_s)
        wire = WatchedSocket(fileno=raw.detach())
        keepalive_s, count = self._limits.keepalive_s, self._limits.keepalive_count
        wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in (
            # data that the board never acknowledges ends the connection, where Linux can do that
            ("TCP_USER_TIMEOUT", int(keepalive_s * (count + 1) * 1000)),
            ("TCP_KEEPIDLE", max(1, int(keepalive_s))),
            ("TCP_KEEPINTVL", max(1, int(keepalive_s))),
            ("TCP_KEEPCNT", count),
        ):
            if hasattr(socket, option):
                wire.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
        return wire

    def _connect(self, wire: WatchedSocket) -> fabric.Connection:
        # Nothing of the user's own SSH set-up may leak in.
        connection = fabric.Connection(
            self._board.host,
            user=self._board.user,
            port=self._board.port,
            config=fabric.Config(lazy=True, ssh_config=paramiko.SSHConfig()),
            forward_agent=False,
            connect_kwargs={
                "sock": wire,
                "transport_factory": self._make_transport,
                "auth_strategy": self,
                "banner_timeout": self._limits.login_timeout_s,
                "auth_timeout": self._limits.login_timeout_s,
            },
        )
        connection.client.set_missing_host_key_policy(self)  # fabric's accepts anything
        connection.open()
        return connection

    def _make_transport(
        self, sock: socket.socket, disabled_algorithms: dict[str, list[str]] | None = None
    ) -> paramiko.Transport:
        transport = paramiko.Transport(
            sock, disabled_algorithms=disabled_algorithms, packetizer_class=OrderlyPacketizer
        )
        transport.handshake_timeout = self._limits.login_timeout_s
        options = transport.get_security_options()
        wanted = self._trusted.algorithms(self._board)
        options.key_types = tuple(name for name in wanted if name in options.key_types)
        options.kex = _first(KEY_EXCHANGE, options.kex)
        options.ciphers = _first(CIPHERS, options.ciphers)
        self._transport = transport
        return transport

    # What paramiko calls

    def missing_host_key(
        self, client: paramiko.SSHClient, hostname: str, key: paramiko.PKey
    ) -> None:
        """Judge the host key: paramiko's own lists are empty. Raises HostKeyError."""
        del client, hostname
        shown = key.asbytes()
        if shown in [known.public_data for known in self._trusted.keys]:
            self._is_trusted = True
            return
        digest = b64encode(hashlib.sha256(shown).digest()).decode().rstrip("=")
        seen, file = f"{key.get_name()} SHA256:{digest}", self._trusted.file
        if shown in [known.public_data for known in self._trusted.revoked]:
            raise revoked_host_key(self._board, seen, file)
        enrolled = [describe_key(known) for known in self._trusted.keys]
        # an enrolled authority does not count: paramiko verifies no host certificates
        if enrolled:
            raise changed_host_key(self._board, seen, enrolled, file)
        raise unknown_host_key(self._board, seen, file)

    def authenticate(self, transport: paramiko.Transport) -> None:
        """Log in. Raises PARAMIKO_FAULTS."""
        self._login.log_in(transport)


def _first(names: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*(name for name in names if name in known), *known]))
