"""What the board-side agent offers, in small parts: each caller names only what it uses.

All may raise LinkLostError, CommandTimeoutError and AgentError. Board times are seconds of
the boot-time clock. docs/agent-protocol.md describes the lines that go over the channel.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from farm.interfaces.telemetry import TelemetryBatch
from farm.interfaces.transport import CommandResult
from farm.model.attempt import BoardFingerprint, FileRecord
from farm.model.measurement import ClockExchange
from farm.model.payload import Payload
from farm.model.power_mode import RestoreStep


@dataclass(frozen=True, slots=True)
class Job:
    """What a supervisor runs, detached. Limits: seconds, MB, bytes; None is no limit.

    `environment` is added to the board's; `params` becomes the file behind FARM_PARAMS.
    `output_limit` bounds each of stdout.log and stderr.log (head and tail are kept).
    """

    attempt_id: str
    payload_digest: str
    argv: tuple[str, ...]
    params: Mapping[str, object]
    environment: Mapping[str, str] = field(default_factory=dict)
    time_limit_s: float | None = None
    memory_limit_mb: int | None = None
    output_limit: int = 16 * 1024 * 1024
    artifacts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AttemptExit:
    """`exit.json`: how the payload ended, by the supervisor's own word.

    `ended_by`: "exit" (by itself, `exit_status`), "signal" (`signal`), "timeout", "memory",
    "stop" (asked by us), "start" (could not be started: `message`), "full" (the disk was full).
    """

    attempt_id: str
    ended_by: Literal["exit", "signal", "timeout", "memory", "stop", "start", "full"]
    exit_status: int | None
    signal: int | None
    message: str
    begin_s: float
    end_s: float
    boot_id: str
    files: tuple[FileRecord, ...]


AttemptPhase = Literal["absent", "running", "finished", "lost"]
"""What the board knows of an attempt. `lost`: begun, no exit file, and its supervisor is gone
(the board rebooted, or the supervisor was killed)."""


@dataclass(frozen=True, slots=True)
class AttemptStatus:
    """One attempt on the board; `exit` only when finished."""

    attempt_id: str
    phase: AttemptPhase
    boot_id: str
    exit: AttemptExit | None = None


@dataclass(frozen=True, slots=True)
class Lease:
    """Who holds the board. Times are the board's boot-time clock with its boot id."""

    run_id: str
    holder: str
    boot_id: str
    expires_s: float


@dataclass(frozen=True, slots=True)
class StepResult:
    """What came of one restore step. `exit_status` None: it did not end, or was not run."""

    argv: tuple[str, ...]
    exit_status: int | None
    said: str
    is_good: bool


@dataclass(frozen=True, slots=True)
class SelfRestore:
    """What the board's own watchdog did. `time`: the board's wall clock, in Unix seconds."""

    time: float
    is_complete: bool
    results: tuple[StepResult, ...]


@dataclass(frozen=True, slots=True)
class KeptRestore:
    """The list on the board by which a run's changes are undone.

    `done`: what the board did by itself, None while it has not; `is_watched`: a process there
    waits for the lease to end.
    """

    run_id: str
    holder: str
    boot_id: str
    steps: tuple[RestoreStep, ...]
    is_watched: bool
    done: SelfRestore | None = None

    @property
    def is_pending(self) -> bool:
        """Whether the board may still be as that run changed it."""
        return self.done is None or not self.done.is_complete


class BoardCommands(Protocol):
    """Short commands and files on the board. Paths are absolute and read under the root prefix."""

    @abstractmethod
    async def run(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float = 30.0,
        needs_root: bool = False,
        needs_tty: bool = False,
        stdin: bytes = b"",
    ) -> CommandResult:
        """Run argv. `needs_root`: through ``sudo -n`` unless already root.

        `stdin` is what it finds on its stdin (at most 4096 bytes), then the end; without any
        stdin is closed.
        """

    @abstractmethod
    async def read_text(self, path: str) -> str | None:
        """A file's text (at most 1 MB), or None when it is not there or not readable."""


class ClockSource(Protocol):
    """The board's boot-time clock."""

    @abstractmethod
    async def exchange_clock(self) -> ClockExchange:
        """One exchange; take several and keep the one with the least round trip."""


