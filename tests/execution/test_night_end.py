"""Lanes on fake boards when the night ends: nothing is begun that would end too late."""

from dataclasses import replace
from pathlib import Path

from farm.execution.fleet import run_fleet
from farm.model.attempt import TrialState
from farm.model.plan import Trial
from farm.testing.fakes import FakeRun
from tests.execution.lab import Lab

GOOD = FakeRun(metrics={"throughput": (50.0, "images/s")})


async def test_late_trials_stay_pending_and_the_board_is_restored(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    for name in ("a", "b"):
        lab.add(name, lambda _: GOOD)

    def too_late(trial: Trial) -> str:
        return "too late" if trial.board == "a" and trial.repeat > 1 else ""

    services = replace(lab.services(), too_late=too_late)
    end = await run_fleet(lab.plan(repeats=3), lab.equipment(), services, {}, ())
    assert not any(lane.fault for lane in end.lanes)
    done = [trial for trial, state in lab.journal.states.items() if state is TrialState.DONE]
    left = {trial for trial, state in lab.journal.states.items() if state is TrialState.PENDING}
    assert len(done) == 4
    assert left == {"camaxn-r02", "camaxn-r03"}
    assert {lab.journal.reasons[trial] for trial in left} == {"too late"}
    told = [event for event in lab.journal.events if event.kind == "not_begun"]
    assert [(event.board, event.trial_id) for event in told] == [
        ("a", "camaxn-r02"),
        ("a", "camaxn-r03"),
    ]
    assert all(board.agent.lease is None for board in lab.boards.values())


async def test_an_attempt_that_a_killed_host_left_is_seen_to_its_end(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    lab.add("a", lambda _: GOOD)
    await lab.journal.begin_attempt("camaxn-r02-a1", "camaxn-r02", "a", 1, lab.clock.now())
    left = await lab.journal.open_attempts()
    services = replace(lab.services(), too_late=lambda _: "too late")
    await run_fleet(lab.plan(repeats=2), lab.equipment(), services, lab.progress(), left)
    assert lab.journal.states["camaxn-r02"] is TrialState.DONE
    assert lab.journal.states["camaxn-r01"] is TrialState.PENDING
