"""How a run stands, by its store alone; the events that a watcher is told."""

import asyncio
import os
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from farm.errors import RunHeldError
from farm.interfaces.sinks import RunEvent
from farm.model.attempt import TrialState
from farm.pipeline.status import RunFollower, run_status, shown_runs
from farm.pipeline.stopping import run_to_stop, stop_run
from farm.store.database import Store, open_store
from farm.store.journal import StoreJournal
from tests.store.builders import make_record, new_run


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "results") as opened:
        yield opened


async def finish(
    store: Store, journal: StoreJournal, run_id: str, trial: str, when: datetime
) -> None:
    record = make_record(run_id, trial)
    record = record.model_copy(update={"started": when, "ended": when + timedelta(seconds=9)})
    folder = await journal.begin_attempt(record.attempt_id, trial, record.board, 1, when)
    folder.mkdir(parents=True, exist_ok=True)
    await journal.finish_attempt(record, TrialState.DONE, None)


def kinds(events: list[RunEvent]) -> list[tuple[str, str]]:
    return [(event.kind, event.trial_id) for event in events]


async def test_a_follower_tells_what_the_lanes_told(store: Store) -> None:
    run_id = await asyncio.to_thread(new_run, store)
    trials = list(store.progress(run_id))
    board = {trial.trial_id: trial.board for trial in store.load_plan(run_id).trials}
    now = datetime.now(UTC)
    journal = store.journal(run_id)
    await finish(store, journal, run_id, trials[0], now - timedelta(hours=2))
    journal.record(RunEvent(now - timedelta(hours=1), "host_began"))
    await finish(store, journal, run_id, trials[1], now - timedelta(minutes=9))
    journal.record(RunEvent(now, "retry", "x"))
    await journal.begin_attempt(f"{trials[2]}-a1", trials[2], board[trials[2]], 1, now)
    await journal.flush()

    follower = RunFollower(store, run_id)
    assert set(follower.known) == {trials[0]}
    assert kinds(follower.past)[:2] == [("host_began", ""), ("trial_end", trials[1])]
    assert set(kinds(follower.past)[2:]) == {("retry", ""), ("trial_start", trials[2])}
    assert follower.poll() == []

    await journal.finish_attempt(make_record(run_id, trials[2]), TrialState.DONE, None)
    await journal.set_trial_state(trials[3], TrialState.UNSUPPORTED, "no")
    journal.record(
        RunEvent(now, "trial_end", board[trials[3]], trials[3], data={"state": "unsupported"})
    )
    journal.record(RunEvent(now, "restored", "x"))
    await journal.close()
    told = follower.poll()
    assert sorted(kinds(told)) == [
        ("restored", ""), *sorted([("trial_end", trials[2]), ("trial_end", trials[3])])
    ]  # fmt: skip
    assert {event.board for event in told if event.kind == "trial_end"} == {
        board[trials[2]], board[trials[3]]
    }  # fmt: skip
    assert follower.poll() == []


def test_who_works_on_a_run(store: Store) -> None:
    run_id, other = new_run(store), new_run(store)
    store.set_run_state(other, "interrupted")
    assert run_status(store, run_id).liveness == "gone"
    with store.lock_run(run_id) as owner:
        seen = run_status(store, run_id)
        assert (seen.liveness, seen.holder) == ("working", owner)
        assert [one.info.run_id for one in shown_runs(store)] == [run_id]
        os.utime(store.run_folder(run_id) / "lock", (0, 0))
        assert run_status(store, run_id).liveness == "silent"
        store.beat(run_id, owner)
        assert run_status(store, run_id).liveness == "working"
    assert run_status(store, other).liveness == "stopped"
    store.set_run_state(run_id, "finished")
    assert run_status(store, run_id).liveness == "finished"
    assert shown_runs(store) == []


def test_stop_means_the_run_that_goes_on(store: Store) -> None:
    first, second, third = new_run(store), new_run(store), new_run(store)
    assert run_to_stop(store, None) == third
    with store.lock_run(first):
        assert run_to_stop(store, None) == first
        with store.lock_run(second), pytest.raises(RunHeldError, match="several runs go on"):
            run_to_stop(store, None)
    assert run_to_stop(store, second) == second
    with pytest.raises(RunHeldError, match="nobody works"):
        stop_run(store, third)  # it never began


def test_a_run_on_another_host_is_stopped_there(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = new_run(store)
    with store.lock_run(run_id) as owner:
        elsewhere = replace(owner, host="host-b")
        monkeypatch.setattr(Store, "run_holder", lambda self, run: elsewhere)
        with pytest.raises(RunHeldError, match=r"on host-b since .*`farm stop .*` there"):
            stop_run(store, run_id)


def test_failed_trials_can_be_tried_again(store: Store) -> None:
    run_id = new_run(store)
    trials = list(store.progress(run_id))

    async def decide() -> None:
        journal = store.journal(run_id)
        for trial in trials[:2]:
            await journal.set_trial_state(trial, TrialState.FAILED, "no")
        await journal.set_trial_state(trials[2], TrialState.DONE, "")
        await journal.close()

    asyncio.run(decide())
    assert store.reopen_failed(run_id) == 2
    assert store.reopen_failed(run_id) == 0
    states = [one.state for one in store.progress(run_id).values()]
    assert states.count(TrialState.PENDING) == len(trials) - 1
