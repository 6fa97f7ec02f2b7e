"""A trial's answer: its last valid attempt, else its last result, else its last attempt."""

import random

import pytest

from farm.model.attempt import Outcome, TrialState
from farm.model.measurement import PowerResult, Reason, Verdict, VerdictStatus
from farm.model.record import Source
from farm.model.result import PowerModeAnswer
from farm.store.answers import FinishedAttempt, choose_answer
from farm.store.database import Store
from farm.store.journal import StoreJournal
from tests.store.builders import (
    INVALID,
    NOW,
    VALID,
    make_plan,
    make_record,
    new_run,
    run_attempt,
    with_journal,
)

SUSPECT = Verdict(status=VerdictStatus.SUSPECT, reasons=(Reason(code="drift", text="3 %"),))
GOOD = (Outcome.OK, VerdictStatus.VALID)
SHAKY = (Outcome.OK, VerdictStatus.SUSPECT)
BAD = (Outcome.FAILED, VerdictStatus.INVALID)
NOT_HELD = (Outcome.INVALID, VerdictStatus.INVALID)


@pytest.mark.parametrize(
    ("attempts", "number"),
    [
        ([], None),
        ([BAD], 1),
        ([BAD, NOT_HELD], 2),
        ([GOOD, BAD], 1),
        ([GOOD, GOOD, BAD], 2),
        ([BAD, GOOD], 2),
        ([GOOD, SHAKY], 1),
        ([SHAKY, BAD], 1),
        ([SHAKY, SHAKY, NOT_HELD], 2),
        ([(Outcome.FAILED, VerdictStatus.VALID), BAD], 2),
    ],
)
def test_choice(attempts: list[tuple[Outcome, VerdictStatus]], number: int | None) -> None:
    finished = [FinishedAttempt(f"a{n}", n, *how) for n, how in enumerate(attempts, start=1)]
    random.Random(1).shuffle(finished)
    assert choose_answer(finished) == (None if number is None else f"a{number}")


def test_a_pending_trial(store: Store) -> None:
    run_id = new_run(store)
    result = store.results(run_id)[1]
    assert (result.run, result.trial, result.board) == (run_id, "c00000000-r02", "board-0")
    assert (result.profile, result.level, result.payload) == ("jetson-tx2", 1, "matmul")
    assert result.parameters == {"batch": 1, "precision": "fp16", "x": 1.0}
    assert result.power_mode == PowerModeAnswer(asked="MAXN", clocks="locked")
    assert (result.repeat, result.state, result.attempts) == (2, TrialState.PENDING, 0)
    unknown = ("outcome", "source", "power", "verdict", "started", "ended")
    assert [getattr(result, name) for name in unknown] == [None] * 6
    assert result.metrics == {}


def test_results_come_in_the_order_of_the_plan(store: Store) -> None:
    run_id = new_run(store)
    wanted = [trial.trial_id for trial in make_plan().trials]
    assert [result.trial for result in store.results(run_id)] == wanted


def test_the_last_valid_attempt_answers(store: Store) -> None:
    run_id = new_run(store)
    power = PowerResult(
        meter="meter-1", mean_w=9.5, window_s=60.0, energy_j=570.0, fresh_updates=60, coverage=1.0
    )
    valid = make_record(run_id, number=2, power=power, board="board-1")

    async def write(journal: StoreJournal) -> None:
        failed = {"outcome": Outcome.FAILED, "verdict": INVALID, "reason": "exit 1"}
        await run_attempt(journal, make_record(run_id, number=1, **failed), TrialState.PENDING)  # type: ignore[arg-type]
        await run_attempt(journal, valid, TrialState.DONE)
        await run_attempt(journal, make_record(run_id, number=3, **failed), TrialState.DONE)  # type: ignore[arg-type]

    with_journal(store, run_id, write)
    result = store.results(run_id)[0]
    assert (result.state, result.attempts, result.outcome) == (TrialState.DONE, 3, Outcome.OK)
    assert (result.board, result.source, result.reason) == ("board-1", Source.SIMULATED, "")
    assert result.power == power
    assert result.metrics == valid.metrics
    assert result.verdict == VALID
    assert (result.started, result.ended) == (NOW, valid.ended)
    assert result.power_mode == PowerModeAnswer(asked="MAXN", name="MAXN", id=0, clocks="default")
    assert [record.number for record in store.attempts(run_id)] == [1, 2, 3]


def test_without_a_result_the_last_attempt_answers(store: Store) -> None:
    run_id = new_run(store)

    async def write(journal: StoreJournal) -> None:
        unheld = make_record(run_id, outcome=Outcome.INVALID, verdict=INVALID)
        await run_attempt(journal, unheld, TrialState.PENDING)
        lost = make_record(run_id, number=2, outcome=Outcome.LOST, verdict=INVALID, reason="dark")
        await run_attempt(journal, lost, TrialState.FAILED)

    with_journal(store, run_id, write)
    result = store.results(run_id)[0]
    assert (result.outcome, result.reason, result.attempts) == (Outcome.LOST, "dark", 2)
    assert result.verdict == INVALID


def test_a_running_trial_shows_where(store: Store) -> None:
    run_id = new_run(store)

    async def write(journal: StoreJournal) -> None:
        await journal.begin_attempt("x-a1", "c00000000-r01", "board-7", 1, NOW)

    with_journal(store, run_id, write)
    result = store.results(run_id)[0]
    assert (result.state, result.board, result.attempts) == (TrialState.RUNNING, "board-7", 1)
    assert result.outcome is None


def test_a_trials_own_reason_is_shown(store: Store) -> None:
    run_id = new_run(store)

    async def write(journal: StoreJournal) -> None:
        failed = make_record(run_id, outcome=Outcome.FAILED, verdict=INVALID, reason="exit 1")
        await run_attempt(journal, failed, TrialState.PENDING)
        await journal.set_trial_state(failed.trial_id, TrialState.SKIPPED, "board quarantined")

    with_journal(store, run_id, write)
    result = store.results(run_id)[0]
    assert (result.state, result.reason) == (TrialState.SKIPPED, "board quarantined")
    assert result.outcome is Outcome.FAILED
