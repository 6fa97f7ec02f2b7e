"""Which trials to leave out of a plan so that it ends in time: the least valuable ones. Pure."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from farm.model.plan import Lane, Plan, Trial
from farm.model.profile import BoardProfile
from farm.planning.estimate import lane_lengths, sharing
from farm.planning.order import count_changes
from farm.planning.outlook import forecast
from farm.planning.pace import Pace


def fit_plan(
    plan: Plan,
    pace: Pace,
    profiles: Mapping[str, BoardProfile],
    limit_s: float,
    *,
    is_safe: bool = False,
) -> tuple[Trial, ...]:
    """The trials to leave out so that `plan` takes no more than `limit_s`, the first one first.

    The last repeat of all cells goes before the last but one of any, so that every cell keeps
    an answer as long as may be; among those the payload of lower priority, then what would run
    later. Each board by itself, or the boards that share a meter together: one that is quick
    enough keeps all.

    Args:
        plan: the whole plan.
        pace: with which it was estimated.
        profiles: by name, for the reboots that are left.
        limit_s: seconds from its start.
        is_safe: the upper end of the band must fit, instead of the middle.
    """
    left_out: list[Trial] = []
    for group in sharing(plan.lanes, plan.sweep):
        ranked = _least_valuable_first(group)
        low, high = 0, len(ranked)  # fewest that may do; as many as surely do
        while low < high:
            count = (low + high) // 2
            part = replace(plan, lanes=tuple(group))
            kept = without(part, {one.trial_id for one in ranked[:count]}, pace, profiles)
            end = forecast(kept, pace)
            if (end.high_s if is_safe else end.mid_s) <= limit_s:
                high = count
            else:
                low = count + 1
        left_out += ranked[:low]
    return tuple(left_out)


def without(
    plan: Plan, left_out: Collection[str], pace: Pace, profiles: Mapping[str, BoardProfile]
) -> Plan:
    """The plan without some trials, by id; estimated anew. Boards with nothing to do are gone."""
    lanes = tuple(
        _trimmed(lane, left_out, pace, profiles[lane.profile])
        for lane in plan.lanes
        if any(trial.trial_id not in left_out for trial in lane.trials)
    )
    ends = [sum(lane.estimate_s for lane in group) for group in sharing(lanes, plan.sweep)]
    return replace(plan, lanes=lanes, estimate_s=max(ends, default=0.0))


def _trimmed(lane: Lane, left_out: Collection[str], pace: Pace, profile: BoardProfile) -> Lane:
    trials = tuple(trial for trial in lane.trials if trial.trial_id not in left_out)
    changes, reboots = count_changes(trials, profile)
    kept = replace(lane, trials=trials, mode_changes=changes, reboots=reboots)
    return replace(kept, estimate_s=sum(lane_lengths(kept, pace)))


def _least_valuable_first(lanes: Sequence[Lane]) -> list[Trial]:
    ranked = [
        (-trial.repeat, trial.cell.priority, -at, lane.board, trial)
        for lane in lanes
        for at, trial in enumerate(lane.trials)
    ]
    return [trial for *_, trial in sorted(ranked, key=lambda one: one[:4])]
