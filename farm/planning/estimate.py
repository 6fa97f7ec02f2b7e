"""How long a plan takes, in seconds, and when each trial is due.

The constants are rough: they say "an hour or a night", not "02:13".
"""

from collections.abc import Collection, Iterator, Sequence
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import NamedTuple

from farm.model.plan import Lane, Plan, Trial
from farm.model.sweep import Sweep
from farm.planning.order import CURRENT

TRIAL_OVERHEAD_S = 2.0
"""Clock maps, start, collecting, committing. Measured on simulated boards: 1.7 s, and 2.4 s
where thirteen share two cores."""

MODE_CHANGE_S = 3.0
"""Unlock clocks, set, read back, lock. Measured on simulated boards: 1.5 to 5 s."""

REBOOT_S = 120.0
"""Until SSH answers again: Jetsons take one to three minutes. Assumed: the middle."""

SIMULATED_REBOOT_S = 10.0
"""The same for a simulated board. Measured: 6 to 12 s."""


class Slot(NamedTuple):
    """When a trial is due, in seconds from the start of the run.

    A slot begins with what its trial needs before (mode change, reboot, idle baseline) and
    ends after what follows it (the idle baseline at the end of a mode, the way back at the
    end of a lane).
    """

    trial_id: str
    board: str
    begin_s: float
    end_s: float


def trial_s(sweep: Sweep) -> float:
    """Seconds of one trial by itself: pause, warm-up, window, overhead."""
    measure = sweep.measure
    return measure.settle.pause_s + measure.warmup_s + measure.window_s + TRIAL_OVERHEAD_S


def slot_lengths(
    trials: Sequence[Trial], sweep: Sweep, *, has_meter: bool, reboots: int, is_simulated: bool
) -> Iterator[float]:
    """Seconds of each trial's slot, in order.

    With a meter each mode's first trial is preceded and its last one followed by an idle
    baseline. A lane begins and ends in ``current``, the mode that its board is found in.
    Reboots are spread evenly over all changes of mode: a plan keeps their number, and the sum
    is what counts.
    """
    idle_s = sweep.measure.idle_s if has_meter and sweep.measure.power != "off" else 0.0
    modes = [trial.cell.power_mode.lower() for trial in trials]
    changes = sum(one != two for one, two in pairwise([CURRENT, *modes, CURRENT]))
    reboot_s = SIMULATED_REBOOT_S if is_simulated else REBOOT_S
    change_s = MODE_CHANGE_S + (reboot_s * reboots / changes if changes else 0.0)
    alone_s = trial_s(sweep)
    last = {mode: at for at, mode in enumerate(modes)}
    seen: set[str] = set()
    previous = CURRENT
    for at, mode in enumerate(modes):
        is_end = at == len(modes) - 1 and mode != CURRENT
        length = alone_s + change_s * ((mode != previous) + is_end)
        length += idle_s * ((mode not in seen) + (last[mode] == at))
        seen.add(mode)
        previous = mode
        yield length


def schedule(plan: Plan, simulated: Collection[str] = ()) -> Iterator[Slot]:
    """When each trial is due, without faults. The latest end is `plan.estimate_s`.

    `simulated` are the names of boards that are simulated: those boot quickly.

    Lanes run at once. Those that share a meter take turns, the one that is ready first goes
    first: their slots never overlap, since a board that boots or idles draws from the meter
    too. Slots come meter by meter, in order of time.
    """
    for lanes in _sharing(plan):
        lengths = [
            _lane_lengths(lane, plan.sweep, is_simulated=lane.board in simulated) for lane in lanes
        ]
        at = [0] * len(lanes)
        ready = [(0.0, number) for number in range(len(lanes)) if lanes[number].trials]
        heapify(ready)
        free_s = 0.0
        while ready:
            ready_s, number = heappop(ready)
            begin_s = max(ready_s, free_s)
            free_s = begin_s + next(lengths[number])
            trial = lanes[number].trials[at[number]]
            at[number] += 1
            yield Slot(trial.trial_id, trial.board, begin_s, free_s)
            if at[number] < len(lanes[number].trials):
                heappush(ready, (free_s, number))


def _lane_lengths(lane: Lane, sweep: Sweep, *, is_simulated: bool) -> Iterator[float]:
    return slot_lengths(
        lane.trials,
        sweep,
        has_meter=lane.meter is not None,
        reboots=lane.reboots,
        is_simulated=is_simulated,
    )


def _sharing(plan: Plan) -> list[list[Lane]]:
    """Lanes that must take turns, together; the others each alone."""
    by_meter: dict[str, list[Lane]] = {}
    alone: list[list[Lane]] = []
    for lane in plan.lanes:
        if lane.meter is None or plan.sweep.measure.power == "off":
            alone.append([lane])
        else:
            by_meter.setdefault(lane.meter, []).append(lane)
    return [*by_meter.values(), *alone]
