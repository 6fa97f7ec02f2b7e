"""One board's lane: its trials one after another, through lost links and failed attempts."""

import asyncio
import contextlib
import logging
import random
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from farm.errors import (
    BoardError,
    FarmError,
    PowerModeError,
    StoreError,
    UnsupportedPowerModeError,
)
from farm.execution.equipment import BoardEquipment, RunServices
from farm.execution.idle import IdleBaselines
from farm.execution.log_context import BOARD
from farm.execution.retry import backoff_s
from farm.execution.session import BoardSession
from farm.execution.trial import Ticket, TrialRunner
from farm.interfaces.sinks import OpenAttempt
from farm.model.attempt import TrialState
from farm.model.plan import Trial

_log = logging.getLogger(__name__)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Work:
    """A trial to do; `left_open` is its attempt that a killed host left on the board."""

    trial: Trial
    attempts: int
    left_open: OpenAttempt | None = None


@dataclass(frozen=True, slots=True)
class LaneEnd:
    """How a lane ended. `fault` is "" when all its trials are decided."""

    board: str
    was_reached: bool
    fault: str = ""


async def run_lane(
    equipment: BoardEquipment, services: RunServices, work: Sequence[Work]
) -> LaneEnd:
    """Run a board's trials; never raises but for cancellation: other lanes must go on.

    A store that cannot be written ends the lane too. What its attempt left stays on the board,
    where `farm resume` finds it.
    """
    BOARD.set(equipment.board.name)
    lane = _Lane(equipment, services)
    try:
        await lane.run(work)
    except BoardError as error:
        return await lane.gave_up(str(error.named(equipment.board.name)))
    except StoreError as error:
        return await lane.gave_up(f"{equipment.board.name}: {error}")
    except Exception as error:  # noqa: BLE001 - one board's fault must not end the others' night
        _log.exception("lane %s", equipment.board.name)
        return await lane.gave_up(f"{equipment.board.name}: internal error: {error!r}")
    finally:
        await lane.close()
    return LaneEnd(equipment.board.name, was_reached=True)


class _Lane:
    def __init__(self, equipment: BoardEquipment, services: RunServices) -> None:
        self.equipment, self.services = equipment, services
        self.session = BoardSession(equipment, services)
        self.idle = IdleBaselines(self.session, services)
        self.runner = TrialRunner(self.session, services, self.idle)
        self.chance = random.Random(equipment.board.name)  # noqa: S311 - jitter, no secret
        self.was_reached = False
        self.left: deque[Ticket] = deque()

    async def run(self, work: Sequence[Work]) -> None:
        self.left.extend(Ticket(item.trial, item.attempts, item.left_open) for item in work)
        await self._patiently(self._open)
        while self.left:
            await self._decide(self.left[0])
            self.left.popleft()
        await self.runner.settle()
        await self._patiently(self.idle.finish)

    async def close(self) -> None:
        try:
            await self.runner.settle()
        except FarmError as error:  # the attempt stays open, on the board and in the store
            _log.warning("%s: an attempt was not committed: %s", self.session.board.name, error)
        feed = self.equipment.feed
        if feed is not None and self._show_watts in feed.on_watts:
            feed.on_watts.remove(self._show_watts)
        await self.session.close()

    async def gave_up(self, fault: str) -> LaneEnd:
        """Tell why, and write it to each trial that is left: the morning asks there."""
        self.services.tell("board_lost", board=self.equipment.board.name, text=fault)
        with contextlib.suppress(StoreError):  # of a full disk the end of the run tells
            await asyncio.gather(
                *(
                    self.services.journal.set_trial_state(
                        ticket.trial.trial_id, TrialState.PENDING, fault
                    )
                    for ticket in self.left
                )
            )
        return LaneEnd(self.equipment.board.name, self.was_reached, fault)

    async def _open(self) -> None:
        await self.session.open()
        if not self.was_reached:
            self.was_reached = True
            self.services.tell("board_ready", board=self.equipment.board.name)
        feed = self.equipment.feed
        if feed is not None and self.services.rules.power != "off":
            await feed.open()
            if self._show_watts not in feed.on_watts:
                feed.on_watts.append(self._show_watts)

    def _show_watts(self, power_w: float) -> None:
        self.services.progress.watts(self.equipment.board.name, power_w)

    async def _decide(self, ticket: Ticket) -> None:
        """Try a trial until it is done, failed or unsupported."""
        state = TrialState.PENDING
        while state is TrialState.PENDING:
            try:
                state = await self._patiently(lambda: self.runner.run(ticket))
            except UnsupportedPowerModeError as error:
                state = await self._decide_without(ticket.trial, TrialState.UNSUPPORTED, error)
            except PowerModeError as error:
                state = await self._decide_without(ticket.trial, TrialState.FAILED, error)

    async def _decide_without(
        self, trial: Trial, state: TrialState, error: BoardError
    ) -> TrialState:
        """A trial that ends before it could begin."""
        text = str(error.named(trial.board))
        await self.services.journal.set_trial_state(trial.trial_id, state, text)
        self.services.tell(
            "trial_end", board=trial.board, trial_id=trial.trial_id, text=text, state=state.value
        )
        return state

    async def _patiently(self, action: Callable[[], Awaitable[T]]) -> T:
        """Do `action`; after a retryable fault wait, open the link again, and do it again.

        `action` must be safe to repeat. Raises the last fault when the tries are used up.
        """
        tries = 0
        while True:
            try:
                if tries and not self.session.is_open:
                    await self.session.open()
                return await action()
            except BoardError as error:
                tries += 1
                if not error.retryable or tries > self.services.limits.connect_retries:
                    raise
                delay_s = backoff_s(tries, self.chance)
                text = f"{error.named(self.equipment.board.name)} (again in {delay_s:.1f} s)"
                self.services.tell("retry", board=self.equipment.board.name, text=text)
                await self.services.clock.sleep(delay_s)
