"""Attempts: one try at a trial, its outcome, and everything needed to judge it again."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum

from pydantic import Field

from farm.model.kernel import KernelReport
from farm.model.measurement import ClockMap, IdlePower, Measurement, PowerResult, Verdict, Window
from farm.model.power_mode import AppliedPowerMode
from farm.model.record import Record, Scalar, Source


class TrialState(StrEnum):
    """`unsupported` is a result in itself: the board or engine cannot do it."""

    PENDING = "pending"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    UNSUPPORTED = "unsupported"
    SKIPPED = "skipped"


class Outcome(StrEnum):
    """How an attempt ended. `lost`: the board died under it; `invalid`: ran, but does not hold."""

    OK = "ok"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    LOST = "lost"
    INVALID = "invalid"
    UNSUPPORTED = "unsupported"
    CANCELLED = "cancelled"


class BoardFingerprint(Record):
    """What the board was when it ran this: rows with other fingerprints are other boards."""

    boot_id: str
    machine: str = ""
    kernel: str = ""
    model: str = ""
    l4t: str = ""
    python: str = ""
    cpu_count: int = 0
    memory_mb: int = 0
    mode_table: str = ""
    is_simulated: bool = False


class FileRecord(Record):
    """One file of an attempt's folder."""

    path: str
    size: int
    sha256: str
    cut_bytes: int = Field(default=0, description="bytes left out of the middle of a bounded log")


class StepTime(Record):
    """How long one step of a trial took, in host monotonic seconds."""

    step: str
    seconds: float


class AttemptRecord(Record):
    """One finished attempt. Times are UTC; `number` counts a trial's attempts from 1.

    `moved_from`: the board that was planned and lost, where a twin took its place.
    """

    attempt_id: str
    trial_id: str
    run_id: str
    board: str
    number: int
    outcome: Outcome
    reason: str = ""
    source: Source
    started: datetime
    ended: datetime
    payload: str
    payload_digest: str
    parameters: Mapping[str, Scalar]
    power_mode: AppliedPowerMode | None = None
    fingerprint: BoardFingerprint | None = None
    exit_status: int | None = None
    exit_signal: int | None = None
    window: Window | None = None
    clock_map: ClockMap | None = None
    metrics: Mapping[str, Measurement] = Field(default_factory=dict)
    idle: IdlePower | None = None
    power: PowerResult | None = None
    verdict: Verdict
    steps: tuple[StepTime, ...] = ()
    files: tuple[FileRecord, ...] = ()
    notes: tuple[str, ...] = ()
    kernel: KernelReport | None = None
    tool_version: str = ""
    moved_from: str = ""


def attempt_id(trial_id: str, number: int) -> str:
    """``<trial id>-a1``."""
    return f"{trial_id}-a{number}"
