"""Runs a plan: one lane a board, all at once, none waiting for another's trouble."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from farm.execution.equipment import BoardEquipment, RunServices
from farm.execution.lane import BoardLane, Company, LaneEnd
from farm.execution.liveness import LabWatch
from farm.execution.recovery import Care
from farm.execution.recovery_counts import RECOVERY, Spent
from farm.execution.recovery_health import Health
from farm.execution.recovery_rest import Roster
from farm.execution.trial import Ticket
from farm.execution.twins import MOVED, Mover, origins
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
        left_open: attempts that a killed host left running, or had not yet committed; they are
            adopted first.

    Raises:
        asyncio.CancelledError: after every lane has stopped its payload and restored its board.
    """
    past = await services.journal.events_of((RECOVERY, MOVED))
    moved = origins(past)
    open_by_trial: dict[str, list[OpenAttempt]] = {}
    for attempt in sorted(left_open, key=lambda one: one.number):
        open_by_trial.setdefault(attempt.trial_id, []).append(attempt)
    fleet = _Fleet(plan, equipment, services, Spent(past))
    for lane in plan.lanes:
        work = _work_of(lane, progress, open_by_trial, moved)
        if work or lane.board in services.originals:  # a killed host had not put it back
            fleet.start(lane.board, work)
    try:
        ends = await fleet.finish()
    finally:
        await _close_feeds(equipment)
    return FleetEnd(ends)


class _Fleet:
    """The lanes of one run, and those that begin anew for what a lost twin left."""

    def __init__(
        self,
        plan: Plan,
        equipment: Mapping[str, BoardEquipment],
        services: RunServices,
        spent: Spent,
    ) -> None:
        self._equipment, self._services = equipment, services
        roster = Roster(services.clock)
        care = Care(spent, LabWatch("boards", services), LabWatch("meters", services))
        self._company = Company(care, roster, Health(plan, roster), self._move_away)
        self._mover = Mover(services, self._give)
        self._lanes: dict[str, BoardLane] = {}
        self._tasks: dict[str, asyncio.Task[LaneEnd]] = {}

    def start(self, board: str, work: Sequence[Ticket]) -> None:
        """A lane of its own for the board, after the one that it may have had."""
        lane = BoardLane(self._equipment[board], self._services, self._company)
        before = self._lanes.get(board)
        if before is not None:
            lane.was_reached = before.was_reached
            lane.session.fingerprint = before.fingerprint
        self._lanes[board] = lane
        lane.left.extend(work)
        self._company.roster.join(board)
        self._tasks[board] = asyncio.create_task(
            self._run(lane, self._tasks.get(board)), name=f"lane {board}"
        )

    async def _run(self, lane: BoardLane, before: "asyncio.Task[LaneEnd] | None") -> LaneEnd:
        if before is not None:
            await asyncio.wait({before})
            self._company.roster.join(lane.board)
        return await lane.run()

    async def finish(self) -> tuple[LaneEnd, ...]:
        """Wait for all, also for those that begin meanwhile."""
        done: set[asyncio.Task[LaneEnd]] = set()
        try:
            while waiting := set(self._tasks.values()) - done:
                ended, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                done |= ended
        except asyncio.CancelledError:
            tasks = tuple(self._tasks.values())
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            raise
        return tuple(task.result() for task in self._tasks.values())

    async def _move_away(self, lane: BoardLane, reason: str) -> None:
        await self._mover.move_away(lane, tuple(self._lanes.values()), reason)

    def _give(self, board: str, ticket: Ticket) -> None:
        lane = self._lanes[board]
        if lane.is_accepting:
            lane.left.append(ticket)
        else:
            self.start(board, [ticket])


def _work_of(
    lane: Lane,
    progress: Mapping[str, TrialProgress],
    left_open: Mapping[str, Sequence[OpenAttempt]],
    moved: Mapping[str, str],
) -> list[Ticket]:
    """The lane's unfinished trials, those with an attempt on the board first."""
    work = []
    for trial in lane.trials:
        known = progress.get(trial.trial_id)
        if known is None or known.state in UNFINISHED:
            attempts = known.attempts if known else 0
            begun, origin = left_open.get(trial.trial_id, ()), moved.get(trial.trial_id, "")
            last = begun[-1] if begun else None
            ticket = Ticket(trial, attempts, last, moved_from=origin)
            ticket.earlier += (
                Ticket(trial, one.number, one, moved_from=origin, is_superseded=True)
                for one in begun[:-1]
            )
            work.append(ticket)
    return sorted(work, key=lambda ticket: ticket.begun is None)


async def _close_feeds(equipment: Mapping[str, BoardEquipment]) -> None:
    feeds = {id(one.feed): one.feed for one in equipment.values() if one.feed is not None}
    await asyncio.gather(*(feed.close() for feed in feeds.values()))
