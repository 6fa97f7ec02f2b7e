"""Attempts and what they say: begun, finished once, never changed after."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import (
    Connection,
    Integer,
    bindparam,
    case,
    exists,
    func,
    insert,
    select,
    update,
)

from farm.errors import StoreError
from farm.interfaces.sinks import OpenAttempt, RunEvent, TrialProgress
from farm.model.attempt import AttemptRecord, TrialState
from farm.store.documents import finite, plain, read_document, to_text
from farm.store.schema import ATTEMPTS, EVENTS, MEASUREMENTS, TRIALS

_FETCHED = 500  # records read from the database at a time


@dataclass(frozen=True, slots=True)
class StoredEvent(RunEvent):
    """An event with its number in the store; numbers grow with time."""

    number: int = 0


@dataclass(frozen=True, slots=True)
class AttemptEnd:
    """When an attempt ended (UTC), and how it is judged: what a view needs of its record."""

    attempt_id: str
    trial_id: str
    board: str
    ended: datetime
    verdict: str


_IS_TRIAL = (TRIALS.c.run_key == bindparam("of_run"), TRIALS.c.trial_id == bindparam("of_trial"))
_IS_ATTEMPT = (
    ATTEMPTS.c.run_key == bindparam("of_run"),
    ATTEMPTS.c.attempt_id == bindparam("of_attempt"),
)
# Built once: SQLAlchemy spends several times as long on building a statement and finding its
# compiled form as on running it, and a night begins and ends 100,000 attempts.
_BEGIN_TRIAL = (
    update(TRIALS)
    .where(*_IS_TRIAL)
    .values(
        state=TrialState.RUNNING.value,
        reason="",
        attempts=case(
            (TRIALS.c.attempts < bindparam("of_number", type_=Integer), bindparam("of_number")),
            else_=TRIALS.c.attempts,
        ),
    )
)
_BEGUN = {
    name: bindparam(f"of_{parameter}", type_=ATTEMPTS.c[name].type)
    for name, parameter in (
        ("run_key", "run"),
        ("attempt_id", "attempt"),
        ("trial_id", "trial"),
        ("number", "number"),
        ("board", "board"),
        ("is_open", "open"),
        ("started", "started"),
    )
}
_BEGIN_ATTEMPT = (
    insert(ATTEMPTS)
    .from_select(list(_BEGUN), select(*_BEGUN.values()).where(~exists().where(*_IS_ATTEMPT)))
    .execution_options(preserve_rowcount=True)  # else some drivers tell -1
)
_FINISH_ATTEMPT = (
    update(ATTEMPTS)
    .where(
        *_IS_ATTEMPT,
        ATTEMPTS.c.trial_id == bindparam("of_trial"),
        ATTEMPTS.c.is_open.is_(True),
    )
    .values(
        is_open=False,
        board=bindparam("to_board"),
        started=bindparam("to_started"),
        ended=bindparam("to_ended"),
        outcome=bindparam("to_outcome"),
        verdict=bindparam("to_verdict"),
        source=bindparam("to_source"),
        record_document=bindparam("to_document"),
    )
)
_SET_TRIAL = (
    update(TRIALS)
    .where(*_IS_TRIAL)
    .values(state=bindparam("to_state"), reason=bindparam("to_reason"))
)
_ADD_MEASUREMENTS = insert(MEASUREMENTS)


def begin_attempt(connection: Connection, run_key: int, attempt: OpenAttempt) -> None:
    """Trial and attempt become running. Beginning the same open attempt again is no error.

    Raises StoreError for an unknown trial and for an id that is taken.
    """
    trial = {"of_run": run_key, "of_trial": attempt.trial_id, "of_number": attempt.number}
    if connection.execute(_BEGIN_TRIAL, trial).rowcount == 0:
        raise StoreError(f"trial {attempt.trial_id} is not in the plan of this run")
    values = {
        **trial,
        "of_attempt": attempt.attempt_id,
        "of_board": attempt.board,
        "of_open": True,
        "of_started": attempt.started,
    }
    if connection.execute(_BEGIN_ATTEMPT, values).rowcount == 0:
        _check_begun(connection, run_key, attempt)


def _check_begun(connection: Connection, run_key: int, attempt: OpenAttempt) -> None:
    """Raise StoreError unless what stands under the attempt's id is this attempt, still open."""
    known = connection.execute(
        select(ATTEMPTS.c.is_open, ATTEMPTS.c.trial_id, ATTEMPTS.c.number).where(
            ATTEMPTS.c.run_key == run_key, ATTEMPTS.c.attempt_id == attempt.attempt_id
        )
    ).one_or_none()
    same = (True, attempt.trial_id, attempt.number)
    if known is None or (known.is_open, known.trial_id, known.number) != same:
        raise StoreError(f"attempt {attempt.attempt_id} is in the store already")


