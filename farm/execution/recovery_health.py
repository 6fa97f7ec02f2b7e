"""A board that fails everything is found before it eats the queue.

A payload that fails on every board is the payload's fault; one that fails on this board and
passes on its like is the board's. Three different cells in a row are asked for.
"""

import asyncio
from collections import defaultdict, deque
from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from farm.execution.recovery_rest import Roster
from farm.execution.trial import Ticket
from farm.model.attempt import Outcome, TrialState
from farm.model.plan import Plan, Trial

IN_A_ROW = 3


def like(trial: Trial) -> Hashable:
    """Equal for trials that do the same on boards of one type."""
    cell = trial.cell
    parameters = tuple(sorted((name, repr(value)) for name, value in cell.parameters.items()))
    return cell.profile, cell.payload_digest, cell.power_mode, cell.clocks, parameters


@dataclass(frozen=True, slots=True)
class _Failed:
    ticket: Ticket
    is_lost: bool


class Health:
    """What each board's newest trials came to, and what the others made of the same."""

    def __init__(self, plan: Plan, roster: Roster) -> None:
        self._roster = roster
        self._planned: dict[Hashable, set[str]] = defaultdict(set)
        for trial in plan.trials:
            self._planned[like(trial)].add(trial.board)
        self._passed: dict[Hashable, set[str]] = defaultdict(set)
        self._failed_on: dict[Hashable, set[str]] = defaultdict(set)
        self._failed: dict[str, deque[_Failed]] = defaultdict(lambda: deque(maxlen=IN_A_ROW))
        self._waiting: set[str] = set()
        self._unanswered: set[str] = set()
        self._on_probation: set[str] = set()
        self._news = asyncio.Event()

    def note(self, ticket: Ticket, state: TrialState) -> None:
        """A trial was decided."""
        board, key = ticket.trial.board, like(ticket.trial)
        if state is not TrialState.FAILED:
            if state is TrialState.DONE:
                self._passed[key].add(board)
            self._failed[board].clear()
            self._unanswered.discard(board)
            self._on_probation.discard(board)
        else:
            self._failed_on[key].add(board)
            is_lost = ticket.outcome is Outcome.LOST
            known = {like(one.ticket.trial) for one in self._failed[board]}
            if key not in known:
                self._failed[board].append(_Failed(ticket, is_lost))
        self._news.set()

    def fault_of(self, board: str) -> str:
        """Why the board fails everything; "" when it does not, as far as is known."""
        failed = self._failed[board]
        if len(failed) < self._needed(board) or not all(
            self._is_boards_fault(one, board) for one in failed
        ):
            return ""
        told = "; ".join(
            f"{one.ticket.trial.trial_id}: {one.ticket.previous_reason[:300] or 'no attempt'}"
            for one in failed
        )
        return (
            f"its last {len(failed)} different cells all failed, and not for their own sake: the "
            f"board was lost under them, or others of its type pass them ({told})"
        )

    def is_on_probation(self, board: str) -> bool:
        """It failed everything before it rested, and nothing has gone well since."""
        return board in self._on_probation

    def take(self, board: str) -> list[Ticket]:
        """The trials that failed for the board's sake; it begins anew."""
        failed = [one.ticket for one in self._failed[board]]
        self._failed[board].clear()
        self._on_probation.add(board)
        return failed

    async def wait_for_others(self, board: str, limit_s: float) -> None:
        """While only others can tell whose fault it is, wait for their word; bounded."""
        self._waiting.add(board)
        try:
            async with asyncio.timeout(limit_s):
                while self._is_open_question(board):
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            self._unanswered.add(board)
        finally:
            self._waiting.discard(board)
            self._news.set()

    def _needed(self, board: str) -> int:
        return 1 if board in self._on_probation else IN_A_ROW

    def _is_boards_fault(self, failed: _Failed, board: str) -> bool:
        return failed.is_lost or bool(self._passed[like(failed.ticket.trial)] - {board})

    def _is_open_question(self, board: str) -> bool:
        failed = self._failed[board]
        if len(failed) < self._needed(board) or board in self._unanswered:
            return False
        unclear = [one for one in failed if not self._is_boards_fault(one, board)]
        return bool(unclear) and all(self._may_be_told(one, board) for one in unclear)

    def _may_be_told(self, failed: _Failed, board: str) -> bool:
        """A board of its type is at work, has the same to do, and has not done it yet."""
        key = like(failed.ticket.trial)
        if self._failed_on[key] - {board}:
            return False  # it failed elsewhere too: no fault of this board
        others: Iterable[str] = self._planned[key] - {board} - self._waiting
        return any(self._roster.is_working(other) for other in others)

    def wake(self) -> None:
        """A lane ended or rests: nobody need wait for it."""
        self._news.set()