class PayloadCache(Protocol):
    """Payloads on the board, by content."""

    @abstractmethod
    async def ensure_payload(self, payload: Payload) -> bool:
        """Push the payload unless the board has it. True if something was sent.

        One tar stream holds only the files that the board lacks; hashes are checked there.
        Raises TransferError (board disk full, hash mismatch).
        """


class Attempts(Protocol):
    """Detached attempts. Starting is idempotent; the folder on the board is the lock."""

    @abstractmethod
    async def start(self, job: Job) -> AttemptStatus:
        """Start, or tell the status of what was started under that id before."""

    @abstractmethod
    async def status(self, attempt_id: str) -> AttemptStatus:
        """What the board knows of it."""

    @abstractmethod
    async def wait(self, attempt_id: str) -> AttemptStatus:
        """Wait until it is finished or lost. The caller bounds the time."""

    @abstractmethod
    async def stop(self, attempt_id: str) -> None:
        """End the payload and all it started; it becomes finished with ended_by "stop"."""

    @abstractmethod
    async def collect(self, exited: AttemptExit, folder: Path) -> tuple[FileRecord, ...]:
        """Bring all its files into `folder`, hashes checked. Raises TransferError, StoreError.

        Not flushed to the disk: that is for whoever commits the attempt.
        """


class AttemptsUpkeep(Protocol):
    """Following and cleaning attempts."""

    @abstractmethod
    async def remove(self, attempt_ids: Sequence[str]) -> None:
        """Remove finished attempts from the board; unknown ones are no error. May be deferred."""

    @abstractmethod
    async def follow(self, attempt_id: str, file: str, on_data: Callable[[bytes], None]) -> None:
        """Deliver a log file from its beginning (or where we were) until the attempt ends."""

    @abstractmethod
    async def list_attempts(self) -> tuple[AttemptStatus, ...]:
        """All attempts that lie on the board."""


class LeaseHolder(Protocol):
    """The board's lease."""

    @abstractmethod
    async def take_lease(self, run_id: str, holder: str, ttl_s: float) -> Lease:
        """Take or renew it for this run. Raises LeaseHeldError while another run holds it."""

    @abstractmethod
    async def release_lease(self, run_id: str) -> None:
        """Give it back; not ours is no error."""


class RestoreKeeper(Protocol):
    """What the board does by itself when the lease ends and nobody renewed it."""

    @abstractmethod
    async def keep_restore(self, run_id: str, steps: Sequence[RestoreStep]) -> None:
        """Lay the list on the board, durably, in place of any other; the run has the lease."""

    @abstractmethod
    async def kept_restore(self) -> KeptRestore | None:
        """The list that lies there, also a done one."""

    @abstractmethod
    async def drop_restore(self, run_id: str) -> None:
        """The board is as it was: remove the run's list; not of this run is no error."""


class TelemetryStream(Protocol):
    """What the board says of itself, told as it comes. An agent without it tells nothing."""

    def start_telemetry(
        self, argv: Sequence[str], rate_hz: float, on_batch: Callable[[TelemetryBatch], None]
    ) -> None:
        """Begin, or begin anew, without waiting: a tool's lines (`argv`, or () for none), files.

        Raises LinkLostError. It ends with the link, or at `stop_telemetry`.
        """

    def stop_telemetry(self) -> None:
        """End it. Never raises."""


class BoardAgent(
    BoardCommands,
    ClockSource,
    PayloadCache,
    Attempts,
    AttemptsUpkeep,
    LeaseHolder,
    RestoreKeeper,
    TelemetryStream,
    Protocol,
):
    """Everything, as `farm.drivers.agent.SshBoardAgent` offers it."""

    @property
    @abstractmethod
    def fingerprint(self) -> BoardFingerprint:
        """Facts told by the agent's hello."""

    @property
    @abstractmethod
    def free_mb(self) -> int:
        """Free space in the work folder's file system at hello, in MB."""

    @abstractmethod
    async def temperature_c(self) -> float | None:
        """The hottest thermal zone now, degrees Celsius; None if there is none."""

    @abstractmethod
    async def close(self) -> None:
        """End the agent's channel; running attempts go on."""
