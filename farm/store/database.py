"""The store: everything a run leaves, in a results folder, and PostgreSQL if a URL is given.

with open_store(workspace / "results") as store:
    run_id = store.create_run(plan, inventory_digest=..., tool_version=..., created=...)
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Self

from sqlalchemy import Connection

from farm.errors import StoreError
from farm.interfaces.sinks import OpenAttempt, RunEvent, TrialProgress
from farm.model.attempt import AttemptRecord, TrialState
from farm.model.history import History
from farm.model.plan import Plan
from farm.model.result import TrialResult
from farm.model.trace import PowerTrace
from farm.store import answers, attempts, claims, history, locks, plans, runs
from farm.store.attempts import AttemptEnd, StoredEvent
from farm.store.durable import make_folder
from farm.store.engine import Database
from farm.store.failures import file_errors
from farm.store.folders import TRACE, TRACE_LOG, attempt_folder, run_folder
from farm.store.journal import StoreJournal
from farm.store.locks import Holder
from farm.store.opening import open_file, open_url
from farm.store.patience import Patience
from farm.store.plans import Rest
from farm.store.runs import RunInfo
from farm.store.traces import read_log, read_parquet
from farm.store.writer import Writer

DATABASE_FILE = "farm.db"
_BUSY_TIMEOUT_S = 5.0
_ID_TRIES = 50


def open_store(
    location: str | Path,
    *,
    database_url: str | None = None,
    create: bool = True,
    busy_timeout_s: float = _BUSY_TIMEOUT_S,
) -> "Store":
    """Open the store of a results folder; made if `create` and there is none.

    Args:
        location: the results folder; runs' files are below it, and ``farm.db`` in it.
        database_url: ``postgresql://...`` to keep the tables there instead of in ``farm.db``.
        create: make what is not there; else a folder without a store is an error.
        busy_timeout_s: how long SQLite waits for another process's lock, each try.

    Raises:
        StoreVersionError: damaged, not ours, or of a newer farm; the file is left untouched.
        StoreError: it cannot be read or made.
    """
    results = Path(location)
    if create:
        with file_errors(results):
            make_folder(results)
    if database_url is not None:
        return Store(open_url(database_url, create=create), results)
    file = results / DATABASE_FILE
    return Store(open_file(file, create=create, busy_timeout_s=busy_timeout_s), results)


class Store:
    """One open store. May be used from several threads; all may raise StoreError."""

    def __init__(self, database: Database, results: Path) -> None:
        self._database = database
        self.patience = Patience(results)
        self._writer = Writer(database, self.patience)
        self.results_folder = results

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Write what waits and close. Closing twice is no error."""
        self._writer.close()
        self._database.close()

    def create_run(
        self,
        plan: Plan,
        *,
        inventory_digest: str,
        tool_version: str,
        created: datetime,
        left_out: Mapping[str, str] = MappingProxyType({}),
    ) -> str:
        """Write a run with its whole plan, all or nothing; the new run's id.

        `left_out`: trials that are skipped from the start, and why.
        """
        for taken in range(_ID_TRIES):
            run_id = runs.make_run_id(plan.sweep.name, plan.digest, created, taken)
            is_new = False

            def job(connection: Connection, run_id: str = run_id) -> None:
                nonlocal is_new
                is_new = not runs.has_run(connection, run_id)
                if is_new:
                    plans.insert_plan(
                        connection,
                        plan,
                        run_id=run_id,
                        inventory_digest=inventory_digest,
                        tool_version=tool_version,
                        created=created,
                        left_out=left_out,
                    )

            self._writer.write_now(job)
            if is_new:
                return run_id
        raise StoreError(f"no free id for a run of {plan.sweep.name} at {created.isoformat()}")

    def load_plan(self, run_id: str) -> Plan:
        """The plan, equal to the one that was stored."""
        with self._reading(run_id) as (connection, key):
            return plans.read_plan(connection, key)

    def load_rest(self, run_id: str, *, is_counted: bool = True) -> Rest:
        """What is left of a run, quick where that is little; `is_counted`: with what is not."""
        with self._reading(run_id) as (connection, key):
            return plans.read_rest(connection, key, is_counted=is_counted)

    def find_run(self, ref: str) -> str:
        """A run's id from its id, its unique beginning, or ``last``."""
        with self._database.reading() as connection:
            return runs.find_run(connection, ref)

    def runs(self) -> list[RunInfo]:
        """All runs, oldest first."""
        with self._database.reading() as connection:
            return runs.read_runs(connection)

    def run(self, run_id: str) -> RunInfo:
        """One run."""
        with self._reading(run_id) as (connection, _):
            return runs.read_runs(connection, run_id)[0]

    def set_run_state(self, run_id: str, state: str) -> None:
        """``running``, ``finished`` or ``interrupted``."""
        self._writer.write_now(lambda c: runs.set_state(c, run_id, state))

    @contextmanager
    def lock_run(self, run_id: str) -> Iterator[Holder]:
        """Hold the run, this process alone; ourselves. Raises RunHeldError telling who has it."""
        is_shared = self._database.path is None
        with locks.locked(self._lock_file(run_id), f"run {run_id}") as owner:
            self._writer.write_now(
                lambda c: claims.claim_run(c, run_id, owner, is_shared=is_shared)
            )
            try:
                yield owner
            finally:
                with suppress(StoreError):  # it goes stale by itself
                    self._writer.write_now(lambda c: claims.release_claim(c, run_id, owner))

    def beat(self, run_id: str, owner: Holder) -> None:
        """Show that the holder lives; every few seconds. Raises RunHeldError if it was replaced.

        In a results folder the lock file's time of change tells it, so that a full disk
        silences nobody; a shared database is told, too.
        """
        locks.beat(self._lock_file(run_id))
        if self._database.path is None:
            self._writer.write_now(lambda c: claims.beat_claim(c, run_id, owner))

    def run_holder(self, run_id: str) -> Holder | None:
        """The process that works on the run now, None if none does."""
        found = locks.holder(self._lock_file(run_id))
        if found is not None or self._database.path is not None:
            return found
        with self._database.reading() as connection:
            known = claims.read_claim(connection, run_id)
            if known is None or claims.is_gone(connection, *known):
                return None
        return known[0]

    def last_holder(self, run_id: str) -> Holder | None:
        """Who was killed while it worked on the run, or works on it; None after an orderly end."""
        with self._database.reading() as connection:
            known = claims.read_claim(connection, run_id)
        return None if known is None else known[0]

    def last_beat(self, run_id: str) -> datetime | None:
        """The last sign of life of who works on the run, or did; UTC."""
        if self._database.path is not None:
            return locks.last_beat(self._lock_file(run_id))
        with self._database.reading() as connection:
            known = claims.read_claim(connection, run_id)
        return None if known is None else known[1]

    def run_folder(self, run_id: str) -> Path:
        """``runs/<run>``; may not be made yet."""
        return run_folder(self.results_folder, run_id)

    def attempt_folder(self, run_id: str, attempt_id: str) -> Path:
        """``runs/<run>/attempts/<attempt>``; may not be made yet."""
        return attempt_folder(self.results_folder, run_id, attempt_id)

    def history(self, most_attempts: int = history.MOST_ATTEMPTS) -> History:
        """How long things took in the newest runs, from so many attempts at most."""
        with self._database.reading() as connection:
            return history.read_history(connection, most_attempts=most_attempts)

    def reopen_failed(self, run_id: str) -> int:
        """Let all failed trials be pending again; how many. Raises RunHeldError, StoreError."""
        return self._reopen(run_id, TrialState.FAILED)

    def reopen_skipped(self, run_id: str) -> int:
        """Let what was left out be pending; how many. Raises RunHeldError, StoreError."""
        return self._reopen(run_id, TrialState.SKIPPED)

    def _reopen(self, run_id: str, state: TrialState) -> int:
        count = 0

        def job(connection: Connection) -> None:
            nonlocal count
            count = attempts.reopen(connection, runs.run_key(connection, run_id), state)

        with self.lock_run(run_id):
            self._writer.write_now(job)
        return count

    def add_event(self, run_id: str, event: RunEvent) -> None:
        """Note an event of a run that nobody works on, durably."""
        with self._reading(run_id) as (_, key):
            row = attempts.event_row(key, event)
        self._writer.add_event(row)
        self._writer.write_now(lambda connection: None)

    def progress(self, run_id: str) -> dict[str, TrialProgress]:
        """Every trial's state and number of attempts, in the order of the plan."""
        with self._reading(run_id) as (connection, key):
            return attempts.read_progress(connection, key)

    def journal(self, run_id: str) -> StoreJournal:
        """The journal to write this run with. Close it before the store."""
        with self._reading(run_id) as (_, key):
            return StoreJournal(self._database, self._writer, self.results_folder, run_id, key)

    def results(self, run_id: str) -> list[TrialResult]:
        """One answer a trial, in the order of the plan."""
        with self._reading(run_id) as (connection, key):
            return answers.read_results(connection, key, run_id)

    def open_attempts(self, run_id: str) -> list[OpenAttempt]:
        """Attempts that were begun and not finished, by trial."""
        with self._reading(run_id) as (connection, key):
            return attempts.read_open_attempts(connection, key)

    def attempt_ends(self, run_id: str) -> list[AttemptEnd]:
        """All finished attempts, in the order in which they ended."""
        with self._reading(run_id) as (connection, key):
            return attempts.read_ends(connection, key)

    def attempts(self, run_id: str, trial_id: str | None = None) -> list[AttemptRecord]:
        """All finished attempts, of one trial if given."""
        with self._reading(run_id) as (connection, key):
            return list(attempts.read_attempts(connection, key, trial_id))

    def events(
        self,
        run_id: str,
        after: int = 0,
        limit: int | None = None,
        *,
        kinds: Sequence[str] = (),
    ) -> list[StoredEvent]:
        """Events with a number above `after`, oldest first, at most `limit`; of kinds if given."""
        with self._reading(run_id) as (connection, key):
            return attempts.read_events(connection, key, after=after, limit=limit, kinds=kinds)

    def last_event(self, run_id: str) -> int:
        """The newest event's number, 0 if there is none."""
        with self._reading(run_id) as (connection, key):
            return attempts.last_event(connection, key)

    def read_trace(self, run_id: str, attempt_id: str) -> PowerTrace | None:
        """The power trace of an attempt, also of one that still runs; None if there is none."""
        folder = self.attempt_folder(run_id, attempt_id)
        if (folder / TRACE).exists():
            return read_parquet(folder / TRACE)[0]
        found = read_log(folder / TRACE_LOG)
        return None if found is None else found[0]

    @contextmanager
    def _reading(self, run_id: str) -> Iterator[tuple[Connection, int]]:
        with self._database.reading() as connection:
            yield connection, runs.run_key(connection, run_id)

    def _lock_file(self, run_id: str) -> Path:
        return self.run_folder(run_id) / "lock"
