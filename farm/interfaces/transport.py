"""A way to reach a board. Implementations: `farm/drivers/transports/`; contract: `farm.testing`.

A command is an argv list. A transport wraps it in ``sh -c`` with quoting that survives sh,
bash, dash, csh and fish login shells, and frames its output by markers, so that noise of
shell start-up files is never taken for output and an exit status is only believed when the
end marker came. A dead link is never a success.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, Self


@dataclass(frozen=True, slots=True)
class CommandResult:
    """What a command did. `exit_status` below 0 is minus a signal number."""

    argv: tuple[str, ...]
    exit_status: int
    stdout: bytes
    stderr: bytes
    duration_s: float

    @property
    def text(self) -> str:
        """Stdout as text; bytes that are no UTF-8 are replaced."""
        return self.stdout.decode("utf-8", "replace")

    @property
    def error_text(self) -> str:
        """Stderr as text; bytes that are no UTF-8 are replaced."""
        return self.stderr.decode("utf-8", "replace")


class Stream(Protocol):
    """A running command with its stdin open; its output goes to the callbacks given."""

    @abstractmethod
    def write(self, data: bytes) -> None:
        """Queue bytes for the command's stdin. Raises LinkLostError on a dead link."""

    @abstractmethod
    async def drain(self) -> None:
        """Wait until the queue is short. Raises LinkLostError."""

    @abstractmethod
    def end_input(self) -> None:
        """Close the command's stdin."""

    @abstractmethod
    async def wait(self, timeout_s: float) -> int:
        """Wait for the end; the exit status. Raises LinkLostError, CommandTimeoutError."""

    @abstractmethod
    async def close(self) -> None:
        """End the stream at once; never raises, never waits for long."""


class Transport(Protocol):
    """One kept connection to one board. May be connected again after it was lost.

    Every method has a time limit of ours, also where no argument says so, and may raise
    ConnectError, AuthError, HostKeyError (connect only), LinkLostError, CommandTimeoutError.
    """

    @abstractmethod
    async def connect(self) -> Self:
        """Open the connection; verify the host key strictly."""

    @abstractmethod
    async def run(
        self, argv: Sequence[str], *, timeout_s: float, stdin: bytes = b""
    ) -> CommandResult:
        """Run a command to its end. stdin is closed after `stdin`. Any exit status is a result."""

    @abstractmethod
    async def stream(
        self,
        argv: Sequence[str],
        on_stdout: Callable[[bytes], None],
        on_stderr: Callable[[bytes], None] | None = None,
        on_lost: Callable[[], None] | None = None,
    ) -> Stream:
        """Start a command and deliver its output in chunks, start-up noise left out.

        `on_lost` is called once when the link dies or the command ends.
        """

    @abstractmethod
    async def put(
        self, files: Mapping[str, Path | bytes], folder: str, *, timeout_s: float
    ) -> None:
        """Write files (relative path -> content) below `folder` on the board.

        `folder` may begin with ``~/``. Each file appears whole or not at all; hashes are
        checked on the board. An executable bit on a local Path is kept. Raises TransferError.
        """

    @abstractmethod
    async def get(self, path: str, target: Path, *, timeout_s: float) -> None:
        """Copy one file from the board, hash checked. Raises TransferError."""

    @abstractmethod
    async def close(self) -> None:
        """Close; bounded in time, never raises."""

    @property
    @abstractmethod
    def is_connected(self) -> bool:
        """False once the link is known to be dead."""
