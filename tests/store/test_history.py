"""What the store tells of the past, and of what is left of a run."""

from datetime import timedelta

import pytest

from farm.interfaces.sinks import RunEvent
from farm.model.attempt import Outcome, TrialState
from farm.model.plan import Plan
from farm.store import plans
from farm.store.database import Store
from farm.store.journal import StoreJournal
from tests.store.builders import NOW, make_plan, make_record, new_run, with_journal


async def _work(journal: StoreJournal, run_id: str, plan: Plan) -> None:
    """The first trial is done, the second failed, the third is begun; the board was rebooted."""
    for number, trial in enumerate(plan.lanes[0].trials[:3]):
        is_bad = number == 1
        record = make_record(
            run_id, trial.trial_id, outcome=Outcome.FAILED if is_bad else Outcome.OK
        )
        begin = NOW + timedelta(seconds=100 * number)
        record = record.model_copy(
            update={"started": begin, "ended": begin + timedelta(seconds=70)}
        )
        await journal.begin_attempt(record.attempt_id, trial.trial_id, "board-0", 1, begin)
        if number < 2:
            state = TrialState.FAILED if is_bad else TrialState.DONE
            await journal.finish_attempt(record, state, None)
    journal.record(RunEvent(NOW, "rebooted", "board-0", data={"seconds": 81.5}))
    journal.record(RunEvent(NOW, "rebooted", "board-0", text="of an older farm"))


@pytest.fixture
def worked(store: Store) -> tuple[str, Plan]:
    plan = make_plan(trials=4)
    run_id = new_run(store, plan)
    with_journal(store, run_id, lambda journal: _work(journal, run_id, plan))
    return run_id, plan


def test_history_is_finished_attempts_with_their_rules(
    store: Store, worked: tuple[str, Plan]
) -> None:
    known = store.history()
    assert [(one.is_ok, one.end_s - one.begin_s) for one in known.attempts] in (
        [(True, 70.0), (False, 70.0)],
        [(False, 70.0), (True, 70.0)],
    )
    first = next(one for one in known.attempts if one.is_ok)
    trial = worked[1].trials[0]
    assert (first.cell_id, first.board) == (trial.cell.cell_id, "board-0")
    assert (first.payload, first.meter, first.power_mode) == ("matmul", "meter-1", "maxn")
    assert first.begin_s == NOW.timestamp()
    assert [reboot.seconds for reboot in known.reboots] == [81.5]
    assert known.rules == {first.run: worked[1].sweep.measure}


def test_history_is_bounded_and_begins_with_nothing(store: Store) -> None:
    assert store.history().attempts == ()
    new_run(store)
    assert store.history().attempts == ()


def test_of_many_attempts_the_newest_run_counts(store: Store, worked: tuple[str, Plan]) -> None:
    plan = make_plan(trials=4)
    again = new_run(store, plan)
    with_journal(store, again, lambda journal: _work(journal, again, plan))
    runs = {one.run for one in store.history().attempts}
    assert len(runs) == 2
    assert {one.run for one in store.history(most_attempts=2).attempts} == {max(runs)}


@pytest.mark.parametrize("most_named", [500, 0])
def test_what_is_left_is_the_plan_without_what_is_decided(
    store: Store, worked: tuple[str, Plan], most_named: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plans, "_MOST_NAMED", most_named)
    run_id, plan = worked
    rest = store.load_rest(run_id)
    assert rest.plan.trials == (*plan.lanes[0].trials[2:], *plan.lanes[1].trials)
    assert rest.decided == {"board-0": (2, 1)}
    assert {name: one.state for name, one in rest.known.items()} == {
        trial.trial_id: TrialState.RUNNING if at == 0 else TrialState.PENDING
        for at, trial in enumerate(rest.plan.trials)
    }
    assert [lane.estimate_s for lane in rest.plan.lanes] == [
        pytest.approx(plan.lanes[0].estimate_s / 2),
        plan.lanes[1].estimate_s,
    ]
    assert (rest.plan.sweep, rest.plan.digest) == (plan.sweep, plan.digest)
    quick = store.load_rest(run_id, is_counted=False)
    assert (quick.known, quick.decided) == (rest.known, {})
    assert quick.plan.trials == rest.plan.trials


def test_trials_can_be_left_out_from_the_start(store: Store) -> None:
    plan = make_plan()
    first = plan.trials[0].trial_id
    run_id = store.create_run(
        plan, inventory_digest="0", tool_version="0", created=NOW, left_out={first: "no time"}
    )
    assert store.progress(run_id)[first].state is TrialState.SKIPPED
    assert [one.reason for one in store.results(run_id)][:2] == ["no time", ""]
    assert first not in store.load_rest(run_id).known
    assert store.reopen_failed(run_id) == 0
    assert store.reopen_skipped(run_id) == 1
    assert first in store.load_rest(run_id).known
