"""Opens one SSH connection to a board, with every wait bounded and every fault named."""

import asyncio
import socket
from collections.abc import Callable
from copy import copy
from typing import TypedDict, cast

import asyncssh

from farm.drivers.transports.joined_writes import JoinedWrites
from farm.drivers.transports.lean_connection import IS_KNOWN, connect_lean
from farm.drivers.transports.ssh_context import SshContext, TrustedKeys
from farm.drivers.transports.ssh_errors import PEER_FAULTS, Stage, address_of, explain_login
from farm.errors import ConnectError, TransportError
from farm.model.board import Board, ConnectionLimits

TCP_TIMEOUT_S = 15.0
"""For the TCP connection alone: four SYNs of Linux (at 0, 1, 3 and 7 s) and time to answer."""

KEY_EXCHANGE = "^curve25519-sha256,curve25519-sha256@libssh.org,ecdh-sha2-nistp256"
CIPHERS = "^aes128-gcm@openssh.com,chacha20-poly1305@openssh.com"
"""``^`` puts these first and keeps the rest for old boards. AES-128-GCM moves 1.6 times the
bytes of ChaCha20 here, and curve25519 is the cheapest key exchange (measured)."""


class Login(asyncssh.SSHClient):
    """Sees what happens on a connection.

    Attributes:
        shown: the host key that was not among the trusted ones, or None.
        is_lost: the connection is gone.
        reason: why, if asyncssh knows.
        methods: login methods that the board offered when it refused ours.
    """

    def __init__(self) -> None:
        self.shown: asyncssh.SSHKey | None = None
        self.is_lost = False
        self.reason: Exception | None = None
        self.methods: tuple[str, ...] = ()
        self.conn: asyncssh.SSHClientConnection | None = None
        self._stage = Stage.NOTHING

    def connection_made(self, conn: asyncssh.SSHClientConnection) -> None:
        """Keep the connection: asyncssh gives it to us only after the login."""
        self.conn = conn

    def connection_lost(self, exc: Exception | None) -> None:
        """Remember that the connection ended, and why."""
        self._stage = self.stage
        self.is_lost, self.reason = True, exc
        self.conn = None

    def validate_host_public_key(
        self, host: str, addr: str, port: int, key: asyncssh.SSHKey
    ) -> bool:
        """Asked about keys that are not trusted: remember for the message, and refuse."""
        del host, addr, port
        self.shown = key
        return False

    def public_key_auth_requested(self) -> None:
        """Asked when all keys were refused."""
        self._note_methods()

    def password_auth_requested(self) -> None:
        """Asked when the password was refused."""
        self._note_methods()

    def _note_methods(self) -> None:
        if self.conn is not None:
            self.methods = tuple(self.conn.get_server_auth_methods())

    @property
    def stage(self) -> Stage:
        """How far the connection came."""
        if self.conn is None:
            return self._stage
        if self.conn.get_server_host_key() is not None:
            return Stage.HOST_KEY
        has_banner = bool(self.conn.get_extra_info("server_version"))
        return Stage.BANNER if has_banner else Stage.NOTHING


class QuickAck(asyncio.Protocol):
    """Stands between socket and connection while the login is under way.

    sshd writes several small packets in a row and, by Nagle's rule, waits for our
    acknowledgement of the first, which Linux delays by 40 ms. Asking for it at once halves
    the time to a first command on a LAN (91 to 49 ms, measured). The kernel forgets the wish,
    so it is repeated after each read.
    """

    def __init__(self, inner: asyncio.Protocol, user_timeout_s: float) -> None:
        self.inner = inner
        self._user_timeout_ms = int(user_timeout_s * 1000)
        self._transport: asyncio.Transport | None = None
        self._socket: socket.socket | None = None

    def step_aside(self) -> None:
        """Let the socket speak to the connection directly from now on."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.set_protocol(self.inner)
        self._transport = self._socket = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Set the socket's options."""
        self._transport = cast("asyncio.Transport", transport)
        self._socket = transport.get_extra_info("socket")
        # data that the board never acknowledges ends the connection, where Linux can do that
        self._set("TCP_USER_TIMEOUT", self._user_timeout_ms)
        self._set("TCP_NODELAY", 1)
        self.inner.connection_made(JoinedWrites(self._transport))
        self._set("TCP_QUICKACK", 1)

    def _set(self, option: str, value: int) -> None:
        number = getattr(socket, option, None)
        if self._socket is None or number is None:
            return
        try:
            self._socket.setsockopt(socket.IPPROTO_TCP, number, value)
        except OSError:
            self._socket = None  # closed meanwhile, or no TCP socket: nothing more to gain

    def data_received(self, data: bytes) -> None:
        """Hand on, then ask for an immediate acknowledgement of what comes next."""
        self.inner.data_received(data)
        self._set("TCP_QUICKACK", 1)

    def eof_received(self) -> bool | None:
        """Hand on."""
        return self.inner.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        """Hand on."""
        self._transport = self._socket = None
        self.inner.connection_lost(exc)


