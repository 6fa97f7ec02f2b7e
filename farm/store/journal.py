"""The journal of one run: each state change is on disk when the call returns."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from sqlalchemy import Connection

from farm.errors import StoreError, StoreFullError
from farm.interfaces.sinks import Journal, OpenAttempt, RunEvent
from farm.model.attempt import AttemptRecord, TrialState
from farm.model.trace import PowerTrace
from farm.store import attempts, moves
from farm.store.documents import document
from farm.store.engine import Database
from farm.store.failures import disk_full, file_errors
from farm.store.folders import EARLIER_LOG, TRACE, TRACE_LOG, attempt_folder, write_manifest
from farm.store.traces import TraceAnchor, read_log, write_parquet
from farm.store.writer import Writer

T = TypeVar("T")

_FILE_THREADS = 2  # hashing and fsync of several boards' files at once; the disk is one


class StoreJournal(Journal):
    """Keeps one run. Close it: what is not yet written is written then."""

    def __init__(
        self, database: Database, writer: Writer, results: Path, run_id: str, run_key: int
    ) -> None:
        self._database = database
        self._writer = writer
        self._results = results
        self._run_id = run_id
        self._run_key = run_key
        self._files = ThreadPoolExecutor(_FILE_THREADS, thread_name_prefix="farm-files")

    async def begin_attempt(
        self, attempt_id: str, trial_id: str, board: str, number: int, started: datetime
    ) -> Path:
        """Trial and attempt become running; the attempt's folder, not yet made."""
        folder = attempt_folder(self._results, self._run_id, attempt_id)
        patience = self._writer.patience
        if patience.is_granted and not patience.has_room:
            await patience.room(disk_full(self._results))

        def job(connection: Connection) -> None:
            attempts.begin_attempt(
                connection,
                self._run_key,
                OpenAttempt(attempt_id, trial_id, board, number, started),
            )

        await self._writer.write(job)
        return folder

    async def finish_attempt(
        self, record: AttemptRecord, state: TrialState, trace: PowerTrace | None
    ) -> None:
        """Files first, then the record and the trial's state in one transaction.

        The same record again is no error. Without a trace, what a line file in the folder
        holds (of a killed host) becomes the trace. Do not change the trace meanwhile.
        """
        if record.run_id != self._run_id:
            raise StoreError(f"attempt {record.attempt_id} belongs to run {record.run_id}")
        folder = attempt_folder(self._results, self._run_id, record.attempt_id)
        has_log = (folder / TRACE_LOG).exists()
        if trace is not None or has_log:
            await self._write_trace_patiently(folder, record, trace)

        text = document(record)

        def job(connection: Connection) -> None:
            if attempts.finish_attempt(connection, self._run_key, record, text, state):
                write_manifest(folder, record.files, text)

        await self._writer.write(job, folder, is_patient=True)
        if has_log:
            await self._in_thread(lambda: _remove_log(folder))

    async def set_trial_state(self, trial_id: str, state: TrialState, reason: str) -> None:
        """A trial's state without an attempt."""

        def job(connection: Connection) -> None:
            attempts.set_trial_state(connection, self._run_key, trial_id, state, reason)

        await self._writer.write(job)

    def record(self, event: RunEvent) -> None:
        """Note an event; on disk within a second, or with the next change."""
        self._writer.add_event(attempts.event_row(self._run_key, event))

    async def flush(self) -> None:
        """Return when every event recorded so far is on disk."""
        await self._writer.write(lambda connection: None)

    async def open_attempts(self) -> Sequence[OpenAttempt]:
        """Attempts that are running by the store."""
        return await self._in_thread(self._read_open)

    async def move_trial(self, trial_id: str, board: str, reason: str) -> None:
        """A pending trial goes to another board of the plan; a resumed run finds it there."""

        def job(connection: Connection) -> None:
            moves.move_trial(connection, self._run_key, trial_id, board, reason)

        await self._writer.write(job)

    async def events_of(self, kinds: Sequence[str]) -> Sequence[RunEvent]:
        """What was recorded of these kinds in this run, oldest first."""
        await self.flush()
        return await self._in_thread(lambda: self._read_events(tuple(kinds)))

    async def room(self, fault: StoreFullError) -> None:
        """Return after a pause, once the disk has room; raises what `fault` came to."""
        await self._writer.patience.room(fault)

    async def close(self) -> None:
        """Write the last events. Raises StoreError if that fails; closing twice is no error."""
        try:
            await self.flush()
        finally:
            self._files.shutdown(wait=True)

    async def _write_trace_patiently(
        self, folder: Path, record: AttemptRecord, trace: PowerTrace | None
    ) -> None:
        while True:
            try:
                await self._in_thread(lambda: self._write_trace(folder, record, trace))
            except StoreFullError as full:
                await self.room(full)
            else:
                return

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._files, work)

    def _read_events(self, kinds: tuple[str, ...]) -> Sequence[RunEvent]:
        with self._database.reading() as connection:
            return attempts.read_events(connection, self._run_key, kinds=kinds)

    def _read_open(self) -> Sequence[OpenAttempt]:
        with self._database.reading() as connection:
            return attempts.read_open_attempts(connection, self._run_key)

    def _write_trace(self, folder: Path, record: AttemptRecord, trace: PowerTrace | None) -> None:
        """The samples as Parquet, from the trace or from what the line file holds."""
        with file_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
        logged = read_log(folder / TRACE_LOG)
        anchor = TraceAnchor.now()
        if trace is None and logged is not None:
            trace, anchor = logged
        elif logged is not None and logged[1].boot_id != anchor.boot_id:
            # The host was restarted: these times do not compare with the trace's. Kept as it is.
            with file_errors(folder):
                (folder / TRACE_LOG).replace(folder / EARLIER_LOG)
        if trace is not None:
            if not trace.meter and record.power is not None:
                trace = replace(trace, meter=record.power.meter)
            write_parquet(folder / TRACE, trace, anchor)


def _remove_log(folder: Path) -> None:
    """Parquet holds it now. Left lying it does no harm, so a failure is nobody's concern."""
    try:
        (folder / TRACE_LOG).unlink(missing_ok=True)
    except OSError:
        return
