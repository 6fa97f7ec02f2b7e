"""Runs commands and moves files over a kept `Link`, whatever SSH library opened it."""

import asyncio
import secrets
import time
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Self

from farm.drivers.transports.file_transfer import get_file, put_files
from farm.drivers.transports.ssh_context import SshContext
from farm.drivers.transports.ssh_errors import DroppedBeforeLoginError
from farm.drivers.transports.ssh_link import Link, lost_before, shown
from farm.drivers.transports.ssh_session import CommandSession
from farm.errors import LinkLostError, TransportError
from farm.interfaces.transport import CommandResult, Stream, Transport
from farm.model.board import Board

OUTPUT_LIMIT = 64 * 1024 * 1024
"""Bytes of stdout, and of stderr, that a command may print: a board must not fill our memory."""

START_TIMEOUT_S = 60.0
"""For starting a stream: covers the wait for one of the sessions and a loaded board. Assumed."""

CONNECT_TRIES = 3
DROP_PAUSE_S = 0.5
"""A board that drops connections before the login (MaxStartups) does so for a moment."""


class SshTransport(Transport):
    """One kept connection to one board.

    Args:
        board: how to reach it.
        context: what the process's connections share.
        password: the login password itself, where the board has no key; never stored.
        output_limit: bytes that a command may print to stdout, and to stderr.
    """

    def __init__(
        self,
        board: Board,
        context: SshContext,
        *,
        password: str | None = None,
        output_limit: int = OUTPUT_LIMIT,
    ) -> None:
        self._board, self._context, self._password = board, context, password
        self._output_limit = output_limit
        self._link: Link | None = None
        self._connecting = asyncio.Lock()

    @property
    def is_connected(self) -> bool:
        """False once the link is known to be dead."""
        return self._link is not None and self._link.is_alive

    async def connect(self) -> Self:
        """Open the connection unless it is open; drops before the login are tried again.

        Raises ConnectError, AuthError, HostKeyError, and TransportError when there is no
        algorithm in common.
        """
        async with self._connecting:
            if not self.is_connected:
                self._link = await self._dial()
        return self

    async def _dial(self) -> Link:
        tried = 0
        while True:
            tried += 1
            try:
                async with self._context.turn():
                    return await self._open(self._board, self._context, self._password)
            except DroppedBeforeLoginError:
                if tried >= CONNECT_TRIES:
                    raise
            # jitter, so that a fleet behind one server does not come back all at once
            await asyncio.sleep(DROP_PAUSE_S * tried * (0.5 + secrets.randbelow(1000) / 1000))

    @abstractmethod
    async def _open(self, board: Board, context: SshContext, password: str | None) -> Link:
        """Connect and log in, once. Raises as `connect`, and DroppedBeforeLoginError."""

    async def close(self) -> None:
        """Close; bounded in time, never raises."""
        link, self._link = self._link, None
        if link is not None:
            await link.close()

    async def run(
        self, argv: Sequence[str], *, timeout_s: float, stdin: bytes = b""
    ) -> CommandResult:
        """Run a command to its end; see `farm.interfaces.transport`.

        Raises LinkLostError, CommandTimeoutError (what was started is killed), and
        TransportError: the login shell refuses, or the output passes the limit.
        """
        link = self._open_link(shown(argv))
        started = time.monotonic()
        stdout, stderr = bytearray(), bytearray()

        def take(into: bytearray, data: bytes) -> None:
            into.extend(data)
            if len(into) > self._output_limit:
                self._refuse_output(session)

        session = link.command(shown(argv), partial(take, stdout), partial(take, stderr))
        await link.start(session, argv, timeout_s=timeout_s)
        _send(session, stdin)
        left_s = timeout_s - (time.monotonic() - started)
        status = await link.finish(session, left_s, timeout_s)
        return CommandResult(
            tuple(argv), status, bytes(stdout), bytes(stderr), time.monotonic() - started
        )

    def _refuse_output(self, session: CommandSession) -> None:
        session.fail(
            TransportError(
                session.step,
                f"the command printed more than {self._output_limit} bytes",
                board=self._board.name,
                remedy="Let it write into a file on the board and fetch that",
            )
        )

    async def stream(
        self,
        argv: Sequence[str],
        on_stdout: Callable[[bytes], None],
        on_stderr: Callable[[bytes], None] | None = None,
        on_lost: Callable[[], None] | None = None,
    ) -> Stream:
        """Start a command and deliver its output in chunks; `farm.interfaces.transport`."""
        link = self._open_link(shown(argv))
        session = link.command(shown(argv), on_stdout, on_stderr)
        await link.start(session, argv, timeout_s=START_TIMEOUT_S)
        if on_lost is not None:
            session.when_ended(on_lost)
        return SshStream(link, session)

    async def put(
        self, files: Mapping[str, Path | bytes], folder: str, *, timeout_s: float
    ) -> None:
        """Write files below `folder`, all hashed on the board before the first is renamed."""
        await put_files(self._open_link(f"put into {folder}"), files, folder, timeout_s)

    async def get(self, path: str, target: Path, *, timeout_s: float) -> None:
        """Copy one file from the board, hash checked."""
        await get_file(self._open_link(f"get {path}"), path, target, timeout_s)

    def _open_link(self, step: str) -> Link:
        if self._link is None:
            raise lost_before(self._board.name, step)
        return self._link


class SshStream(Stream):
    """A running command with its stdin open."""

    def __init__(self, link: Link, session: CommandSession) -> None:
        self._link, self._session = link, session

    def write(self, data: bytes) -> None:
        """Queue bytes for stdin. Raises LinkLostError when the command or the link ended."""
        self._session.write(data)

    async def drain(self) -> None:
        """Wait until the queue is short. Raises LinkLostError as `write`."""
        await self._session.drain()
        if self._session.has_ended:
            self._session.write(b"")

    def end_input(self) -> None:
        """Close stdin once all is sent."""
        self._session.write_eof()

    async def wait(self, timeout_s: float) -> int:
        """Wait for the end; the exit status. The command goes on after a time-out."""
        try:
            async with asyncio.timeout(timeout_s):
                return await self._session.wait()
        except TimeoutError as exc:
            raise self._link.too_late(self._session.step, timeout_s) from exc

    async def close(self) -> None:
        """End the command; in a few seconds at most, never raises."""
        await self._link.end(self._session)


def _send(session: CommandSession, stdin: bytes) -> None:
    with suppress(LinkLostError):  # a command may end without reading; its status will tell
        session.write(stdin)
        session.write_eof()
