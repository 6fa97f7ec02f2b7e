"""Runs a plan: one lane a board, all at once, none waiting for another's trouble."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from farm.execution.equipment import BoardEquipment, RunServices
from farm.execution.lane import LaneEnd, Work, run_lane
from farm.interfaces.sinks import OpenAttempt, TrialProgress
from farm.model.attempt import TrialState
from farm.model.plan import Lane, Plan

UNFINISHED = (TrialState.PENDING, TrialState.RUNNING)


@dataclass(frozen=True, slots=True)
class FleetEnd:
    """How all lanes ended."""

    lanes: tuple[LaneEnd, ...]

    @property
    def has_reached_any(self) -> bool:
        """False when no board of the plan could be reached at all."""
        return any(end.was_reached for end in self.lanes) or not self.lanes


async def run_fleet(
    plan: Plan,
    equipment: Mapping[str, BoardEquipment],
    services: RunServices,
    progress: Mapping[str, TrialProgress],
    left_open: Sequence[OpenAttempt],
) -> FleetEnd:
    """Run what is unfinished of `plan`.

    Args:
        plan: the whole plan.
        equipment: by board name; every lane's board must be there.
        services: what the lanes share.
        progress: what the store knows of each trial.
        left_open: attempts that a killed host left running; they are adopted first.

    Raises:
        asyncio.CancelledError: after every lane has stopped its payload and restored its board.
    """
    open_by_trial = {attempt.trial_id: attempt for attempt in left_open}
    tasks = []
    for lane in plan.lanes:
        work = _work_of(lane, progress, open_by_trial)
        if work:
            task = asyncio.create_task(
                run_lane(equipment[lane.board], services, work), name=f"lane {lane.board}"
            )
            tasks.append(task)
    try:
        ends = await asyncio.gather(*tasks)
    except asyncio.CancelledError:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
    finally:
        await _close_feeds(equipment)
    return FleetEnd(tuple(ends))


def _work_of(
    lane: Lane, progress: Mapping[str, TrialProgress], left_open: Mapping[str, OpenAttempt]
) -> list[Work]:
    """The lane's unfinished trials, those with an attempt on the board first."""
    work = []
    for trial in lane.trials:
        known = progress.get(trial.trial_id)
        if known is None or known.state in UNFINISHED:
            attempts = known.attempts if known else 0
            work.append(Work(trial, attempts, left_open.get(trial.trial_id)))
    return sorted(work, key=lambda item: item.left_open is None)


async def _close_feeds(equipment: Mapping[str, BoardEquipment]) -> None:
    feeds = {id(one.feed): one.feed for one in equipment.values() if one.feed is not None}
    await asyncio.gather(*(feed.close() for feed in feeds.values()))
