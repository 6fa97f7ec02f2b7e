"""Commands over one established SSH connection."""

import asyncio
import shlex
from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol

import asyncssh

from farm.drivers.transports.framing import frame_command
from farm.drivers.transports.ssh_dial import QuickAck
from farm.drivers.transports.ssh_errors import PEER_FAULTS, explain_loss
from farm.drivers.transports.ssh_session import CommandSession, SessionChannel
from farm.errors import CommandTimeoutError, FarmError, LinkLostError, TransportError

SESSIONS = 8
"""At once on one connection. OpenSSH's MaxSessions is 10 (sshd_config(5)); the rest is for
ending what timed out."""

OPEN_TRIES = 6
OPEN_PAUSE_S = 0.05
"""Doubled after each try, 1.55 s in all: sshd counts a session for a moment after its end."""

CLOSE_TIMEOUT_S = 2.0
KILL_TIMEOUT_S = 5.0

# $1 is the pid of the command's sh, $2 its token, which its command line contains: a pid that
# was given to another process since is left alone. The whole group is only killed if it is the
# one of that sh or of its parent: a server that makes no group for a session (dropbear) would
# kill itself otherwise. sshd before 7.9 ignores SSH's own signal requests.
_KILL = """grep -q "$2" "/proc/$1/cmdline" || exit 0
pid=$1
read -r line <"/proc/$pid/stat"
set -- ${line##*) }
group=$pid
case $3 in "$pid"|"$2") group=-$3 ;; esac
kill -TERM "$group"
(sleep 2; kill -KILL "$group") >/dev/null 2>&1 </dev/null &"""


def shown(argv: Sequence[str]) -> str:
    """A command as messages name it."""
    text = shlex.join(argv)
    return text if len(text) <= 80 else f"{text[:77]}..."  # noqa: PLR2004 - one line


class Connection(Protocol):
    """What a link needs of the SSH library's connection; asyncssh's own has it."""

    @abstractmethod
    async def create_session(
        self, session_factory: Callable[[], CommandSession], command: str, *, encoding: None
    ) -> tuple[SessionChannel, object]:
        """Start a command, whose session hears of all that follows. Raises PEER_FAULTS."""

    @abstractmethod
    def close(self) -> None:
        """Begin to close politely."""

    @abstractmethod
    def abort(self) -> None:
        """Close at once."""

    @abstractmethod
    async def wait_closed(self) -> None:
        """Wait until it is closed."""


class Fate(Protocol):
    """Whether the connection is gone, and why if that is known."""

    @property
    @abstractmethod
    def is_lost(self) -> bool:
        """The connection is gone."""

    @property
    @abstractmethod
    def reason(self) -> Exception | None:
        """Why."""


class Link:
    """An established connection. It does not come back: a new one is a new `Link`."""

    def __init__(
        self, board: str, conn: Connection, fate: Fate, quick_ack: QuickAck | None = None
    ) -> None:
        self.board = board
        self._conn, self._fate = conn, fate
        self._quick_ack = quick_ack
        self._slots = asyncio.Semaphore(SESSIONS)

    @property
    def is_alive(self) -> bool:
        """False once the connection is known to be gone."""
        return not self._fate.is_lost

    async def close(self) -> None:
        """Close politely, or in CLOSE_TIMEOUT_S by force."""
        self._conn.close()
        try:
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                await self._conn.wait_closed()
        except TimeoutError:
            self._conn.abort()

    def command(
        self,
        step: str,
        on_stdout: Callable[[bytes], None],
        on_stderr: Callable[[bytes], None] | None = None,
    ) -> CommandSession:
        """A session to be started with `start`; `step` names it in messages."""
        return CommandSession(step, self.board, on_stdout, on_stderr)

    async def start(
        self, session: CommandSession, argv: Sequence[str], *, timeout_s: float
    ) -> None:
        """Start a command; its place among the sessions is free again when it ends.

        Raises LinkLostError, TransportError, CommandTimeoutError.
        """
        try:
            async with asyncio.timeout(timeout_s):
                await self._slots.acquire()
                session.when_ended(self._slots.release)
                try:
                    await self._request(session, argv)
                except BaseException:
                    session.finish(None)  # gives its place back
                    raise
        except TimeoutError as exc:
            raise self.too_late(session.step, timeout_s) from exc

    async def _request(self, session: CommandSession, argv: Sequence[str]) -> None:
        try:
            command = frame_command(argv, session.token)
        except ValueError as exc:
            raise TransportError(session.step, str(exc), board=self.board) from exc
        if not self.is_alive:
            raise explain_loss(self._fate.reason, self.board, session.step)
        try:
            await self._open(session, command)
        except PEER_FAULTS as exc:
            raise explain_loss(exc, self.board, session.step) from exc
        if self._quick_ack is not None:
            self._quick_ack.step_aside()
            self._quick_ack = None

    async def _open(self, session: CommandSession, command: str) -> None:
        for tried in range(1, OPEN_TRIES + 1):
            opening = asyncio.create_task(self._create(session, command))
            try:
                # shielded: a channel half open would keep its place on the board for ever
                await asyncio.shield(opening)
            except asyncio.CancelledError:
                opening.add_done_callback(_abort_late)
                raise
            except asyncssh.ChannelOpenError:
                if tried == OPEN_TRIES or not self.is_alive or session.has_begun:
                    raise
            else:
                return
            await asyncio.sleep(OPEN_PAUSE_S * 2 ** (tried - 1))

    async def _create(self, session: CommandSession, command: str) -> SessionChannel:
        channel, _ = await self._conn.create_session(lambda: session, command, encoding=None)
        return channel

    async def end(self, session: CommandSession) -> None:
        """End a command that may still run: close its channel, kill what it started."""
        pid, is_over = session.pid, session.has_ended
        session.abort()
        if not pid or is_over or not self.is_alive:
            return
        argv = ("sh", "-c", _KILL, "sh", str(pid), session.token)
        killing = self.command("kill", lambda _: None)
        with suppress(FarmError, TimeoutError):
            async with asyncio.timeout(KILL_TIMEOUT_S):
                await self._request(killing, argv)
                killing.write_eof()
                await killing.wait()
        killing.abort()

    def too_late(self, step: str, timeout_s: float) -> CommandTimeoutError:
        """The error for what did not end within its limit."""
        return CommandTimeoutError(
            step,
            f"not done within {timeout_s:g} s",
            board=self.board,
            remedy="Allow more time if the board is slow, or look at what loads it",
        )

    async def finish(self, session: CommandSession, timeout_s: float, limit_s: float) -> int:
        """Wait for the end of a command; kill it after `timeout_s`.

        `limit_s` is what the message calls the limit. Raises as `CommandSession.wait`, and
        CommandTimeoutError.
        """
        try:
            async with asyncio.timeout(timeout_s):
                return await session.wait()
        except TimeoutError as exc:
            await self.end(session)
            raise self.too_late(session.step, limit_s) from exc
        finally:
            session.abort()


def lost_before(board: str, step: str) -> LinkLostError:
    """The error of an operation on a transport that has no connection."""
    return LinkLostError(step, "there is no connection", board=board, remedy="Connect first")


def _abort_late(opening: "asyncio.Task[SessionChannel]") -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().abort()
