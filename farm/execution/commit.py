"""Commits a lane's finished attempts while the board already works on the next trial.

The board keeps an attempt until it is told to remove it, and it is told only once the record
is durable. So waiting for the disk of the host before the next start would buy nothing: a
killed host finds the attempt open in the store and finished on the board, and collects again.
"""

import asyncio
from collections.abc import Awaitable, Callable

from farm.execution.equipment import RunServices
from farm.execution.room import with_room
from farm.model.attempt import AttemptRecord, TrialState
from farm.model.trace import PowerTrace


class Committer:
    """Commits in the order of submission; faults come out at the next call that waits."""

    def __init__(self, services: RunServices) -> None:
        self._services = services
        self._newest: asyncio.Task[None] | None = None
        self._older: asyncio.Task[None] | None = None

    def submit(
        self,
        record: AttemptRecord,
        state: TrialState,
        trace: PowerTrace | None,
        forget: Callable[[], Awaitable[None]],
        save: Callable[[], None] | None = None,
    ) -> None:
        """Begin to commit; `forget` lets the board remove the attempt afterwards.

        `save` writes, in a thread, what else belongs into the attempt's folder.
        """
        before, self._older = self._newest, self._newest
        self._newest = asyncio.create_task(
            self._commit(before, record, state, trace, forget, save=save),
            name=f"commit {record.attempt_id}",
        )

    async def settle_older(self) -> None:
        """Wait until at most one attempt is not durable. Raises StoreError, BoardError."""
        task, self._older = self._older, None
        if task is not None:
            await asyncio.shield(task)  # a lane that is stopped still commits what it has

    async def settle(self) -> None:
        """Wait until everything submitted is durable. Raises StoreError, BoardError."""
        task, self._newest, self._older = self._newest, None, None
        if task is not None:
            await asyncio.shield(task)

    async def _commit(
        self,
        before: asyncio.Task[None] | None,
        record: AttemptRecord,
        state: TrialState,
        trace: PowerTrace | None,
        forget: Callable[[], Awaitable[None]],
        *,
        save: Callable[[], None] | None,
    ) -> None:
        if before is not None:
            await before  # its fault is this one's too: what follows it may build on it
        if save is not None:
            await with_room(self._services.journal, lambda: asyncio.to_thread(save))
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
