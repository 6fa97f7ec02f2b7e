"""One thread that writes: all that waits is committed together, durably, in order.

A commit costs a flush of the disk whether it holds one change or a hundred, so the callers of
a busy night share them. A change that is refused is undone alone; the others take hold.
"""

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, insert
from sqlalchemy.exc import (
    DataError,
    DBAPIError,
    IntegrityError,
    SQLAlchemyError,
    StatementError,
)

from farm.errors import FarmError, StoreError
from farm.store.durable import flush_file_system
from farm.store.engine import Database
from farm.store.failures import StoreLockedError, file_errors, translated
from farm.store.schema import EVENTS

Job = Callable[[Connection], None]
"""A change to be made in a transaction. May raise FarmError to refuse; may be called again."""

EventRow = Mapping[str, object]

_EVENT_DELAY_S = 0.5  # the journal promises a second at the latest
_COMPANY_S = 0.005  # what a lane takes from one trial to the next; a commit takes longer
_CROWD = 3  # changes in a commit that no single lane makes: a trial's end and the next's begin
_EVENT_RETRY_S = 5.0  # after a failure: a full disk stays full for a while
_EVENTS_KEPT = 20_000  # while the disk is full; some 10 MB
_LOCKED_TRIES = 4  # each waits for the busy timeout
_OWN_FAULTS = (IntegrityError, DataError)  # of one change, not of the database

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Ticket:
    job: Job
    done: Callable[[FarmError | None], None]
    files: Path | None = None
    is_patient: bool = False


