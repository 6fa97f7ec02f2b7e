"""Both SSH drivers: logins that fail, each in its own way, and commands that end oddly."""

import asyncio
import getpass
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol

import pytest

from farm.drivers.transports.asyncssh import AsyncsshTransport
from farm.drivers.transports.fabric import FabricTransport
from farm.drivers.transports.ssh_context import SshContext
from farm.drivers.transports.ssh_transport import CONNECT_TRIES, OUTPUT_LIMIT, SshTransport
from farm.errors import AuthError, ConnectError, HostKeyError, LinkLostError, TransportError
from farm.model.board import Board, ConnectionLimits
from farm.testing.transport_rig import demand_error, soon, text_of
from tests.drivers.transports.fabric_rigs import no_thread_is_left
from tests.servers.ssh import SshServer
from tests.servers.ssh_keys import make_key, public_line, write_key, write_known_hosts

LIMITS = ConnectionLimits(starts_per_s=1000.0, login_timeout_s=30.0)
SECRET = "correct horse battery"


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[SshServer]:
    async with SshServer(tmp_path / "root") as running:
        yield running


class Maker(Protocol):
    """Makes the transport under test."""

    def __call__(
        self,
        board: Board,
        password: str | None = None,
        *,
        limits: ConnectionLimits = LIMITS,
        output_limit: int = OUTPUT_LIMIT,
    ) -> SshTransport: ...


@pytest.fixture(params=[AsyncsshTransport, FabricTransport], ids=["asyncssh", "fabric"])
async def transport_to(request: pytest.FixtureRequest) -> AsyncIterator[Maker]:
    """Each test must leave no thread behind."""

    def make(
        board: Board,
        password: str | None = None,
        *,
        limits: ConnectionLimits = LIMITS,
        output_limit: int = OUTPUT_LIMIT,
    ) -> SshTransport:
        kind: type[SshTransport] = request.param
        return kind(board, SshContext(limits), password=password, output_limit=output_limit)

    yield make
    await no_thread_is_left()


