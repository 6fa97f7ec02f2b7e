"""One thread that writes: all that waits is committed together, durably, in order.

A commit costs a flush of the disk whether it holds one change or a hundred, so the callers of
a busy night share them. A change that is refused is undone alone; the others take hold.
"""

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path

from farm.errors import FarmError, StoreError
from farm.store.engine import Database
from farm.store.patience import Patience
from farm.store.transactions import EventRow, Job, Ticket, Transactions

_EVENT_DELAY_S = 0.5  # the journal promises a second at the latest
_COMPANY_S = 0.005  # what a lane takes from one trial to the next; a commit takes longer
_CROWD = 3  # changes in a commit that no single lane makes: a trial's end and the next's begin
_EVENT_RETRY_S = 5.0  # after a failure: a full disk stays full for a while
_EVENTS_KEPT = 20_000  # while the disk is full; some 10 MB

_log = logging.getLogger(__name__)


class Writer:
    """Starts its thread with the first change. `close` writes what waits and ends it."""

    def __init__(self, database: Database, patience: Patience) -> None:
        self._where = database.where
        self._transactions = Transactions(database, patience)
        self.patience = patience
        self._wake = threading.Condition()
        self._tickets: list[Ticket] = []
        self._events: deque[EventRow] = deque(maxlen=_EVENTS_KEPT)
        self._events_due_s: float | None = None
        self._is_closed = False
        self._thread: threading.Thread | None = None
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

        self._submit(Ticket(job, done, files, is_patient))
        await waiter

    def write_now(self, job: Job) -> None:
        """The same for callers without an event loop; blocks."""
        future: Future[None] = Future()

        def done(error: FarmError | None) -> None:
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(error)

        self._submit(Ticket(job, done))
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
        self.patience.hurry()
        with self._wake:
            self._is_closed = True
            self._wake.notify()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _submit(self, ticket: Ticket) -> None:
        with self._wake:
            self._check_open()
            self._tickets.append(ticket)
            self._start()
            if not self._is_deaf:
                self._wake.notify()

    def _check_open(self) -> None:
        if self._is_closed:
            raise StoreError(f"{self._where}: the store was closed")

    def _start(self) -> None:
        if self._thread is None:
            # A daemon: a program that forgets to close the store still ends. Nothing that was
            # acknowledged is lost by that.
            self._thread = threading.Thread(target=self._run, name="farm-store", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        tickets: list[Ticket] = []
        try:
            while True:
                tickets, events = self._gather()
                if not tickets and not events:
                    return
                outcome = self._transactions.commit(tickets, events)
                if not outcome.has_events:
                    self._keep_events(events)
                for ticket, error in zip(tickets, outcome.of_tickets, strict=True):
                    ticket.done(error)
                tickets = []
        finally:
            self._abandon(tickets)
            self._transactions.close()

    def _abandon(self, tickets: Sequence[Ticket]) -> None:
        """Nobody may wait for a thread that a bug ended."""
        with self._wake:
            self._is_closed = True
            waiting = [*tickets, *self._tickets]
            self._tickets = []
        for ticket in waiting:
            ticket.done(StoreError(f"{self._where}: the store's writer ended"))

    def _gather(self) -> tuple[list[Ticket], list[EventRow]]:
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
