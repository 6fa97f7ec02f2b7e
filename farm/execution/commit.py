"""Commits a lane's finished attempts while the board already works on the next trial.

The board keeps an attempt until it is told to remove it, and it is told only once the record
is durable. So waiting for the disk of the host before the next start would buy nothing: a
killed host finds the attempt open in the store and finished on the board, and collects again.
"""

import asyncio
from collections.abc import Awaitable, Callable

from farm.execution.equipment import RunServices
from farm.model.attempt import AttemptRecord, TrialState
from farm.model.trace import PowerTrace


class Committer:
    """Commits in the order of submission, one at a time; faults come out at the next call."""

    def __init__(self, services: RunServices) -> None:
        self._services = services
        self._task: asyncio.Task[None] | None = None

    async def submit(
        self,
        record: AttemptRecord,
        state: TrialState,
        trace: PowerTrace | None,
        forget: Callable[[], Awaitable[None]],
    ) -> None:
        """Begin to commit; `forget` lets the board remove the attempt afterwards.

        Waits for the commit before this one. Raises its StoreError or BoardError.
        """
        await self.settle()
        self._task = asyncio.create_task(
            self._commit(record, state, trace, forget), name=f"commit {record.attempt_id}"
        )

    async def settle(self) -> None:
        """Wait until everything submitted is durable. Raises StoreError, BoardError."""
        task, self._task = self._task, None
        if task is not None:
            await asyncio.shield(task)  # a lane that is stopped still commits what it has

    async def _commit(
        self,
        record: AttemptRecord,
        state: TrialState,
        trace: PowerTrace | None,
        forget: Callable[[], Awaitable[None]],
    ) -> None:
        await self._services.journal.finish_attempt(record, state, trace)
        self._services.show(
            "trial_end",
            board=record.board,
            trial_id=record.trial_id,
            attempt_id=record.attempt_id,
            text=record.reason,
            state=state.value,
            outcome=record.outcome.value,
            verdict=record.verdict.status.value,
        )
        await forget()