@asynccontextmanager
async def socket_server(
    answer: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
) -> AsyncIterator[int]:
    """A TCP server on loopback that is no SSH server."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await answer(reader, writer)
        finally:
            writer.close()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with listening:
        port: int = listening.sockets[0].getsockname()[1]
        yield port


def bare_board(tmp_path: Path, port: int) -> Board:
    return Board(
        name="bare",
        profile="any",
        host="127.0.0.1",
        port=port,
        user=getpass.getuser(),
        identity_file=write_key(tmp_path, "login"),
        known_hosts=write_known_hosts(tmp_path / "known_hosts", port, make_key("host")),
    )


async def test_nobody_listens(transport_to: Maker, server: SshServer) -> None:
    board = server.board()
    await server.stop_listening()
    error = await demand_error(ConnectError, transport_to(board).connect())
    assert "refused" in error.seen
    assert str(board.port) in error.seen
    assert error.remedy


async def test_silent_port_is_told_from_a_slow_login(transport_to: Maker, tmp_path: Path) -> None:
    """A hung board's kernel still accepts connections."""

    async def hang(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.read()

    limits = ConnectionLimits(starts_per_s=1000.0, login_timeout_s=0.5)
    async with socket_server(hang) as port:
        transport = transport_to(bare_board(tmp_path, port), limits=limits)
        error = await demand_error(ConnectError, transport.connect())
    assert "no SSH banner" in error.seen
    assert "0.5 s" in error.seen


async def test_login_that_never_ends(transport_to: Maker, tmp_path: Path) -> None:
    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-slow\r\n")
        await reader.read()

    limits = ConnectionLimits(starts_per_s=1000.0, login_timeout_s=0.5)
    async with socket_server(greet) as port:
        transport = transport_to(bare_board(tmp_path, port), limits=limits)
        error = await demand_error(ConnectError, transport.connect())
    assert "did not finish the login" in error.seen


async def test_cancelled_connect_ends_at_once(transport_to: Maker, tmp_path: Path) -> None:
    """The socket is closed: the peer sees it, and no thread waits on."""
    came, left = asyncio.Event(), asyncio.Event()

    async def hang(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        came.set()
        await reader.read()
        left.set()

    async with socket_server(hang) as port:
        connecting = asyncio.create_task(transport_to(bare_board(tmp_path, port)).connect())
        await soon(came.wait())
        connecting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await connecting
        await soon(left.wait())
        await no_thread_is_left()


@pytest.mark.parametrize(
    "words",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n" * 2000,
        b"SSH-1.5-ancient\r\n",
        b"SSH-2.0-\xff\xff\r\n",
        b"SSH-2.0-x\r\n" + b"\xff" * 100,
        b"SSH-2.0-x\r\n\x00\x00\x00\x0c\x0a\x14\x00" + bytes(9),
    ],
)
async def test_what_is_no_ssh_server(transport_to: Maker, tmp_path: Path, words: bytes) -> None:
    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(words)
        await reader.read()

    async with socket_server(speak) as port:
        error = await demand_error(
            TransportError, transport_to(bare_board(tmp_path, port)).connect()
        )
    is_without_algorithms = words.endswith(bytes(9))  # some say so, and do not try again
    assert isinstance(error, ConnectError) or is_without_algorithms


async def test_drops_before_the_login_are_tried_again(
    transport_to: Maker, server: SshServer
) -> None:
    server.faults.drops_before_login = CONNECT_TRIES - 1
    transport = await soon(transport_to(server.board()).connect())
    assert await text_of(transport, "echo in") == "in\n"
    assert server.logins == 1
    await transport.close()


async def test_drops_are_not_tried_for_ever(transport_to: Maker, server: SshServer) -> None:
    server.faults.drops_before_login = 100
    error = await demand_error(ConnectError, transport_to(server.board()).connect())
    assert error.retryable
    assert server.faults.drops_before_login == 100 - CONNECT_TRIES


async def test_refused_login_is_tried_once(transport_to: Maker, server: SshServer) -> None:
    server.faults.refuse_login = True
    error = await demand_error(AuthError, transport_to(server.board()).connect())
    assert server.logins == 1
    assert "'farm'" in error.seen
    assert "publickey" in error.seen
    assert "authorized_keys" in error.remedy
    assert not error.retryable


async def test_next_key_is_tried_when_one_is_refused(
    transport_to: Maker, server: SshServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "home" / ".ssh"
    folder.mkdir(parents=True)
    make_key("foreign").write_private_key(folder / "id_ed25519")
    make_key("login").write_private_key(folder / "id_ecdsa")
    monkeypatch.setenv("HOME", str(folder.parent))
    transport = await soon(transport_to(server.board(has_key=False)).connect())
    assert await text_of(transport, "echo in") == "in\n"
    assert server.logins == 1
    await transport.close()


@pytest.mark.parametrize("keyboard_interactive", [False, True])
async def test_password_login(
    transport_to: Maker, tmp_path: Path, keyboard_interactive: bool
) -> None:
    async with SshServer(
        tmp_path / "root", password=SECRET, keyboard_interactive=keyboard_interactive
    ) as server:
        board = server.board(has_key=False)
        transport = await soon(transport_to(board, SECRET).connect())
        assert await text_of(transport, "echo in") == "in\n"
        await transport.close()
        error = await demand_error(AuthError, transport_to(board, f"wrong {SECRET}").connect())
        assert SECRET not in f"{error} {error!r} {error.__cause__!r}"


async def test_unknown_host_is_refused_with_what_it_showed(
    transport_to: Maker, server: SshServer, tmp_path: Path
) -> None:
    board = server.board().model_copy(update={"known_hosts": tmp_path / "absent"})
    error = await demand_error(HostKeyError, transport_to(board).connect())
    assert make_key("host").get_fingerprint() in error.seen
    assert "farm boards enroll board" in error.remedy
    assert server.logins == 0


async def test_host_keys_enrolled_meanwhile_are_seen(
    transport_to: Maker, server: SshServer, tmp_path: Path
) -> None:
    """By the same process: its cache of known_hosts follows the file."""
    path = tmp_path / "enrolled"
    path.write_text("")
    board = server.board().model_copy(update={"known_hosts": path})
    transport = transport_to(board)
    await demand_error(HostKeyError, transport.connect())
    path.write_text(f"[127.0.0.1]:{board.port} {public_line(make_key('host'))}\n")
    await soon(transport.connect())
    await transport.close()


async def test_users_own_ssh_set_up_does_not_leak_in(
    transport_to: Maker, server: SshServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither ~/.ssh/config nor an agent nor keys that lie there."""
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "config").write_text("Host *\n  User nobody\n  Port 1\n")
    make_key("foreign").write_private_key(home / ".ssh" / "id_ed25519")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "no-agent"))
    transport = await soon(transport_to(server.board()).connect())
    assert await text_of(transport, "echo in") == "in\n"
    await transport.close()


async def test_two_connects_at_once_make_one_connection(
    transport_to: Maker, server: SshServer
) -> None:
    transport = transport_to(server.board())
    await soon(asyncio.gather(transport.connect(), transport.connect()))
    assert server.logins == 1
    assert len(server.connections) == 1
    await transport.close()


async def test_command_that_ends_without_a_status_is_lost(
    transport_to: Maker, server: SshServer
) -> None:
    server.faults.end_without_status = True
    transport = await soon(transport_to(server.board()).connect())
    await demand_error(LinkLostError, transport.run(["true"], timeout_s=30))
    await transport.close()


@pytest.mark.parametrize("size", [0, 10, 25, 70_000])
async def test_output_cut_anywhere_is_lost(
    transport_to: Maker, server: SshServer, size: int
) -> None:
    """In the marker before it, behind it, and in the output."""
    transport = await soon(transport_to(server.board()).connect())
    server.faults.cut_after_bytes = size
    await demand_error(
        LinkLostError,
        transport.run(["head", "-c", "1000000", "/dev/zero"], timeout_s=30),
    )
    await transport.close()


async def test_output_without_end_is_bounded(transport_to: Maker, server: SshServer) -> None:
    transport = transport_to(server.board(), output_limit=1_000_000)
    await soon(transport.connect())
    error = await demand_error(TransportError, transport.run(["yes"], timeout_s=60))
    assert "1000000 bytes" in error.seen
    assert not error.retryable
    assert await text_of(transport, "echo alive") == "alive\n"
    await transport.close()


async def test_cancelled_command_leaves_the_link_usable(
    transport_to: Maker, server: SshServer
) -> None:
    transport = await soon(transport_to(server.board()).connect())
    for _ in range(12):  # more than there are places for sessions
        task = asyncio.create_task(transport.run(["sleep", "60"], timeout_s=60))
        await text_of(transport, "true")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert await text_of(transport, "echo alive") == "alive\n"
    await transport.close()


async def test_command_that_hangs_in_the_server_is_late(
    transport_to: Maker, server: SshServer
) -> None:
    """No marker ever comes; the wait is ours to end."""
    transport = await soon(transport_to(server.board()).connect())
    server.faults.hang_commands = True
    stream = await transport.stream(["cat"], lambda _: None)
    await soon(stream.close())
    await transport.close()


async def test_close_under_a_command_is_no_success(transport_to: Maker, server: SshServer) -> None:
    transport = await soon(transport_to(server.board()).connect())
    task = asyncio.create_task(transport.run(["sleep", "60"], timeout_s=60))
    await text_of(transport, "true")
    await transport.close()
    await demand_error(LinkLostError, task)
