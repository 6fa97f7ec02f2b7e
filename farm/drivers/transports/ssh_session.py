"""One command on one SSH channel: framed output, stdin with backpressure, one end."""

import asyncio
from abc import abstractmethod
from collections.abc import Callable
from typing import Protocol

import asyncssh

from farm.drivers.transports.framing import MarkedOutput, new_token, status_from_shell
from farm.drivers.transports.ssh_errors import explain_loss
from farm.errors import LinkLostError, TransportError

GRACE_S = 1.0
"""After the command's end, for output under way. A process left behind may hold the channel
open for ever (ronf/asyncssh#585)."""

_SEEN_LIMIT = 500  # characters of a shell's own words in a message


class SessionChannel(Protocol):
    """What a session needs of its channel; asyncssh's own has it."""

    @abstractmethod
    def write(self, data: bytes) -> None:
        """Queue bytes. Raises OSError when the channel is closed."""

    @abstractmethod
    def write_eof(self) -> None:
        """End the input once all is sent."""

    @abstractmethod
    def abort(self) -> None:
        """Close at once."""

    @abstractmethod
    def pause_reading(self) -> None:
        """Take no more output for now."""

    @abstractmethod
    def resume_reading(self) -> None:
        """Take output again."""


class CommandSession(asyncssh.SSHClientSession[bytes]):
    """A running command.

    Args:
        step: the words for what is done, in messages.
        board: the board's name, in messages.
        on_stdout: gets the command's output in chunks.
        on_stderr: the same for stderr, or None.

    Attributes:
        token: names the command in its frame, and in its process on the board.
    """

    def __init__(
        self,
        step: str,
        board: str,
        on_stdout: Callable[[bytes], None],
        on_stderr: Callable[[bytes], None] | None = None,
    ) -> None:
        self.step, self._board = step, board
        self.token = new_token()
        self._on_stdout, self._on_stderr = on_stdout, on_stderr
        self._on_end: list[Callable[[], None]] = []
        self._stdout, self._stderr = MarkedOutput(self.token), MarkedOutput(self.token)
        self._channel: SessionChannel | None = None
        self._exit_status: int | None = None
        self._grace: asyncio.TimerHandle | None = None
        self._cause: BaseException | None = None
        self._fault: TransportError | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self._ended = asyncio.Event()

    @property
    def has_begun(self) -> bool:
        """The board has opened the channel, whatever came of it."""
        return self._channel is not None or self.has_ended

    @property
    def has_ended(self) -> bool:
        """The channel is closed: nothing comes and nothing goes any more."""
        return self._ended.is_set()

    @property
    def pid(self) -> int:
        """The process that runs the command on the board; 0 while unknown or once it ended."""
        return 0 if self._stdout.status is not None else self._stdout.pid or 0

    def when_ended(self, tell: Callable[[], None]) -> None:
        """Call `tell` once when the command ended or the link died; now if that was before."""
        if self.has_ended:
            tell()
        else:
            self._on_end.append(tell)

    async def wait(self) -> int:
        """Wait for the end; the exit status. The caller bounds the time.

        Raises LinkLostError, and TransportError when the login shell did not run the command.
        """
        await self._ended.wait()
        return self.status()

    def status(self) -> int:
        """The exit status of the ended command. Raises as `wait` does."""
        if self._fault is not None:
            raise self._fault
        if self._exit_status is None:
            raise explain_loss(self._cause, self._board, self.step)
        if self._stdout.pid is None:
            raise self._refused()
        if self._stdout.status is None:
            raise LinkLostError(
                self.step,
                "the command's shell was ended before it could report",
                board=self._board,
                remedy="Was the board shutting down or out of memory?",
            )
        return status_from_shell(self._stdout.status)

    def _refused(self) -> TransportError:
        said = (self._stdout.noise + b" " + self._stderr.noise).decode("utf-8", "replace")
        said = "".join(char if char.isprintable() else " " for char in said).strip()
        return TransportError(
            self.step,
            f"the login shell did not run the command (exit status {self._exit_status}); "
            f"it said: {said[:_SEEN_LIMIT]!r}",
            board=self._board,
            remedy="Is the account's login shell a real shell (not nologin), and is no "
            "ForceCommand or command= in authorized_keys in the way?",
        )

    def fail(self, fault: TransportError) -> None:
        """End the command because of `fault`, which `status` then raises."""
        self._fault = self._fault or fault
        self.abort()

    def abort(self) -> None:
        """Close the channel at once, without waiting for the board to agree."""
        if self._channel is not None and not self.has_ended:
            self._channel.abort()
            self.finish(ConnectionAbortedError("closed by farm"))

    def pause(self) -> None:
        """Stop taking output; the board's command will soon have to wait."""
        if self._channel is not None:
            self._channel.pause_reading()

    def resume(self) -> None:
        """Take output again."""
        if self._channel is not None:
            self._channel.resume_reading()

    def write(self, data: bytes) -> None:
        """Queue bytes for stdin. Raises LinkLostError when the command or the link ended."""
        if self._channel is None or self.has_ended:
            raise explain_loss(self._cause, self._board, self.step)
        try:
            self._channel.write(data)
        except OSError as exc:
            raise explain_loss(exc, self._board, self.step) from exc

    def write_eof(self) -> None:
        """Close stdin once all is sent."""
        if self._channel is not None and not self.has_ended:
            self._channel.write_eof()

    async def drain(self) -> None:
        """Wait until the queue is short, or the command ended."""
        await self._writable.wait()

    # What the SSH library calls

    def connection_made(self, chan: SessionChannel) -> None:
        """The channel is there."""
        self._channel = chan

    def data_received(self, data: bytes, datatype: int | None) -> None:
        """Take a chunk of stdout or stderr."""
        output, deliver = (
            (self._stdout, self._on_stdout)
            if datatype is None
            else (self._stderr, self._on_stderr)
        )
        part = output.feed(data)
        if part and deliver is not None:
            deliver(part)
        if output.is_endless_noise:
            self.fail(
                TransportError(
                    self.step,
                    "the login shell's start-up files print without end",
                    board=self._board,
                    remedy="Log in by hand and look at ~/.bashrc and its like",
                )
            )
        self._watch_end()

    def exit_status_received(self, status: int) -> None:
        """The login shell ended. Not believed alone: fish says 0 after a syntax error."""
        self._exit_status = status
        self._watch_end()

    def exit_signal_received(self, signal: str, core_dumped: bool, msg: str, lang: str) -> None:
        """The login shell was killed."""
        del core_dumped, msg, lang
        self._exit_status = -1
        self._cause = RuntimeError(f"SIG{signal}")

    def eof_received(self) -> bool:
        """Keep stdin open: a command may close its stdout and go on."""
        return True

    def pause_writing(self) -> None:
        """The queue is long."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """The queue is short."""
        self._writable.set()

    def connection_lost(self, exc: Exception | None) -> None:
        """The channel is closed, alone or with its connection."""
        if exc is not None:
            self._exit_status = None
        self.finish(exc)

    def finish(self, cause: BaseException | None) -> None:
        """Take the command as ended, because of `cause`; only the first call counts."""
        if self._ended.is_set():
            return
        if self._grace is not None:
            self._grace.cancel()
            self._grace = None
        self._cause = cause or self._cause
        self._channel = None
        self._ended.set()
        self._writable.set()
        endings, self._on_end = self._on_end, []
        for tell in endings:
            tell()

    def _watch_end(self) -> None:
        if self._stdout.status is None or self._exit_status is None or self._grace is not None:
            return
        if self._channel is not None:
            self._grace = asyncio.get_running_loop().call_later(GRACE_S, self.abort)
