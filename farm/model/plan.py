"""A plan: cells, trials in order, one lane a board. Made by `farm.planning`, pure data.

A night may hold 100,000 trials, so these are slotted dataclasses, not pydantic models.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from farm.model.power_mode import ClockPolicy
from farm.model.record import Scalar
from farm.model.sweep import Sweep


@dataclass(frozen=True, slots=True)
class Cell:
    """One combination. `target` is a board's name, or with ``spread: any`` a profile's name.

    `cell_id` comes from target, payload, digest, power mode, clocks and parameters: same
    content, same id.
    """

    cell_id: str
    target: str
    is_any: bool
    profile: str
    payload: str
    payload_digest: str
    level: int
    power_mode: str
    clocks: ClockPolicy
    parameters: Mapping[str, Scalar]
    priority: int = 0


@dataclass(frozen=True, slots=True)
class Trial:
    """A cell and a repeat number (from 1), placed on a board. Id: ``<cell id>-r02``."""

    trial_id: str
    cell: Cell
    repeat: int
    board: str


@dataclass(frozen=True, slots=True)
class Lane:
    """The trials of one board, in order. Lanes run at once; `meter` is used by one at a time."""

    board: str
    profile: str
    meter: str | None
    trials: tuple[Trial, ...]
    mode_changes: int
    reboots: int
    estimate_s: float


@dataclass(frozen=True, slots=True)
class Plan:
    """Trials in order. The same sweep, seed, inventory and payloads give the same `digest`."""

    sweep: Sweep
    digest: str
    lanes: tuple[Lane, ...]
    estimate_s: float
    skipped: tuple[str, ...] = field(default=())

    @property
    def trials(self) -> tuple[Trial, ...]:
        """All trials, lane by lane."""
        return tuple(trial for lane in self.lanes for trial in lane.trials)