class Wire:
    """Opens the TCP connection for asyncssh, which takes it for a tunnel.

    Attributes:
        quick_ack: what stands in the middle, once TCP is open.
    """

    def __init__(self, timeout_s: float, user_timeout_s: float) -> None:
        self._timeout_s, self._user_timeout_s = timeout_s, user_timeout_s
        self.quick_ack: QuickAck | None = None

    async def create_connection(
        self, session_factory: Callable[[], asyncio.Protocol], remote_host: str, remote_port: int
    ) -> tuple[asyncio.Transport, asyncio.Protocol]:
        """As asyncssh asks a tunnel. Raises OSError; TimeoutError within the time limit."""
        async with asyncio.timeout(self._timeout_s):
            transport, middle = await asyncio.get_running_loop().create_connection(
                lambda: QuickAck(session_factory(), self._user_timeout_s),
                remote_host,
                remote_port,
            )
        self.quick_ack = middle
        return transport, middle.inner


async def dial(
    board: Board, context: SshContext, password: str | None
) -> tuple[asyncssh.SSHClientConnection, Login, QuickAck]:
    """Connect and log in, once.

    Raises ConnectError (DroppedBeforeLoginError among them), AuthError, HostKeyError, and
    TransportError when there is no algorithm in common.
    """
    limits = context.limits
    trusted = context.trusted_keys(board)
    login = Login()
    wire = Wire(
        min(TCP_TIMEOUT_S, limits.login_timeout_s),
        limits.keepalive_s * (limits.keepalive_count + 1),
    )
    try:
        async with asyncio.timeout(limits.login_timeout_s):
            conn = await _connect(board, context, trusted, password, wire=wire, login=login)
    except asyncssh.HostKeyNotVerifiable as exc:
        if login.shown is None:  # an invalid certificate, or a key that does not decode
            raise explain_login(exc, board, login.stage, login.methods) from exc
        raise trusted.judge(board, login.shown) from exc
    except TimeoutError as exc:
        raise _explain_timeout(board, limits.login_timeout_s, wire, login, exc) from exc
    except PEER_FAULTS as exc:
        raise explain_login(exc, board, login.stage, login.methods) from exc
    return conn, login, cast("QuickAck", wire.quick_ack)


async def _connect(
    board: Board,
    context: SshContext,
    trusted: TrustedKeys,
    password: str | None,
    *,
    wire: Wire,
    login: Login,
) -> asyncssh.SSHClientConnection:
    if password is None and IS_KNOWN:
        options = copy(_shared_options(board, context, trusted))
        options.host, options.port = board.host, board.port
        x509: tuple[()] = ()
        keys = trusted.keys, trusted.authorities, trusted.revoked
        options.known_hosts = (*keys, x509, x509, x509, x509)
        options.protocol_factory = lambda: login
        return await connect_lean(options, wire)
    has_key = password is None or board.identity_file is not None
    methods = (["publickey"] if has_key else []) + (
        ["password", "keyboard-interactive"] if password is not None else []
    )
    return await asyncssh.connect(
        board.host,
        board.port,
        tunnel=wire,
        client_factory=lambda: login,
        client_keys=list(context.login_keys(board)) if has_key else None,
        password=password,
        preferred_auth=methods,
        known_hosts=(trusted.keys, trusted.authorities, trusted.revoked),
        **_settings(board, context.limits, trusted.algorithms(board)),
    )


class _Settings(TypedDict):
    """Keywords of `asyncssh.connect`."""

    config: None
    username: str
    agent_path: None
    gss_host: None
    gss_kex: bool
    gss_auth: bool
    x509_trusted_certs: None
    x509_trusted_cert_paths: list[str]
    server_host_key_algs: list[str]
    kex_algs: str
    encryption_algs: str
    compression_algs: None
    login_timeout: float
    keepalive_interval: float
    keepalive_count_max: int


def _settings(board: Board, limits: ConnectionLimits, algorithms: list[str]) -> _Settings:
    # Nothing of the user's own SSH set-up may leak in, hence the many None.
    return {
        "config": None,
        "username": board.user,
        "agent_path": None,
        "gss_host": None,
        "gss_kex": False,
        "gss_auth": False,
        "x509_trusted_certs": None,
        "x509_trusted_cert_paths": [],
        "server_host_key_algs": algorithms,
        "kex_algs": KEY_EXCHANGE,
        "encryption_algs": CIPHERS,
        "compression_algs": None,
        "login_timeout": 0,  # ours is around the call
        "keepalive_interval": limits.keepalive_s,
        "keepalive_count_max": limits.keepalive_count,
    }


def _shared_options(
    board: Board, context: SshContext, trusted: TrustedKeys
) -> asyncssh.SSHClientConnectionOptions:
    """Those of all boards with this user, key and host key algorithm, put together once."""
    keys, algorithms = context.login_keys(board), trusted.algorithms(board)
    known = (board.user, keys, tuple(algorithms))
    options = context.options.get(known)
    if options is None:
        options = context.options[known] = asyncssh.SSHClientConnectionOptions(
            client_keys=list(keys),
            preferred_auth=["publickey"],
            **_settings(board, context.limits, algorithms),
        )
    return options


def _explain_timeout(
    board: Board, login_timeout_s: float, wire: Wire, login: Login, exc: TimeoutError
) -> TransportError:
    if wire.quick_ack is None:
        return explain_login(exc, board, Stage.NOTHING)
    if login.stage is Stage.NOTHING:
        seen = f"{address_of(board)} accepts connections, but sends no SSH banner"
        remedy = "The board hangs, or another service listens there. A power cycle may help"
    else:
        seen = f"{address_of(board)} did not finish the login"
        remedy = "The board may be overloaded; login_timeout_s in the inventory allows more time"
    return ConnectError(
        "connect", f"{seen} within {login_timeout_s:g} s", board=board.name, remedy=remedy
    )
