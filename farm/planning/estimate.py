"""How long a plan takes, in seconds, and when each trial is due."""

from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import NamedTuple

from farm.model.plan import Lane, Plan, Trial
from farm.model.sweep import Sweep
from farm.planning.order import CURRENT
from farm.planning.pace import TRIAL_OVERHEAD_S, Pace, measured


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
    """Seconds of one trial by itself where no history counts: pause, warm-up, window, overhead."""
    return measured(sweep) + TRIAL_OVERHEAD_S


def slot_lengths(
    trials: Sequence[Trial], pace: Pace, *, has_meter: bool, reboots: int
) -> Iterator[float]:
    """Seconds of each trial's slot, in order.

    With a meter each mode's first trial is preceded and its last one followed by an idle
    baseline. A lane begins and ends in ``current``, the mode that its board is found in.
    Reboots are spread evenly over all changes of mode: a plan keeps their number, and the sum
    is what counts.
    """
    if not trials:
        return
    measure = pace.sweep.measure
    idle_s = measure.idle_s if has_meter and measure.power != "off" else 0.0
    board, profile = trials[0].board, trials[0].cell.profile
    modes = [trial.cell.power_mode.lower() for trial in trials]
    changes = sum(one != two for one, two in pairwise([CURRENT, *modes, CURRENT]))
    reboots_s = pace.reboot(board, profile).mid_s * reboots
    change_s = pace.change(board, profile).mid_s + (reboots_s / changes if changes else 0.0)
    last = {mode: at for at, mode in enumerate(modes)}
    seen: set[str] = set()
    previous = CURRENT
    for at, mode in enumerate(modes):
        is_end = at == len(modes) - 1 and mode != CURRENT
        length = pace.trial(trials[at].cell, board).mid_s
        length += change_s * ((mode != previous) + is_end)
        length += idle_s * ((mode not in seen) + (last[mode] == at))
        seen.add(mode)
        previous = mode
        yield length


def schedule(plan: Plan, pace: Pace | None = None) -> Iterator[Slot]:
    """When each trial is due, without faults. The latest end is `plan.estimate_s`.

    `pace` is the one that the plan was made with; one without history by default.

    Lanes run at once. Those that share a meter take turns, the one that is ready first goes
    first: their slots never overlap, since a board that boots or idles draws from the meter
    too. Slots come meter by meter, in order of time.
    """
    pace = pace or Pace(plan.sweep)
    for lanes in sharing(plan.lanes, plan.sweep):
        lengths = [lane_lengths(lane, pace) for lane in lanes]
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


def lane_lengths(lane: Lane, pace: Pace) -> Iterator[float]:
    """Seconds of each slot of a lane, in order."""
    return slot_lengths(lane.trials, pace, has_meter=lane.meter is not None, reboots=lane.reboots)


def sharing(lanes: Sequence[Lane], sweep: Sweep) -> list[list[Lane]]:
    """Lanes that must take turns at a meter, together; the others each alone."""
    by_meter: dict[str, list[Lane]] = {}
    alone: list[list[Lane]] = []
    for lane in lanes:
        if lane.meter is None or sweep.measure.power == "off":
            alone.append([lane])
        else:
            by_meter.setdefault(lane.meter, []).append(lane)
    return [*by_meter.values(), *alone]
