"""A host that is killed between two attempts, or between the last one and putting boards back."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from farm.execution.fleet import FleetEnd, run_fleet
from farm.interfaces.agent import Job
from farm.model.attempt import Outcome, TrialState
from farm.model.power_mode import PowerModeState
from farm.testing.fakes import FakeRun
from tests.execution.lab import Lab

GOOD = FakeRun(metrics={"throughput": (50.0, "images/s")})
BAD = FakeRun(exit_status=1, ended_by="exit")


async def resume(lab: Lab, originals: dict[str, PowerModeState]) -> FleetEnd:
    left = await lab.journal.open_attempts()
    services = replace(lab.services(), originals=originals)
    return await run_fleet(lab.plan(repeats=1), lab.equipment(), services, lab.progress(), left)


async def begun(lab: Lab, number: int, *, on_board: bool) -> str:
    """The board's one trial has this attempt, journaled and perhaps started."""
    (trial,) = lab.plan(repeats=1).trials
    attempt = f"{trial.trial_id}-a{number}"
    now = datetime.now(UTC)
    await lab.journal.begin_attempt(attempt, trial.trial_id, trial.board, number, now)
    if on_board:
        await lab.boards["a"].agent.start(job(f"run-1.{attempt}"))
    return attempt


def job(attempt_id: str) -> Job:
    return Job(
        attempt_id=attempt_id,
        payload_digest="d" * 64,
        argv=("./run",),
        params={},
        environment={},
        time_limit_s=900,
        memory_limit_mb=None,
        output_limit=1000,
        artifacts=(),
    )


@pytest.mark.parametrize("is_there", [True, False])
async def test_two_attempts_of_a_trial_that_were_left_open_are_both_closed(
    tmp_path: Path, *, is_there: bool
) -> None:
    """The next attempt begins while the one before is being committed."""
    lab = Lab(tmp_path)
    lab.add("a", lambda told: BAD if told.attempt_id.endswith("-a1") else GOOD)
    first = await begun(lab, 1, on_board=is_there)
    second = await begun(lab, 2, on_board=True)
    await resume(lab, {})
    assert not lab.journal.open
    ends = [(record.attempt_id, record.outcome) for record in lab.journal.records]
    assert ends == [(first, Outcome.FAILED if is_there else Outcome.LOST), (second, Outcome.OK)]
    assert set(lab.journal.states.values()) == {TrialState.DONE}
    starts = Counter(what for call, what in lab.boards["a"].agent.log if call == "start")
    assert set(starts) == ({f"run-1.{first}"} if is_there else set()) | {f"run-1.{second}"}
    assert set(starts.values()) == {1}


async def test_a_board_whose_trials_are_all_done_is_put_back_all_the_same(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    board = lab.add("a", lambda _: GOOD)
    (trial,) = lab.plan(repeats=1).trials
    lab.journal.states[trial.trial_id] = TrialState.DONE
    found = board.controller.state
    await board.controller.apply("MAXQ", "locked")
    await board.agent.take_lease("run-1", "a killed host", 900)
    end = await resume(lab, {"a": found})
    assert board.controller.state == found
    assert board.agent.lease is None
    assert "restored" in lab.journal.kinds("a")
    assert not lab.journal.records
    assert not any(lane.fault for lane in end.lanes)


async def test_a_board_that_was_put_back_is_not_asked_again(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    board = lab.add("a", lambda _: GOOD)
    (trial,) = lab.plan(repeats=1).trials
    lab.journal.states[trial.trial_id] = TrialState.DONE
    await resume(lab, {})
    assert board.transport.tries == 0


async def test_what_a_killed_host_did_not_remove_from_a_board_is_removed(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    board = lab.add("a", lambda _: GOOD)
    for attempt in ("run-1.of-before-a1", "run-2.of-another-a1"):
        await board.agent.start(job(attempt))
        await board.agent.wait(attempt)
    await resume(lab, {})
    assert [one.attempt_id for one in await board.agent.list_attempts()] == ["run-2.of-another-a1"]
