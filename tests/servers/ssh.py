"""An SSH server in the test's process: one board with its own root folder, and faults on demand.

Commands are real processes of /bin/sh. Links can be cut, commands stay, as on a board.
"""

import asyncio
import os
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import asyncssh

from farm.model.board import Board
from tests.servers.served import Served
from tests.servers.ssh_keys import make_key, write_key, write_known_hosts

PIECE = 64 * 1024


@dataclass
class Faults:
    """What goes wrong from now on. Counts are of what is still to come."""

    refuse_login: bool = False
    drops_before_login: int = 0
    hang_commands: bool = False
    end_without_status: bool = False
    cut_after_bytes: int | None = None  # of output, over all commands
    refuse_sessions: bool = False


@dataclass
class SshServer(Served):
    """An async context manager; `port` is known inside. `password` opens a login without key."""

    root: Path
    password: str | None = None
    keyboard_interactive: bool = False
    faults: Faults = field(default_factory=Faults)
    port: int = 0
    logins: int = 0
    connections: set[asyncssh.SSHServerConnection] = field(default_factory=set)
    _processes: list[Process] = field(default_factory=list)
    _serving: set["asyncio.Task[None]"] = field(default_factory=set)
    _acceptor: asyncssh.SSHAcceptor | None = None

    async def come_up(self) -> None:
        self.root.mkdir(parents=True, exist_ok=True)
        await self.listen()

    async def go_down(self) -> None:
        await self.stop_listening()
        await self.cut()
        for process in self._processes:
            _kill_group(process)
            await process.wait()
        await asyncio.gather(*self._serving, return_exceptions=True)

    async def listen(self) -> None:
        self._acceptor = await asyncssh.listen(
            "127.0.0.1",
            self.port,
            server_factory=lambda: _Login(self),
            server_host_keys=[make_key("host")],
            process_factory=self._serve,
            encoding=None,
            line_editor=False,
            compression_algs=None,
        )
        self.port = self._acceptor.get_port()

    async def stop_listening(self) -> None:
        if self._acceptor is not None:
            self._acceptor.close()
            await self._acceptor.wait_closed()

    async def cut(self) -> None:
        """End all connections without a word."""
        gone = list(self.connections)
        for connection in gone:
            connection.abort()
        for connection in gone:
            await connection.wait_closed()

    def board(self, name: str = "board", *, has_key: bool = True) -> Board:
        """How to reach it; the keys are right."""
        folder = self.root.parent
        return Board(
            name=name,
            profile="any",
            host="127.0.0.1",
            port=self.port,
            user="farm",
            identity_file=write_key(folder, "login") if has_key else None,
            known_hosts=write_known_hosts(
                folder / f"known_hosts_{self.port}", self.port, make_key("host")
            ),
        )

    async def _serve(self, process: asyncssh.SSHServerProcess[bytes]) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)
        if self.faults.hang_commands:
            await process.stdin.read()
            return
        command = await asyncio.create_subprocess_exec(
            *("/bin/sh", "-c", process.command or "exit 0"),
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            cwd=self.root,
            env={"HOME": str(self.root), "PATH": os.environ["PATH"], "LC_ALL": "C"},
            start_new_session=True,
        )
        self._processes.append(command)
        assert command.stdout is not None
        assert command.stderr is not None
        feeding = asyncio.create_task(_feed(process, command))
        try:
            await asyncio.gather(
                self._deliver(command.stdout, process, process.stdout),
                self._deliver(command.stderr, process, process.stderr),
            )
            status = await command.wait()
        finally:
            feeding.cancel()
            await asyncio.gather(feeding, return_exceptions=True)
        if self.faults.end_without_status:
            process.channel.close()
        elif not process.is_closing():
            process.exit(status if status >= 0 else 255)

    async def _deliver(
        self,
        source: asyncio.StreamReader,
        process: asyncssh.SSHServerProcess[bytes],
        to: asyncssh.SSHWriter[bytes],
    ) -> None:
        while data := await source.read(PIECE):
            if process.is_closing():
                continue  # the link is gone, the command is not
            left = self.faults.cut_after_bytes
            if left is not None:
                self.faults.cut_after_bytes = left - len(data)
                data = data[:left]
            try:
                to.write(data)
                await to.drain()
            except (OSError, asyncssh.Error):
                continue
            if self.faults.cut_after_bytes is not None and self.faults.cut_after_bytes <= 0:
                process.channel.get_connection().abort()


class _Login(asyncssh.SSHServer):
    def __init__(self, server: SshServer) -> None:
        self._server = server
        self._connection: asyncssh.SSHServerConnection | None = None

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._connection = conn
        self._server.connections.add(conn)
        if self._server.faults.drops_before_login > 0:
            self._server.faults.drops_before_login -= 1
            conn.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._connection is not None:
            self._server.connections.discard(self._connection)

    def begin_auth(self, username: str) -> bool:
        self._server.logins += 1
        return True

    def public_key_auth_supported(self) -> bool:
        return self._server.password is None

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        is_known = key == make_key("login").convert_to_public()
        return is_known and not self._server.faults.refuse_login

    def password_auth_supported(self) -> bool:
        return self._server.password is not None and not self._server.keyboard_interactive

    def validate_password(self, username: str, password: str) -> bool:
        return password == self._server.password

    def kbdint_auth_supported(self) -> bool:
        return self._server.password is not None and self._server.keyboard_interactive

    def get_kbdint_challenge(
        self, username: str, lang: str, submethods: str
    ) -> tuple[str, str, str, list[tuple[str, bool]]]:
        return "", "", "", [("Password:", False)]

    def validate_kbdint_response(self, username: str, responses: Sequence[str]) -> bool:
        return list(responses) == [self._server.password]


async def _feed(process: asyncssh.SSHServerProcess[bytes], command: Process) -> None:
    assert command.stdin is not None
    try:
        while data := await process.stdin.read(PIECE):
            command.stdin.write(data)
            await command.stdin.drain()
    except (OSError, asyncssh.Error):
        pass  # one of the two ended
    finally:
        command.stdin.close()


def _kill_group(process: Process) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
