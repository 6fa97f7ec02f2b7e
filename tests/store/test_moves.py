"""A trial that goes to another board is there for whoever resumes."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from farm.errors import StoreError
from farm.interfaces.sinks import RunEvent
from farm.model.attempt import TrialState
from farm.store.database import Store
from tests.store.builders import NOW, make_record, new_run, run_attempt

TRIAL = "c00000000-r01"


async def test_a_moved_trial_is_in_its_new_boards_lane(
    reopen: Callable[[], Store], store: Store
) -> None:
    run_id = new_run(store)
    before = store.load_plan(run_id)
    journal = store.journal(run_id)
    await journal.move_trial(TRIAL, "board-1", "board-0 was lost")
    await run_attempt(
        journal,
        make_record(run_id, TRIAL).model_copy(
            update={"board": "board-1", "moved_from": "board-0"}
        ),
        TrialState.PENDING,
    )
    await journal.close()
    after = reopen().load_plan(run_id)
    left, right = after.lanes
    assert [trial.trial_id for trial in left.trials] == [
        trial.trial_id for trial in before.lanes[0].trials if trial.trial_id != TRIAL
    ]
    moved = replace(before.lanes[0].trials[0], board="board-1")
    assert right.trials == (moved, *before.lanes[1].trials)
    result = next(one for one in reopen().results(run_id) if one.trial == TRIAL)
    assert (result.board, result.moved_from) == ("board-1", "board-0")


async def test_what_cannot_be_moved(store: Store) -> None:
    journal = store.journal(new_run(store))
    with pytest.raises(StoreError, match="board-9 has no lane"):
        await journal.move_trial(TRIAL, "board-9", "")
    with pytest.raises(StoreError, match="nope is not in the plan"):
        await journal.move_trial("nope", "board-1", "")
    await journal.close()


async def test_events_of_some_kinds_come_back_at_once(store: Store) -> None:
    journal = store.journal(new_run(store))
    event = RunEvent(NOW, "recovery", "board-0", text="x", data={"step": "reboot"})
    journal.record(event)
    journal.record(RunEvent(NOW, "retry", "board-0"))
    (found,) = await journal.events_of(("recovery", "trial_moved"))
    assert (found.board, found.data) == ("board-0", {"step": "reboot"})
    await journal.close()
