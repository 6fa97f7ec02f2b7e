"""Commits what waits: all in one transaction, tried again while the store is away."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
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

from farm.errors import FarmError, StoreAwayError, StoreError
from farm.store.durable import flush_file_system
from farm.store.engine import Database
from farm.store.failures import file_errors, translated
from farm.store.patience import Patience
from farm.store.schema import EVENTS

Job = Callable[[Connection], None]
"""A change to be made in a transaction. May raise FarmError to refuse; may be called again."""

EventRow = Mapping[str, object]

_OWN_FAULTS = (IntegrityError, DataError)  # of one change, not of the database

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Ticket:
    """A change that waits. `files`: the folder that must be on disk before it is."""

    job: Job
    done: Callable[[FarmError | None], None]
    files: Path | None = None
    is_patient: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of each ticket (None: it took hold), and whether the events were written."""

    of_tickets: list[FarmError | None]
    has_events: bool = True


class Transactions:
    """Of one thread. `close` its connection at the end."""

    def __init__(self, database: Database, patience: Patience) -> None:
        self._database, self._patience = database, patience
        self._connection: Connection | None = None
        self._doubt: tuple[str, list[FarmError | None]] | None = None
        """A transaction that may have taken hold though its end was not seen."""

    def close(self) -> None:
        """Close the connection that is kept."""
        if self._connection is not None:
            self._connection.close()

    def commit(self, tickets: Sequence[Ticket], events: Sequence[EventRow]) -> Outcome:
        """Again and again while the store is away and there is patience for it."""
        while True:
            try:
                outcomes = self._commit_known(tickets, events)
            except StoreAwayError as away:
                failure: StoreError = away
            except SQLAlchemyError as error:
                failure = translated(error, self._database.where)
                failure.__cause__ = error
            except StoreError as error:  # the files could not be flushed
                failure = error
            else:
                self._patience.worked()
                return Outcome(outcomes)
            try:
                if not isinstance(failure, StoreAwayError):
                    break
                _log.info("a commit did not come about: %s", failure)
                self._patience.pause(failure)
            except StoreError as error:
                failure = error
                break
        self._doubt = None
        return Outcome([failure] * len(tickets), has_events=False)

    def _commit_known(
        self, tickets: Sequence[Ticket], events: Sequence[EventRow]
    ) -> list[FarmError | None]:
        """Commit, unless a try whose end was not seen did so already."""
        if self._doubt is not None:
            transaction, outcomes = self._doubt
            if self._database.has_committed(transaction):
                self._doubt = None
                return outcomes
            self._doubt = None
        return self._commit(tickets, events)

    def _commit(
        self, tickets: Sequence[Ticket], events: Sequence[EventRow]
    ) -> list[FarmError | None]:
        """Everything in one transaction; only when something is refused, each by itself.

        Refusals are rare, and a savepoint for each change costs as much as the change.
        """
        try:
            return self._in_transaction(lambda c: self._all(c, tickets, events))
        except StoreAwayError:
            raise
        except (FarmError, OverflowError):
            pass
        except StatementError as error:
            if isinstance(error, DBAPIError) and not isinstance(error, _OWN_FAULTS):
                raise
        return self._in_transaction(lambda c: self._apart(c, tickets, events))

    def _in_transaction(
        self, work: Callable[[Connection], list[FarmError | None]]
    ) -> list[FarmError | None]:
        with self._transaction() as connection:
            outcomes = work(connection)
            if name := self._database.transaction_id(connection):
                self._doubt = name, outcomes
        self._doubt = None
        return outcomes

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

    def _all(
        self, connection: Connection, tickets: Sequence[Ticket], events: Sequence[EventRow]
    ) -> list[FarmError | None]:
        for ticket in tickets:
            ticket.job(connection)
        _flush_files([ticket.files for ticket in tickets if ticket.files is not None])
        if events:
            _insert_events(connection, events)
        return [None] * len(tickets)

    def _apart(
        self, connection: Connection, tickets: Sequence[Ticket], events: Sequence[EventRow]
    ) -> list[FarmError | None]:
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
        except StoreAwayError:
            raise
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