def finish_attempt(
    connection: Connection, run_key: int, record: AttemptRecord, text: str, state: TrialState
) -> bool:
    """The attempt's record, `text` as a document, and the trial's new state.

    False if this very record was written before. Raises StoreError if the attempt was never
    begun, or was finished differently.
    """
    values = {
        "of_run": run_key,
        "of_attempt": record.attempt_id,
        "of_trial": record.trial_id,
        "to_board": record.board,
        "to_started": record.started,
        "to_ended": record.ended,
        "to_outcome": record.outcome.value,
        "to_verdict": record.verdict.status.value,
        "to_source": record.source.value,
        "to_document": text,
    }
    if connection.execute(_FINISH_ATTEMPT, values).rowcount == 0:
        _check_finished(connection, run_key, record, text)
        return False
    # By name: two hostile names that are alike once cut must not refuse the whole attempt.
    rows = list({row["name"]: row for row in _measurement_rows(run_key, record)}.values())
    if rows:
        connection.execute(_ADD_MEASUREMENTS, rows)
    set_trial_state(connection, run_key, record.trial_id, state, record.reason)
    return True


def _check_finished(
    connection: Connection, run_key: int, record: AttemptRecord, text: str
) -> None:
    """Raise StoreError unless exactly this record was written before."""
    known = connection.execute(
        select(ATTEMPTS.c.trial_id, ATTEMPTS.c.record_document).where(
            ATTEMPTS.c.run_key == run_key, ATTEMPTS.c.attempt_id == record.attempt_id
        )
    ).one_or_none()
    if known is None or known.trial_id != record.trial_id:
        raise StoreError(f"attempt {record.attempt_id} of {record.trial_id} was never begun")
    if known.record_document != text:
        raise StoreError(f"attempt {record.attempt_id} was finished before, with another record")


def set_trial_state(
    connection: Connection, run_key: int, trial_id: str, state: TrialState, reason: str
) -> None:
    """A trial's new state. Raises StoreError for an unknown trial."""
    values = {
        "of_run": run_key,
        "of_trial": trial_id,
        "to_state": state.value,
        "to_reason": plain(reason),
    }
    if connection.execute(_SET_TRIAL, values).rowcount == 0:
        raise StoreError(f"trial {trial_id} is not in the plan of this run")


def reopen(connection: Connection, run_key: int, state: TrialState) -> int:
    """All trials of a state become pending, and keep their attempts and reasons; how many."""
    done = connection.execute(
        update(TRIALS)
        .where(TRIALS.c.run_key == run_key, TRIALS.c.state == state.value)
        .values(state=TrialState.PENDING.value)
    )
    return done.rowcount


def read_progress(connection: Connection, run_key: int) -> dict[str, TrialProgress]:
    """Every trial's state, in the order of the plan."""
    rows = connection.execute(
        select(TRIALS.c.trial_id, TRIALS.c.state, TRIALS.c.attempts)
        .where(TRIALS.c.run_key == run_key)
        .order_by(TRIALS.c.position)
    )
    return {name: TrialProgress(name, TrialState(state), count) for name, state, count in rows}