class Writer:
    """Starts its thread with the first change. `close` writes what waits and ends it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._wake = threading.Condition()
        self._tickets: list[_Ticket] = []
        self._events: deque[EventRow] = deque(maxlen=_EVENTS_KEPT)
        self._events_due_s: float | None = None
        self._is_closed = False
        self._thread: threading.Thread | None = None
        self._connection: Connection | None = None
        self._is_crowded = False  # many lanes committed together the last time
        self._is_deaf = False  # it waits for a time, whatever comes

    async def write(
        self, job: Job, files: Path | None = None, *, is_patient: bool = False
    ) -> None:
        """Returns once the change is on disk. Raises StoreError.

        `files`: the folder of files that belong to the change; they are on disk before the
        change is. `is_patient`: nobody waits for it, so it may wait a moment for company.

        A caller that is cancelled meanwhile does not undo the change.
        """
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()

        def resolve(error: FarmError | None) -> None:
            if waiter.done():
                return
            if error is None:
                waiter.set_result(None)
            else:
                waiter.set_exception(error)

        def done(error: FarmError | None) -> None:
            try:
                loop.call_soon_threadsafe(resolve, error)
            except RuntimeError:  # the loop was closed: nobody waits any more
                _log.debug("a write ended after its event loop")

        self._submit(_Ticket(job, done, files, is_patient))
        await waiter

    def write_now(self, job: Job) -> None:
        """The same for callers without an event loop; blocks."""
        future: Future[None] = Future()

        def done(error: FarmError | None) -> None:
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(error)

        self._submit(_Ticket(job, done))
        future.result()

    def add_event(self, row: EventRow) -> None:
        """Write a row of events with the next commit, at the latest within a second."""
        with self._wake:
            self._check_open()
            self._events.append(row)
            if self._events_due_s is None:
                self._events_due_s = time.monotonic() + _EVENT_DELAY_S
                self._start()
                self._wake.notify()

    def close(self) -> None:
        """Write what waits, then end the thread. Later calls are refused."""
        with self._wake:
            self._is_closed = True
            self._wake.notify()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _submit(self, ticket: _Ticket) -> None:
        with self._wake:
            self._check_open()
            self._tickets.append(ticket)
            self._start()
            if not self._is_deaf:
                self._wake.notify()

    def _check_open(self) -> None:
        if self._is_closed:
            raise StoreError(f"{self._database.where}: the store was closed")

    def _start(self) -> None:
        if self._thread is None:
            # A daemon: a program that forgets to close the store still ends. Nothing that was
            # acknowledged is lost by that.
            self._thread = threading.Thread(target=self._run, name="farm-store", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        tickets: list[_Ticket] = []
        try:
            while True:
                tickets, events = self._gather()
                if not tickets and not events:
                    return
                outcomes = self._commit_all(tickets, events)
                for ticket, outcome in zip(tickets, outcomes, strict=True):
                    ticket.done(outcome)
                tickets = []
        finally:
            self._abandon(tickets)
            if self._connection is not None:
                self._connection.close()

    def _abandon(self, tickets: Sequence[_Ticket]) -> None:
        """Nobody may wait for a thread that a bug ended."""
        with self._wake:
            self._is_closed = True
            waiting = [*tickets, *self._tickets]
            self._tickets = []
        for ticket in waiting:
            ticket.done(StoreError(f"{self._database.where}: the store's writer ended"))

    def _gather(self) -> tuple[list[_Ticket], list[EventRow]]:
        """Wait until something is to be written; both empty at the end."""
        with self._wake:
            while not self._tickets and not self._is_closed:
                wait_s = None
                if self._events_due_s is not None:
                    wait_s = self._events_due_s - time.monotonic()
                    if wait_s <= 0:
                        break
                self._wake.wait(wait_s)
            self._wait_for_company()
            tickets, self._tickets = self._tickets, []
            events = list(self._events)
            self._events.clear()
            self._events_due_s = None
            return tickets, events

    def _wait_for_company(self) -> None:
        """While only patient changes wait: a trial's end is followed by the next one's begin.

        And while many lanes are busy, as PostgreSQL's commit_delay does: a commit's own cost
        is most of what the store costs, and lanes that share the machine wait for it anyway.
        """
        until_s = time.monotonic() + _COMPANY_S
        while self._tickets and not self._is_closed:
            left_s = until_s - time.monotonic()
            is_hurried = not all(ticket.is_patient for ticket in self._tickets)
            if left_s <= 0 or (is_hurried and not self._is_crowded):
                break
            self._is_deaf = self._is_crowded
            self._wake.wait(left_s)
        self._is_deaf = False
        self._is_crowded = len(self._tickets) >= _CROWD

    def _keep_events(self, events: Sequence[EventRow]) -> None:
        with self._wake:
            if self._is_closed:
                _log.warning("%d events could not be stored", len(events))
                return
            self._events = deque([*events, *self._events], maxlen=_EVENTS_KEPT)
            self._events_due_s = time.monotonic() + _EVENT_RETRY_S

    def _commit_all(
        self, tickets: Sequence[_Ticket], events: Sequence[EventRow]
    ) -> list[FarmError | None]:
        failure: StoreError | None = None
        for _ in range(_LOCKED_TRIES):
            try:
                return self._commit(tickets, events)
            except StoreError as error:  # the files could not be flushed
                failure = error
                break
            except SQLAlchemyError as error:
                failure = translated(error, self._database.where)
                failure.__cause__ = error
                if not isinstance(failure, StoreLockedError):
                    break
        self._keep_events(events)
        return [failure] * len(tickets)

    def _commit(
        self, tickets: Sequence[_Ticket], events: Sequence[EventRow]
    ) -> list[FarmError | None]:
        """Everything in one transaction; only when something is refused, each by itself.

        Refusals are rare, and a savepoint for each change costs as much as the change.
        """
        try:
            with self._transaction() as connection:
                for ticket in tickets:
                    ticket.job(connection)
                _flush_files([ticket.files for ticket in tickets if ticket.files is not None])
                if events:
                    _insert_events(connection, events)
        except (FarmError, OverflowError):
            return self._commit_apart(tickets, events)
        except StatementError as error:
            if isinstance(error, DBAPIError) and not isinstance(error, _OWN_FAULTS):
                raise
            return self._commit_apart(tickets, events)
        return [None] * len(tickets)

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        """As the database's `writing`, for this thread, which keeps the connection to a file.

        That to a server is looked at anew each time: it may have gone meanwhile.
        """
        if self._database.path is None:
            with self._database.writing() as connection:
                yield connection
            return
        connection, self._connection = self._connection or self._database.writer(), None
        try:
            with connection.begin():
                yield connection
        except BaseException:
            connection.close()
            raise
        self._connection = connection

    def _commit_apart(
        self, tickets: Sequence[_Ticket], events: Sequence[EventRow]
    ) -> list[FarmError | None]:
        with self._transaction() as connection:
            outcomes = [self._apply(connection, ticket.job) for ticket in tickets]
            pairs = zip(tickets, outcomes, strict=True)
            _flush_files([t.files for t, refusal in pairs if t.files and refusal is None])
            self._add_events(connection, events)
        return outcomes

    def _add_events(self, connection: Connection, events: Sequence[EventRow]) -> None:
        if events:
            lost = self._apply(connection, lambda c: _insert_events(c, events))
            if lost is not None:
                _log.warning("%d events could not be stored: %s", len(events), lost)

    def _apply(self, connection: Connection, job: Job) -> FarmError | None:
        """One job in a savepoint. Other database errors end the whole transaction."""
        savepoint = connection.begin_nested()
        try:
            job(connection)
        except FarmError as refusal:
            savepoint.rollback()
            return refusal
        except OverflowError as error:  # Python's sqlite3 raises it as it is
            savepoint.rollback()
            return StoreError(f"{self._database.where}: {error}")
        except StatementError as error:
            if isinstance(error, DBAPIError) and not isinstance(error, _OWN_FAULTS):
                raise
            savepoint.rollback()
            return translated(error, self._database.where)
        savepoint.commit()
        return None


def _flush_files(folders: Sequence[Path]) -> None:
    """All of them lie on the file system of the results. Raises StoreError."""
    if folders:
        with file_errors(folders[0]):
            flush_file_system(folders[0])


def _insert_events(connection: Connection, rows: Sequence[EventRow]) -> None:
    connection.execute(insert(EVENTS), [dict(row) for row in rows])
