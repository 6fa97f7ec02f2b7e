"""A trial's answer: its last valid attempt, else its last result, else its last attempt."""

from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import Connection, select

from farm.model.attempt import AttemptRecord, Outcome, TrialState
from farm.model.measurement import VerdictStatus
from farm.model.plan import Cell
from farm.model.result import PowerModeAnswer, TrialResult
from farm.store.documents import read_document
from farm.store.plans import read_cells
from farm.store.schema import ATTEMPTS, TRIALS

_FETCHED = 500  # records read from the database at a time


@dataclass(frozen=True, slots=True)
class FinishedAttempt:
    """What decides which attempt is the answer."""

    attempt_id: str
    number: int
    outcome: Outcome
    verdict: VerdictStatus

    @property
    def is_valid(self) -> bool:
        """It ran to its end and its measurement holds."""
        return self.outcome is Outcome.OK and self.verdict is VerdictStatus.VALID


@dataclass(frozen=True, slots=True)
class _TrialRow:
    trial_id: str
    cell_id: str
    repeat: int
    board: str
    state: TrialState
    reason: str
    attempts: int


def choose_answer(finished: Iterable[FinishedAttempt]) -> str | None:
    """The id of the attempt that is the trial's answer, None if none was finished."""
    in_order = sorted(finished, key=lambda attempt: attempt.number)
    valid = [attempt for attempt in in_order if attempt.is_valid]
    results = [attempt for attempt in in_order if attempt.outcome is Outcome.OK]
    chosen = (valid or results or in_order)[-1:]
    return chosen[0].attempt_id if chosen else None


def read_results(connection: Connection, run_key: int, run_id: str) -> list[TrialResult]:
    """One object a trial, in the order of the plan."""
    cells = read_cells(connection, run_key)
    open_boards = _open_boards(connection, run_key)
    answers = _read_answers(connection, run_key)
    results = []
    for row in _trial_rows(connection, run_key):
        answer = answers.get(row.trial_id)
        board = open_boards.get(row.trial_id, answer.board if answer else row.board)
        results.append(_result(run_id, row, cells[row.cell_id], board, answer))
    return results


def _result(
    run_id: str, row: _TrialRow, cell: Cell, board: str, answer: AttemptRecord | None
) -> TrialResult:
    applied = answer.power_mode if answer else None
    fields: dict[str, object] = {}
    if answer is not None:
        fields = {
            "outcome": answer.outcome,
            "source": answer.source,
            "metrics": dict(answer.metrics),
            "power": answer.power,
            "verdict": answer.verdict,
            "started": answer.started,
            "ended": answer.ended,
            "moved_from": answer.moved_from or None,
        }
    # The trial's reason belongs to its last attempt, which need not be the answer.
    is_answered = answer is not None and row.state is TrialState.DONE
    return TrialResult.model_validate(
        {
            "run": run_id,
            "trial": row.trial_id,
            "board": board,
            "profile": cell.profile,
            "level": cell.level,
            "payload": cell.payload,
            "parameters": dict(cell.parameters),
            "power_mode": PowerModeAnswer(
                asked=cell.power_mode,
                name=applied.name if applied else None,
                id=applied.id if applied else None,
                budget_w=applied.budget_w if applied else None,
                clocks=applied.clocks if applied else cell.clocks,
            ),
            "repeat": row.repeat,
            "state": row.state,
            "attempts": row.attempts,
            "reason": answer.reason if answer and is_answered else row.reason,
            **fields,
        }
    )


def _trial_rows(connection: Connection, run_key: int) -> list[_TrialRow]:
    rows = connection.execute(
        select(TRIALS).where(TRIALS.c.run_key == run_key).order_by(TRIALS.c.position)
    )
    return [
        _TrialRow(
            trial_id=row.trial_id,
            cell_id=row.cell_id,
            repeat=row.repeat,
            board=row.board,
            state=TrialState(row.state),
            reason=row.reason,
            attempts=row.attempts,
        )
        for row in rows
    ]


def _open_boards(connection: Connection, run_key: int) -> dict[str, str]:
    rows = connection.execute(
        select(ATTEMPTS.c.trial_id, ATTEMPTS.c.board)
        .where(ATTEMPTS.c.run_key == run_key, ATTEMPTS.c.is_open.is_(True))
        .order_by(ATTEMPTS.c.number)
    )
    return {row.trial_id: row.board for row in rows}


def _read_answers(connection: Connection, run_key: int) -> dict[str, AttemptRecord]:
    """By trial. Choosing reads narrow columns only; of the records just the chosen are parsed."""
    finished: dict[str, list[FinishedAttempt]] = {}
    of_run = (ATTEMPTS.c.run_key == run_key, ATTEMPTS.c.is_open.is_(False))
    for row in connection.execute(
        select(
            ATTEMPTS.c.trial_id,
            ATTEMPTS.c.attempt_id,
            ATTEMPTS.c.number,
            ATTEMPTS.c.outcome,
            ATTEMPTS.c.verdict,
        ).where(*of_run)
    ):
        finished.setdefault(row.trial_id, []).append(
            FinishedAttempt(
                row.attempt_id, row.number, Outcome(row.outcome), VerdictStatus(row.verdict)
            )
        )
    chosen = {choose_answer(attempts) for attempts in finished.values()}
    records = connection.execute(
        select(ATTEMPTS.c.trial_id, ATTEMPTS.c.attempt_id, ATTEMPTS.c.record_document)
        .where(*of_run)
        .execution_options(yield_per=_FETCHED)
    )
    return {
        row.trial_id: read_document(AttemptRecord, row.record_document)
        for row in records
        if row.attempt_id in chosen
    }
