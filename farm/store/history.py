"""How long things took in earlier runs: narrow columns of the newest attempts, no documents."""

import json
from datetime import datetime

from sqlalchemy import Connection, select

from farm.model.attempt import Outcome
from farm.model.history import History, PastAttempt, PastReboot
from farm.model.record import Source
from farm.model.sweep import Sweep
from farm.store.documents import read_document
from farm.store.schema import ATTEMPTS, CELLS, EVENTS, LANES, RUNS, TRIALS

MOST_ATTEMPTS = 20_000
MOST_RUNS = 50
"""Older nights say little of the next; a store of 1,000 runs costs no more than one of 50."""


def read_history(
    connection: Connection, *, most_attempts: int = MOST_ATTEMPTS, most_runs: int = MOST_RUNS
) -> History:
    """The newest finished attempts of the newest runs, their reboots and rules of measuring."""
    keys = list(
        connection.execute(select(RUNS.c.key).order_by(RUNS.c.key.desc()).limit(most_runs))
        .scalars()
        .all()
    )
    if not keys:
        return History()
    attempts = _attempts(connection, keys[-1], most_attempts)
    used = sorted({attempt.run for attempt in attempts})
    if not used:
        return History()
    documents = connection.execute(
        select(RUNS.c.key, RUNS.c.sweep_document).where(RUNS.c.key.in_(used))
    )
    rules = {key: read_document(Sweep, text).measure for key, text in documents}
    return History(attempts, _reboots(connection, used), rules)


def _attempts(connection: Connection, first_run: int, most: int) -> tuple[PastAttempt, ...]:
    rows = connection.execute(
        select(
            ATTEMPTS.c.run_key,
            ATTEMPTS.c.board,
            CELLS.c.profile,
            LANES.c.meter,
            CELLS.c.cell_id,
            CELLS.c.payload,
            CELLS.c.power_mode,
            ATTEMPTS.c.source,
            ATTEMPTS.c.outcome,
            ATTEMPTS.c.started,
            ATTEMPTS.c.ended,
        )
        .join(
            TRIALS,
            (TRIALS.c.run_key == ATTEMPTS.c.run_key) & (TRIALS.c.trial_id == ATTEMPTS.c.trial_id),
        )
        .join(
            CELLS,
            (CELLS.c.run_key == TRIALS.c.run_key) & (CELLS.c.cell_id == TRIALS.c.cell_id),
        )
        .join(LANES, (LANES.c.run_key == TRIALS.c.run_key) & (LANES.c.lane == TRIALS.c.lane))
        .where(ATTEMPTS.c.run_key >= first_run, ATTEMPTS.c.is_open.is_(False))
        .order_by(ATTEMPTS.c.run_key.desc())
        .limit(most)
    )
    return tuple(
        PastAttempt(
            run,
            board,
            profile,
            meter,
            cell_id,
            payload,
            power_mode.lower(),
            source == Source.SIMULATED.value,
            outcome == Outcome.OK.value,
            started.timestamp(),
            ended.timestamp(),
        )
        for (
            run, board, profile, meter, cell_id, payload, power_mode, source, outcome, started,
            ended,
        ) in rows
        if isinstance(ended, datetime)
    )  # fmt: skip


def _reboots(connection: Connection, runs: list[int]) -> tuple[PastReboot, ...]:
    rows = connection.execute(
        select(EVENTS.c.run_key, EVENTS.c.board, EVENTS.c.time, EVENTS.c.data_document).where(
            EVENTS.c.run_key.in_(runs), EVENTS.c.kind == "rebooted"
        )
    )
    found = []
    for run, board, time, text in rows:
        seconds = json.loads(text).get("seconds")
        if isinstance(seconds, int | float):
            found.append(PastReboot(run, board, time.timestamp(), float(seconds)))
    return tuple(found)
