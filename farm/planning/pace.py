"""How long a trial, a change of mode and a reboot take: from history, else from defaults. Pure.

**The formula.** A trial takes pause + warm-up + window of its sweep, and an overhead: the median
of what the same cell took over in earlier runs; else of all cells of the payload on boards of
the same profile; else `TRIAL_OVERHEAD_S`. The band around it is the 10th and the 90th percentile
of those samples, but at least `LEAST_SHARE` / sqrt(n) of the whole to each side, twice as much
where the samples are of other cells. Where nothing is known it reaches from no overhead at all to
`UNKNOWN_SHARE` more than the estimate.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Literal

from farm.model.history import History
from farm.model.plan import Cell
from farm.model.sweep import Sweep
from farm.planning.lessons import Lessons, learn

TRIAL_OVERHEAD_S = 2.0
"""Clock maps, start, collecting, committing. Measured on simulated boards: 1.7 s, and 2.4 s
where thirteen share two cores."""

MODE_CHANGE_S = 3.0
"""Unlock clocks, set, read back, lock. Measured on simulated boards: 1.5 to 5 s."""

REBOOT_S = 120.0
"""Until SSH answers again: Jetsons take one to three minutes. Assumed: the middle."""

SIMULATED_REBOOT_S = 10.0
"""The same for a simulated board. Measured: 6 to 12 s."""

LEAST_SHARE = 0.1
UNKNOWN_SHARE = 0.5
LOW, HIGH = 0.1, 0.9

Origin = Literal["cell", "payload", "profile", "board", "default"]
NO_HISTORY = History()


@dataclass(frozen=True, slots=True)
class Estimate:
    """Seconds with a band, and what they were taken from: `count` samples, none by default."""

    low_s: float
    mid_s: float
    high_s: float
    origin: Origin = "default"
    count: int = 0


@dataclass(slots=True)
class Pace:
    """What a sweep's trials take on this lab's boards. `simulated` names boards that are so."""

    sweep: Sweep
    history: History = NO_HISTORY
    simulated: Collection[str] = ()
    _lessons: Lessons = field(init=False)
    _trials: dict[tuple[str, bool], Estimate] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._lessons = learn(self.history)

    def trial(self, cell: Cell, board: str) -> Estimate:
        """One trial by itself: pause, warm-up, window, overhead."""
        key = (cell.cell_id, board in self.simulated)
        known = self._trials.get(key)
        if known is None:
            known = self._trials[key] = self._trial(cell, is_simulated=key[1])
        return known

    def _trial(self, cell: Cell, *, is_simulated: bool) -> Estimate:
        measured_s = measured(self.sweep)
        lessons = self._lessons
        if same := lessons.cells.get(cell.cell_id):
            return _from_samples(same, measured_s, "cell", LEAST_SHARE)
        alike = lessons.payloads.get((cell.payload, (cell.profile, is_simulated)))
        if alike:
            return _from_samples(alike, measured_s, "payload", 2 * LEAST_SHARE)
        mid_s = measured_s + TRIAL_OVERHEAD_S
        return Estimate(measured_s, mid_s, mid_s * (1 + UNKNOWN_SHARE))

    def change(self, board: str, profile: str) -> Estimate:
        """A change of the power mode, without reboot and idle baselines."""
        seen = self._lessons.changes.get((profile, board in self.simulated))
        if seen:
            return _from_samples(seen, 0.0, "profile", 2 * LEAST_SHARE)
        return Estimate(0.0, MODE_CHANGE_S, 3 * MODE_CHANGE_S)

    def reboot(self, board: str, profile: str) -> Estimate:
        """A reboot, until the board is proven to be in its new mode."""
        is_simulated = board in self.simulated
        if own := self._lessons.board_reboots.get(board):
            return _from_samples(own, 0.0, "board", LEAST_SHARE)
        if alike := self._lessons.kind_reboots.get((profile, is_simulated)):
            return _from_samples(alike, 0.0, "profile", 2 * LEAST_SHARE)
        mid_s = SIMULATED_REBOOT_S if is_simulated else REBOOT_S
        return Estimate(mid_s / 2, mid_s, mid_s * (1 + UNKNOWN_SHARE))


def measured(sweep: Sweep) -> float:
    """Seconds that the sweep itself asks for in each trial."""
    measure = sweep.measure
    return measure.settle.pause_s + measure.warmup_s + measure.window_s


def percentile(ordered: Sequence[float], share: float) -> float:
    """By linear interpolation between the two nearest of the ascending values."""
    at = share * (len(ordered) - 1)
    below = int(at)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (at - below)


def _from_samples(
    samples: Sequence[float], base_s: float, origin: Origin, least_share: float
) -> Estimate:
    ordered = sorted(samples)
    mid_s = max(0.0, base_s + percentile(ordered, 0.5))
    least_s = least_share * mid_s / len(ordered) ** 0.5
    low_s = min(base_s + percentile(ordered, LOW), mid_s - least_s)
    high_s = max(base_s + percentile(ordered, HIGH), mid_s + least_s)
    return Estimate(max(0.0, low_s), mid_s, high_s, origin, len(ordered))
