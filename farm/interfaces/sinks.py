"""Where execution writes what happens: the journal (kept) and the progress (shown)."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Protocol

from farm.errors import StoreFullError
from farm.model.attempt import AttemptRecord, TrialState
from farm.model.trace import MeterMiss, MeterReading, PowerTrace


@dataclass(frozen=True, slots=True)
class OpenAttempt:
    """An attempt that the store knows as running: a killed host left it."""

    attempt_id: str
    trial_id: str
    board: str
    number: int
    started: datetime


@dataclass(frozen=True, slots=True)
class TrialProgress:
    """What the store knows of a trial."""

    trial_id: str
    state: TrialState
    attempts: int


@dataclass(frozen=True, slots=True)
class RunEvent:
    """One thing that happened. `kind` is a word from docs/glossary.md; times are UTC."""

    time: datetime
    kind: str
    board: str = ""
    trial_id: str = ""
    attempt_id: str = ""
    text: str = ""
    data: Mapping[str, object] = field(default_factory=dict)


class Journal(Protocol):
    """Keeps each state change of one run durably. All may raise StoreError."""

    @abstractmethod
    async def begin_attempt(
        self, attempt_id: str, trial_id: str, board: str, number: int, started: datetime
    ) -> Path:
        """Trial and attempt become running, durably; the folder returned is not yet made."""

    @abstractmethod
    async def finish_attempt(
        self, record: AttemptRecord, state: TrialState, trace: PowerTrace | None
    ) -> None:
        """The attempt's record and the trial's new state, in one transaction, durably."""

    @abstractmethod
    async def set_trial_state(self, trial_id: str, state: TrialState, reason: str) -> None:
        """A trial's state without an attempt (skipped, unsupported)."""

    @abstractmethod
    def record(self, event: RunEvent) -> None:
        """Note an event; written with the next transaction, at the latest within a second."""

    @abstractmethod
    async def flush(self) -> None:
        """Return when every event recorded so far is durable."""

    @abstractmethod
    async def open_attempts(self) -> Sequence[OpenAttempt]:
        """Attempts that are running by the store."""

    @abstractmethod
    async def move_trial(self, trial_id: str, board: str, reason: str) -> None:
        """A pending trial goes to another board of the plan, durably."""

    @abstractmethod
    async def events_of(self, kinds: Sequence[str]) -> Sequence[RunEvent]:
        """What was recorded of these kinds in this run, by earlier hosts too, oldest first."""

    async def room(self, fault: StoreFullError) -> None:
        """After `fault`: return once there is room; raises it when it is not waited for."""
        raise fault


class TraceSink(Protocol):
    """Where samples go while an attempt runs, so that a killed host loses none."""

    @abstractmethod
    def append(self, sample: MeterReading | MeterMiss) -> None:
        """Keep one sample. Must not block for long or raise for a full disk."""

    @abstractmethod
    def close(self) -> None:
        """No more samples come."""


class Progress(Protocol):
    """Told of everything as it happens, for a view. Must not block or raise."""

    @abstractmethod
    def event(self, event: RunEvent) -> None:
        """Something happened."""

    @abstractmethod
    def watts(self, board: str, power_w: float) -> None:
        """The newest socket power of a board, in watts."""
