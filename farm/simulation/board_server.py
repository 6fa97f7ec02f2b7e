"""The SSH server of one simulated board: real sessions with real processes.

Only the lab's client key may log in. A session's command runs through ``/bin/sh -c`` in a
process session of its own; when its channel closes first, its process group gets SIGHUP, and
what it has detached runs on, as on a board.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping
from pathlib import Path

import asyncssh

from farm.simulation.board_link import BoardLink

_LOGIN_TIMEOUT_S = 30
_CHUNK = 64 * 1024


class _Login(asyncssh.SSHServer):
    """Lets in the board's user with the lab's key, and nobody else."""

    def __init__(self, server: "BoardServer") -> None:
        self._server = server
        self._connection: asyncssh.SSHServerConnection | None = None

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._connection = conn
        self._server.connections.add(conn)

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        if self._connection is not None:
            self._server.connections.discard(self._connection)

    def begin_auth(self, username: str) -> bool:
        del username
        return True

    def public_key_auth_supported(self) -> bool:
        return True

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        return username == self._server.user and key == self._server.client_key


class _HomeSftp(asyncssh.SFTPServer):
    """SFTP that sees the same paths as the commands do: relative ones begin at home."""

    def __init__(self, channel: asyncssh.SSHServerChannel[bytes], home: Path) -> None:
        super().__init__(channel)
        self._home = os.fsencode(home)

    def map_path(self, path: bytes) -> bytes:
        return os.path.join(self._home, path)  # noqa: PTH118 -- bytes, which pathlib has not


class BoardServer:
    """Listens on the board's address while the board is on.

    Args:
        host: a loopback address.
        port: its port.
        user: the only user name that is let in.
        host_key: the board's own private key.
        client_key: the lab's public key.
        environment: all that a session's processes get; ``HOME`` is where they begin.
        link: what its connections go through.
    """

    def __init__(
        self,
        host: str,
        port: int,
        *,
        user: str,
        host_key: asyncssh.SSHKey,
        client_key: asyncssh.SSHKey,
        environment: Mapping[str, str],
        link: BoardLink,
    ) -> None:
        self._host, self._port, self._link = host, port, link
        self.user, self.host_key, self.client_key = user, host_key, client_key
        self._environment = dict(environment)
        self.connections: set[asyncssh.SSHServerConnection] = set()
        self._children: set[asyncio.Task[int]] = set()
        self._acceptor: asyncssh.SSHAcceptor | None = None
        self._boots = 0

    async def listen(self) -> None:
        """Begin to accept connections. Raises OSError when the address is in use."""
        home = Path(self._environment["HOME"])
        self._acceptor = await asyncssh.listen(
            self._host,
            self._port,
            tunnel=self._link,
            server_factory=lambda: _Login(self),
            server_host_keys=[self.host_key],
            process_factory=self._session,
            sftp_factory=lambda channel: _HomeSftp(channel, home),
            allow_scp=True,
            encoding=None,
            line_editor=False,
            login_timeout=_LOGIN_TIMEOUT_S,
            compression_algs=["none"],
            agent_forwarding=False,
            config=[],
        )

    async def drop(self) -> None:
        """Stop listening and cut every connection, without a word to the other side."""
        self._boots += 1
        if self._acceptor is not None:
            self._acceptor.close()
            await self._acceptor.wait_closed()
            self._acceptor = None
        for connection in list(self.connections):
            connection.abort()
        self.connections.clear()

    async def reap(self) -> None:
        """Wait for the sessions' processes, which the caller has ended."""
        if self._children:
            await asyncio.wait(self._children, timeout=10)

    async def _session(self, process: asyncssh.SSHServerProcess[bytes]) -> None:
        boots = self._boots
        child = await asyncio.create_subprocess_exec(
            "/bin/sh",
            *(("-c", process.command) if process.command else ()),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=self._environment["HOME"],
            env=self._environment,
            start_new_session=True,
        )
        if boots != self._boots:  # the power went while the process began
            _signal_group(child.pid, signal.SIGKILL)
        ended = asyncio.create_task(child.wait())
        self._children.add(ended)
        ended.add_done_callback(self._children.discard)
        feed = asyncio.create_task(_feed(process, child))
        finish = asyncio.create_task(_finish(process, child, ended))
        closed = asyncio.create_task(process.wait_closed())
        await asyncio.wait({finish, closed}, return_when=asyncio.FIRST_COMPLETED)
        for task in (feed, finish, closed):
            task.cancel()
        await asyncio.gather(feed, finish, closed, return_exceptions=True)
        if not ended.done():
            _signal_group(child.pid, signal.SIGHUP)


async def _feed(
    process: asyncssh.SSHServerProcess[bytes], child: asyncio.subprocess.Process
) -> None:
    """What the client writes goes to the child, and so do its signals."""
    if child.stdin is None:
        return
    with contextlib.suppress(OSError, asyncssh.ConnectionLost):
        while True:
            try:
                data = await process.stdin.read(_CHUNK)
            except asyncssh.SignalReceived as received:
                number = getattr(signal, f"SIG{received.signal}", None)
                if isinstance(number, signal.Signals):
                    _signal_group(child.pid, number)
                continue
            except (asyncssh.BreakReceived, asyncssh.TerminalSizeChanged):
                continue
            if not data:
                break
            child.stdin.write(data)
            await child.stdin.drain()
    child.stdin.close()


async def _finish(
    process: asyncssh.SSHServerProcess[bytes],
    child: asyncio.subprocess.Process,
    ended: "asyncio.Task[int]",
) -> None:
    """Send all output, then how the command ended: an exit before the drain loses output."""
    with contextlib.suppress(OSError, asyncssh.ConnectionLost):
        await asyncio.gather(
            _pump(child.stdout, process.stdout), _pump(child.stderr, process.stderr)
        )
        status = await asyncio.shield(ended)
        if status >= 0:
            process.exit(status)
        else:
            process.exit_with_signal(signal.Signals(-status).name.removeprefix("SIG"))


async def _pump(source: asyncio.StreamReader | None, target: asyncssh.SSHWriter[bytes]) -> None:
    while source is not None and (data := await source.read(_CHUNK)):
        target.write(data)
        await target.drain()


def _signal_group(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, number)
