"""One board's lane: its trials one after another, through lost links, failures and quarantine."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from farm.errors import (
    BoardError,
    FarmError,
    PayloadError,
    StoreError,
    UnfitBoardError,
    UnsupportedPowerModeError,
)
from farm.execution.equipment import BoardEquipment, RunServices
from farm.execution.idle import IdleBaselines
from farm.execution.log_context import BOARD
from farm.execution.quarantine import Quarantine, QuarantinedError
from farm.execution.recovery import Care, Ladder, OutOfStepsError
from farm.execution.recovery_health import Health
from farm.execution.recovery_rest import Roster
from farm.execution.session import BoardSession
from farm.execution.trial import Ticket, TrialRunner
from farm.model.attempt import BoardFingerprint, Outcome, TrialState
from farm.model.plan import Trial

_log = logging.getLogger(__name__)
T = TypeVar("T")

MOST_HANGS = 2


@dataclass(frozen=True, slots=True)
class LaneEnd:
    """How a lane ended. `fault` is "" when all its trials are decided."""

    board: str
    was_reached: bool
    fault: str = ""


@dataclass(frozen=True, slots=True)
class Company:
    """What the lanes of one run share beside its services.

    `move_away` gives what a lane's board cannot do now to its twins.
    """

    care: Care
    roster: Roster
    health: Health
    move_away: Callable[["BoardLane", str], Awaitable[None]]


class BoardLane:
    """One board's trials. `left` are those that are not decided; whoever moves trials adds."""

    def __init__(self, equipment: BoardEquipment, services: RunServices, company: Company) -> None:
        self.equipment, self.services, self.company = equipment, services, company
        self.board, self.profile = equipment.board.name, equipment.board.profile
        self.session = BoardSession(equipment, services)
        self.idle = IdleBaselines(self.session, services)
        self.runner = TrialRunner(self.session, services, self.idle)
        self.ladder = Ladder(self.session, services, company.care)
        self.quarantine = Quarantine(self.session, services, self.ladder, company.roster)
        self.was_reached = False
        self.is_accepting = True
        self.left: list[Ticket] = []
        self.is_replaced = False
        self._abandoned: list[str] = []

    @property
    def fingerprint(self) -> BoardFingerprint | None:
        """What the board was found to be; None when it was never reached."""
        return self.session.fingerprint

    @property
    def is_fit(self) -> bool:
        """It was reached and has neither given up nor rests: a twin's trials may come here."""
        return self.was_reached and not self.quarantine.is_out

    async def run(self) -> LaneEnd:
        """Run what is `left`; never raises but for cancellation: other lanes must go on.

        A store that cannot be written ends the lane too. What its attempt left stays on the
        board, where `farm resume` finds it.
        """
        BOARD.set(self.board)
        self.company.roster.join(self.board)
        try:
            await self._work_off()
        except BoardError as error:
            return await self._gave_up(str(error.named(self.board)))
        except StoreError as error:
            return await self._gave_up(f"{self.board}: {error}")
        except Exception as error:  # noqa: BLE001 - one board's fault must not end the others' night
            _log.exception("lane %s", self.board)
            return await self._gave_up(f"{self.board}: internal error: {error!r}")
        finally:
            self.is_accepting = False
            await self._close()
            self.company.roster.leave(self.board)
            self.company.health.wake()
            self.ladder.leave()
        return LaneEnd(self.board, was_reached=True)

    async def _work_off(self) -> None:
        """All trials, through quarantines. Raises the fault that the board is given up for."""
        await self.ladder.begin()
        while True:
            try:
                await self._work()
            except OutOfStepsError as out:
                if not self.left:
                    raise out.error from out
                await self._quarantine(QuarantinedError(out.error, out.text))
            except QuarantinedError as out:
                await self._quarantine(out)
            else:
                return

    async def _work(self) -> None:
        await self._patiently(self._open)
        while self.left:
            ticket = self.left[0]
            if ticket.begun is None and (late := self.services.too_late(ticket.trial)):
                await self._not_begun(ticket, late)
                continue
            state = await self._decide(ticket)
            if ticket in self.left:
                self.left.remove(ticket)
            await self._weigh(ticket, state)
        self.is_accepting = False
        await self.runner.settle()
        await self._patiently(self.idle.finish)
        with contextlib.suppress(BoardError):  # it costs the board some room, and no result
            await self.runner.forget_rest()

    async def _not_begun(self, ticket: Ticket, reason: str) -> None:
        """The trial stays pending, for a resume after the night."""
        self.left.remove(ticket)
        await self._set_pending(ticket, reason)
        trial_id = ticket.trial.trial_id
        self.services.tell("not_begun", board=self.board, trial_id=trial_id, text=reason)

    async def _weigh(self, ticket: Ticket, state: TrialState) -> None:
        """Raises QuarantinedError for a board that fails everything; its trials stay pending.

        Raises UnfitBoardError when it goes on like that after its rest.
        """
        health = self.company.health
        health.note(ticket, state)
        if state is not TrialState.FAILED:
            return
        await health.wait_for_others(self.board, self.services.limits.time_s)
        if reason := health.fault_of(self.board):
            is_again = health.is_on_probation(self.board)
            await self.runner.settle()
            for failed in health.take(self.board):
                if is_again or not failed.is_second_chance:
                    failed.is_second_chance = True
                    await self._set_pending(failed, f"{self.board} fails everything: {reason}")
                    self.left.append(failed)
            error = UnfitBoardError("run", f"it fails everything: {reason}")
            if is_again:
                raise error
            raise QuarantinedError(error, "")

    async def _quarantine(self, out: QuarantinedError) -> None:
        """Out of the run, until the board is back; raises the fault when it is given up."""
        self.quarantine.begin(out)
        self.company.health.wake()
        with contextlib.suppress(BoardError):
            await self.runner.settle()
        await self.company.move_away(self, out.error.seen)
        if self.left[1:] and self.left[0].begun is None:
            self.left.append(self.left.pop(0))  # should it be that trial that takes the board down
        await self.quarantine.rest(has_work=bool(self.left))
        await self._end_abandoned()

    async def abandon(self, ticket: Ticket, reason: str) -> None:
        """Close the attempt that is open; the board is told when it is back. See TrialRunner."""
        board_id = await self.runner.abandon(ticket, reason)
        if board_id:
            self._abandoned.append(board_id)

    async def _end_abandoned(self) -> None:
        """The board is back: end what it is still at, whose trial has gone elsewhere."""
        with contextlib.suppress(BoardError):
            for board_id in tuple(self._abandoned):
                if (await self.session.agent.status(board_id)).phase != "absent":
                    await self.session.agent.stop(board_id)
                    await self.session.agent.remove([board_id])
                self._abandoned.remove(board_id)

    async def _close(self) -> None:
        try:
            await self.runner.settle()
        except FarmError as error:  # the attempt stays open, on the board and in the store
            _log.warning("%s: an attempt was not committed: %s", self.board, error)
        feed = self.equipment.feed
        if feed is not None and self._show_watts in feed.on_watts:
            feed.on_watts.remove(self._show_watts)
        await self.session.close()

    async def _gave_up(self, fault: str) -> LaneEnd:
        """Tell why, and write it to each trial that is left: the morning asks there."""
        self.quarantine.is_out = True
        self.services.tell("board_lost", board=self.board, text=fault)
        with contextlib.suppress(StoreError):  # of a full disk the end of the run tells
            await self.company.move_away(self, fault)
            await asyncio.gather(*(self._set_pending(ticket, fault) for ticket in self.left))
        if self.is_replaced and not self.left:
            fault = ""  # its twins do all that it had to do
        return LaneEnd(self.board, self.was_reached, fault)

    async def _set_pending(self, ticket: Ticket, reason: str) -> None:
        await self.services.journal.set_trial_state(
            ticket.trial.trial_id, TrialState.PENDING, reason
        )

    async def _open(self) -> None:
        if not self.session.is_open:
            await self.session.open()
        if not self.was_reached:
            self.was_reached = True
            self.services.tell("board_ready", board=self.board)
        feed = self.equipment.feed
        if feed is not None and self.services.rules.power != "off":
            await feed.open()
            if self._show_watts not in feed.on_watts:
                feed.on_watts.append(self._show_watts)

    def _show_watts(self, power_w: float) -> None:
        self.services.progress.watts(self.board, power_w)

    async def _decide(self, ticket: Ticket) -> TrialState:
        """Try a trial until it is done, failed or unsupported."""
        state = TrialState.PENDING
        while state is TrialState.PENDING:
            rescues = self.ladder.rescues
            try:
                state = await self._patiently(lambda: self.runner.run(ticket))
                if state is TrialState.PENDING and ticket.outcome is Outcome.LOST:
                    ticket.hangs += self.ladder.rescues > rescues
                    state = await self._bear(ticket)
            except UnsupportedPowerModeError as error:
                state = await self._decide_without(ticket.trial, TrialState.UNSUPPORTED, error)
            except BoardError as error:
                if error.culprit != "trial":
                    raise
                state = await self._decide_without(ticket.trial, TrialState.FAILED, error)
        return state

    async def _bear(self, ticket: Ticket) -> TrialState:
        """A trial under which the board hangs is not begun a third time: it costs the others."""
        if ticket.hangs < MOST_HANGS:
            return TrialState.PENDING
        await self.runner.settle()
        error = PayloadError("run", f"the board hung under it {ticket.hangs} times")
        return await self._decide_without(ticket.trial, TrialState.FAILED, error)

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
        """Do `action`; after a fault climb the ladder, open the link again, and do it again.

        `action` must be safe to repeat. Raises the fault where that cannot help, and
        OutOfStepsError.
        """
        has_failed = False
        while True:
            try:
                if has_failed and not self.session.is_open:
                    await self.session.open()
                done = await action()
            except BoardError as error:
                has_failed = True
                await self.ladder.after(error)
            else:
                self.ladder.worked()
                return done