def read_open_attempts(connection: Connection, run_key: int) -> list[OpenAttempt]:
    """Attempts that were begun and not finished."""
    rows = connection.execute(
        select(ATTEMPTS)
        .where(ATTEMPTS.c.run_key == run_key, ATTEMPTS.c.is_open.is_(True))
        .order_by(ATTEMPTS.c.trial_id, ATTEMPTS.c.number)
    )
    return [
        OpenAttempt(row.attempt_id, row.trial_id, row.board, row.number, row.started)
        for row in rows
    ]


def read_ends(connection: Connection, run_key: int) -> list[AttemptEnd]:
    """All finished attempts, in the order in which they ended."""
    rows = connection.execute(
        select(
            ATTEMPTS.c.attempt_id,
            ATTEMPTS.c.trial_id,
            ATTEMPTS.c.board,
            ATTEMPTS.c.ended,
            ATTEMPTS.c.verdict,
        )
        .where(ATTEMPTS.c.run_key == run_key, ATTEMPTS.c.is_open.is_(False))
        .order_by(ATTEMPTS.c.ended)
    )
    return [AttemptEnd(*row) for row in rows]


def read_attempts(
    connection: Connection, run_key: int, trial_id: str | None = None
) -> Iterator[AttemptRecord]:
    """Finished attempts by trial in the order of the plan, then by number."""
    query = (
        select(ATTEMPTS.c.record_document)
        .join(
            TRIALS,
            (TRIALS.c.run_key == ATTEMPTS.c.run_key) & (TRIALS.c.trial_id == ATTEMPTS.c.trial_id),
        )
        .where(ATTEMPTS.c.run_key == run_key, ATTEMPTS.c.is_open.is_(False))
        .order_by(TRIALS.c.position, ATTEMPTS.c.number)
    )
    if trial_id is not None:
        query = query.where(ATTEMPTS.c.trial_id == trial_id)
    rows = connection.execute(query.execution_options(yield_per=_FETCHED))
    for text in rows.scalars():
        yield read_document(AttemptRecord, text or "")


def read_events(
    connection: Connection,
    run_key: int,
    *,
    after: int = 0,
    limit: int | None = None,
    kinds: Sequence[str] = (),
) -> list[StoredEvent]:
    """Events with a number above `after`, oldest first; of some kinds only, if given."""
    query = select(EVENTS).where(EVENTS.c.run_key == run_key, EVENTS.c.key > after)
    if kinds:
        query = query.where(EVENTS.c.kind.in_(kinds))
    rows = connection.execute(query.order_by(EVENTS.c.key).limit(limit))
    return [
        StoredEvent(
            number=row.key,
            time=row.time,
            kind=row.kind,
            board=row.board,
            trial_id=row.trial_id,
            attempt_id=row.attempt_id,
            text=row.text,
            data=json.loads(row.data_document),
        )
        for row in rows
    ]


def last_event(connection: Connection, run_key: int) -> int:
    """The highest number of a run's events, 0 if there is none."""
    newest = select(func.max(EVENTS.c.key)).where(EVENTS.c.run_key == run_key)
    return int(connection.execute(newest).scalar() or 0)


def event_row(run_key: int, event: RunEvent) -> dict[str, object]:
    """An event as a row of EVENTS."""
    return {
        "run_key": run_key,
        "time": event.time,
        "kind": plain(event.kind, 64),
        "board": plain(event.board, 200),
        "trial_id": plain(event.trial_id, 200),
        "attempt_id": plain(event.attempt_id, 200),
        "text": plain(event.text),
        "data_document": to_text(dict(event.data)),
    }


def _measurement_rows(run_key: int, record: AttemptRecord) -> Iterator[dict[str, object]]:
    for name, measurement in record.metrics.items():
        yield {
            "run_key": run_key,
            "attempt_id": record.attempt_id,
            "name": plain(name, 200),
            "value": finite(measurement.value),
            "unit": plain(measurement.unit, 64),
            "scope": plain(measurement.scope, 64),
            "window_name": None if measurement.window is None else plain(measurement.window, 200),
        }
