"""When a plan ends, with a band, and from what that is known; also while it runs. Pure.

**The band of a sum.** What a board's own history tells errs by chance from trial to trial: those
deviations add as squares. What other cells or defaults tell errs the same way all night: those
add up. `NIGHT_SHARE` of the whole comes on top to each side, since nights differ. Boards that
share a meter add; of boards that run at once the slowest counts.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

from farm.model.plan import Lane, Plan, Trial
from farm.planning.estimate import sharing
from farm.planning.order import CURRENT
from farm.planning.pace import Estimate, Origin, Pace

NIGHT_SHARE = 0.02
PLAN_WEIGHT = 0.1
"""How much of a lane's estimate counts as seen at the planned pace: damps the first trials."""

_OWN: tuple[Origin, ...] = ("cell", "board")


@dataclass(slots=True)
class Spread:
    """A sum of estimates."""

    mid_s: float = 0.0
    _alike_low_s: float = 0.0
    _alike_high_s: float = 0.0
    _chance_low: float = 0.0
    _chance_high: float = 0.0

    def add(self, one: Estimate, times: float = 1.0, scale: float = 1.0) -> None:
        """`times` things that take `scale` times the estimate; negative to take them out."""
        low_s, high_s = scale * (one.mid_s - one.low_s), scale * (one.high_s - one.mid_s)
        self.mid_s += times * scale * one.mid_s
        if one.origin in _OWN:
            self._chance_low += times * low_s**2
            self._chance_high += times * high_s**2
        else:
            self._alike_low_s += times * low_s
            self._alike_high_s += times * high_s

    def band(self, mid_s: float, scale: float = 1.0) -> tuple[float, float, float]:
        """Low, middle and high of something that takes `mid_s` and is as uncertain as this."""
        night_s = NIGHT_SHARE * mid_s
        low_s = scale * (self._alike_low_s + max(0.0, self._chance_low) ** 0.5) + night_s
        high_s = scale * (self._alike_high_s + max(0.0, self._chance_high) ** 0.5) + night_s
        return max(0.0, mid_s - low_s), mid_s, mid_s + high_s


@dataclass(frozen=True, slots=True)
class Forecast:
    """Seconds of a plan from its start. `origins` counts trials by what their estimates are from.

    `samples` are the fewest and the most past attempts that stand behind one of them.
    """

    low_s: float
    mid_s: float
    high_s: float
    origins: Mapping[Origin, int]
    samples: tuple[int, int]


def forecast(
    plan: Plan, pace: Pace, boards: Collection[str] | None = None, mids: Iterable[float] = ()
) -> Forecast:
    """How long a plan takes; the part of some boards only, if named.

    `mids`: each lane's seconds, where they are not those of the plan.
    """
    origins: Counter[Origin] = Counter()
    counts: list[int] = []
    lane_s = dict(zip((lane.board for lane in plan.lanes), mids, strict=False))
    ends = [(0.0, 0.0, 0.0)]
    for group in sharing(plan.lanes, plan.sweep):
        spread, mid_s = Spread(), 0.0
        for lane in group:
            if boards is None or lane.board in boards:
                mid_s += lane_s.get(lane.board, lane.estimate_s)
                for estimate, number in _parts(lane, pace, origins, counts):
                    spread.add(estimate, number)
        ends.append(spread.band(mid_s))
    low_s, mid_s, high_s = (max(values) for values in zip(*ends, strict=True))
    return Forecast(
        low_s, mid_s, high_s, origins, (min(counts, default=0), max(counts, default=0))
    )


def _parts(
    lane: Lane, pace: Pace, origins: "Counter[Origin]", counts: list[int]
) -> Iterable[tuple[Estimate, int]]:
    numbers = Counter(trial.cell.cell_id for trial in lane.trials)
    cells = {trial.cell.cell_id: trial.cell for trial in lane.trials}
    for cell_id, number in numbers.items():
        estimate = pace.trial(cells[cell_id], lane.board)
        origins[estimate.origin] += number
        if estimate.count:
            counts.append(estimate.count)
        yield estimate, number
    modes = {cell.power_mode.lower() for cell in cells.values()}
    yield pace.change(lane.board, lane.profile), lane.mode_changes + 2 * (modes != {CURRENT})
    yield pace.reboot(lane.board, lane.profile), lane.reboots


@dataclass(slots=True)
class _Group:
    """Lanes that take turns, or one alone. `left` is what is not decided."""

    begin_s: float
    last_end_s: float
    total_s: float = 0.0
    left: Spread = field(default_factory=Spread)
    undecided: int = 0
    done_s: float = 0.0

    def remaining(self, now_s: float) -> tuple[float, float, float]:
        """At the pace that this group has shown.

        Taken at the end of its last trial and counted down from there: it never rises while
        nothing happens, and one slow trial does not upset a night's estimate.
        """
        if not self.undecided:
            return 0.0, 0.0, 0.0
        trusted_s = PLAN_WEIGHT * self.total_s
        seen_s = self.last_end_s - self.begin_s
        rate = (seen_s + trusted_s) / (self.done_s + trusted_s) if trusted_s > 0 else 1.0
        passed_s = now_s - self.last_end_s
        low_s, mid_s, high_s = self.left.band(self.left.mid_s * rate, rate)
        return (
            max(0.0, low_s - passed_s),
            max(0.0, mid_s - passed_s),
            max(0.0, high_s - passed_s),
        )


class Outlook:
    """When a run ends, revised with each trial. `now` gives seconds that only grow."""

    def __init__(
        self, plan: Plan, pace: Pace, decided: Collection[str], now: Callable[[], float]
    ) -> None:
        self._pace, self._now, self._decided = pace, now, set(decided)
        self._groups: list[_Group] = []
        self._places: dict[str, tuple[_Group, float]] = {}
        for lanes in sharing(plan.lanes, plan.sweep):
            group = _Group(now(), now())
            self._groups.append(group)
            for lane in lanes:
                self._add(group, lane)

    def _add(self, group: _Group, lane: Lane) -> None:
        whole_s = sum(self._pace.trial(one.cell, lane.board).mid_s for one in lane.trials)
        scale = lane.estimate_s / whole_s if whole_s > 0 else 1.0
        self._places[lane.board] = group, scale
        group.total_s += lane.estimate_s
        for trial in lane.trials:
            if trial.trial_id not in self._decided:
                group.undecided += 1
                group.left.add(self._pace.trial(trial.cell, lane.board), scale=scale)

    def restart(self, now_s: float) -> None:
        """The work begins now: what passed before says nothing of its pace."""
        for group in self._groups:
            group.begin_s = group.last_end_s = now_s

    def ended(self, trial: Trial) -> None:
        """A trial is decided."""
        if trial.trial_id in self._decided:
            return
        self._decided.add(trial.trial_id)
        group, scale = self._places[trial.board]
        estimate = self._pace.trial(trial.cell, trial.board)
        group.left.add(estimate, -1.0, scale)
        group.done_s += scale * estimate.mid_s
        group.undecided -= 1
        group.last_end_s = self._now()

    def left_s(self) -> tuple[float, float, float]:
        """Seconds to the end: low, middle, high."""
        now_s = self._now()
        ends = [group.remaining(now_s) for group in self._groups] or [(0.0, 0.0, 0.0)]
        low_s, mid_s, high_s = (max(values) for values in zip(*ends, strict=True))
        return low_s, mid_s, high_s
