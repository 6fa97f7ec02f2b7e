"""Lanes on fake boards in virtual time: what becomes of each trial, and of the board."""

import asyncio
from itertools import pairwise
from pathlib import Path

import pytest

from farm.errors import ConnectError, HostKeyError, LinkLostError, MeterError, PowerModeError
from farm.execution.fleet import FleetEnd, run_fleet
from farm.model.attempt import Outcome, TrialState
from farm.model.board import MeterSpec
from farm.model.measurement import VerdictStatus
from farm.model.record import Source
from farm.model.trace import MissKind
from farm.testing.fakes import FakeMeter, FakeRun
from tests.execution.lab import Lab

GOOD = FakeRun(metrics={"throughput": (50.0, "images/s")})
BAD = FakeRun(exit_status=1, ended_by="exit")


async def run(lab: Lab, **plan: object) -> FleetEnd:
    left = await lab.journal.open_attempts()
    return await run_fleet(
        lab.plan(**plan),  # type: ignore[arg-type]  # keywords of `Lab.plan`
        lab.equipment(),
        lab.services(),
        lab.progress(),
        left,
    )


async def test_all_trials_of_all_boards_are_done_once_and_boards_restored(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    for name in ("a", "b", "c"):
        lab.add(name, lambda _: GOOD)
    end = await run(lab, modes=("MAXN", "MAXQ"), repeats=3)
    assert not any(lane.fault for lane in end.lanes)
    assert len(lab.journal.records) == 18
    assert set(lab.journal.states.values()) == {TrialState.DONE}
    for board in lab.boards.values():
        assert [asked for asked, _ in board.controller.applied] == ["MAXN", "MAXQ"]
        assert board.controller.state.name == "MAXN"
        assert board.agent.lease is None
    assert {record.source for record in lab.journal.records} == {Source.SIMULATED}


async def test_a_metered_trial_has_watts_and_energy(tmp_path: Path) -> None:
    lab = Lab(tmp_path)

    def watts(t_s: float) -> float:
        return 12.0 if busy else 5.0

    busy = False

    def script(_: object) -> FakeRun:
        nonlocal busy
        busy = True
        return FakeRun(warmup_s=2, window_s=70, metrics={"throughput": (50.0, "images/s")})

    meter = FakeMeter(lab.clock, watts, update_s=1.0)
    spec = MeterSpec(name="m", kind="fake", poll_hz=4, update_s=1.0)
    lab.add("a", script, meter=meter, spec=spec)
    await run(lab, repeats=1)
    (record,) = lab.journal.records
    assert record.power is not None
    assert record.power.mean_w == pytest.approx(12.0, rel=0.02)
    assert record.power.idle_w == pytest.approx(5.0, rel=0.02)
    assert record.power.window_s == pytest.approx(70, abs=0.1)
    assert record.idle is not None
    assert "idle" in lab.journal.kinds()


async def test_a_failing_payload_is_not_run_a_third_time_the_same_way(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    lab.add("a", lambda _: BAD)
    await run(lab, repeats=1)
    outcomes = [record.outcome for record in lab.journal.records]
    assert outcomes == [Outcome.FAILED, Outcome.FAILED]
    assert [r.attempt_id for r in lab.journal.records] == ["camaxn-r01-a1", "camaxn-r01-a2"]
    assert lab.journal.states == {"camaxn-r01": TrialState.FAILED}
    assert lab.journal.records[0].reason == "exit status 1"


async def test_status_77_is_a_result_in_itself(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    events = b'{"event": "unsupported", "reason": "no CUDA here"}\n'
    lab.add("a", lambda _: FakeRun(exit_status=77, events=events))
    await run(lab, repeats=1)
    (record,) = lab.journal.records
    assert record.outcome is Outcome.UNSUPPORTED
    assert record.reason == "no CUDA here"
    assert lab.journal.states == {"camaxn-r01": TrialState.UNSUPPORTED}


async def test_a_board_that_reboots_under_a_trial_runs_it_again(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    runs = iter([FakeRun(is_lost=True), GOOD])
    lab.add("a", lambda _: next(runs))
    await run(lab, repeats=1)
    assert [record.outcome for record in lab.journal.records] == [Outcome.LOST, Outcome.OK]
    assert lab.journal.states == {"camaxn-r01": TrialState.DONE}


async def test_an_invalid_measurement_is_tried_again_and_never_done(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    lab.add("a", lambda _: FakeRun(metrics={}))
    await run(lab, repeats=1)
    assert {record.outcome for record in lab.journal.records} == {Outcome.INVALID}
    assert len(lab.journal.records) == 1 + lab.limits.retries
    assert lab.journal.states == {"camaxn-r01": TrialState.FAILED}
    assert "throughput" in lab.journal.records[0].reason


async def test_a_mode_that_the_board_lacks_is_unsupported_and_the_rest_goes_on(
    tmp_path: Path,
) -> None:
    lab = Lab(tmp_path)
    lab.add("a", lambda _: GOOD)
    await run(lab, modes=("MAXN", "99W", "MAXQ"), repeats=1)
    assert lab.journal.states == {
        "camaxn-r01": TrialState.DONE,
        "ca99w-r01": TrialState.UNSUPPORTED,
        "camaxq-r01": TrialState.DONE,
    }
    assert "there are MAXN, MAXQ" in lab.journal.reasons["ca99w-r01"]


async def test_a_mode_that_is_not_read_back_fails_its_trials_only(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    board = lab.add("a", lambda _: GOOD)
    board.controller.errors.append(PowerModeError("power mode", "asked MAXN, read MAXQ"))
    await run(lab, repeats=2)
    assert lab.journal.states == {"camaxn-r01": TrialState.FAILED, "camaxn-r02": TrialState.DONE}


async def test_a_link_that_drops_while_the_payload_runs_costs_nothing(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    board = lab.add("a", lambda _: GOOD)
    board.agent.fail["wait"].append(LinkLostError("wait", "gone"))
    await run(lab, repeats=1)
    (record,) = lab.journal.records
    assert record.outcome is Outcome.OK
    assert record.number == 1
    assert [what for what, _ in board.agent.log].count("start") == 1
    assert "retry" in lab.journal.kinds()


async def test_a_start_whose_answer_was_lost_is_not_started_twice(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    board = lab.add("a", lambda _: GOOD)
    board.agent.fail["start"].append(LinkLostError("start", "gone"))
    await run(lab, repeats=1)
    (record,) = lab.journal.records
    assert record.number == 1
    assert record.outcome is Outcome.OK
    assert lab.journal.states == {"camaxn-r01": TrialState.DONE}


async def test_a_board_that_is_off_leaves_its_trials_pending_and_the_others_finish(
    tmp_path: Path,
) -> None:
    lab = Lab(tmp_path)
    lab.add("a", lambda _: GOOD)
    off = lab.add("b", lambda _: GOOD)
    off.transport.faults.extend([ConnectError("connect", "no route")] * 50)
    end = await run(lab, repeats=2)
    assert end.has_reached_any
    faults = {lane.board: lane.fault for lane in end.lanes}
    assert faults["a"] == ""
    assert faults["b"].startswith("b: connect: no route")
    assert len(lab.journal.texts("retry")) == lab.limits.connect_retries
    states = {name: lab.journal.states.pop(name) for name in ("cbmaxn-r01", "cbmaxn-r02")}
    assert set(states.values()) == {TrialState.PENDING}
    assert {lab.journal.reasons[name] for name in states} == {faults["b"]}
    assert lab.journal.states == {"camaxn-r01": TrialState.DONE, "camaxn-r02": TrialState.DONE}


async def test_a_wrong_host_key_is_not_tried_again(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    board = lab.add("a", lambda _: GOOD)
    board.transport.faults.extend([HostKeyError("connect", "changed")] * 5)
    end = await run(lab)
    assert not end.has_reached_any
    assert len(board.transport.faults) == 4
    assert "retry" not in lab.journal.kinds()


async def test_a_bug_in_one_lane_does_not_end_the_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lab = Lab(tmp_path)

    def broken(_: object) -> FakeRun:
        raise ZeroDivisionError

    lab.add("a", broken)
    lab.add("b", lambda _: GOOD)
    end = await run(lab, repeats=1)
    faults = {lane.board: lane.fault for lane in end.lanes}
    assert "internal error" in faults["a"]
    assert lab.journal.states["cbmaxn-r01"] is TrialState.DONE
    assert "ZeroDivisionError" in caplog.text


async def test_stopping_ends_the_payload_restores_the_board_and_leaves_the_trial_pending(
    tmp_path: Path,
) -> None:
    lab = Lab(tmp_path)
    board = lab.add("a", lambda _: FakeRun(window_s=1e6))
    board.controller.state = board.controller.state.model_copy(update={"name": "MAXQ", "id": 1})
    task = asyncio.create_task(run(lab, repeats=2))
    for _ in range(200):  # turns of the loop: far more than a start takes
        await asyncio.sleep(0)
    assert "start" in [what for what, _ in board.agent.log]
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert lab.journal.states == {"camaxn-r01": TrialState.PENDING}
    assert lab.journal.records[0].outcome is Outcome.CANCELLED
    assert board.controller.state.name == "MAXQ"
    assert "restored" in lab.journal.kinds()


async def test_a_killed_host_finds_what_the_board_finished_meanwhile(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    board = lab.add("a", lambda _: GOOD)
    plan = lab.plan(repeats=2)
    trial = plan.trials[0]
    begun = "camaxn-r01-a1"
    await lab.journal.begin_attempt(begun, trial.trial_id, "a", 1, lab.clock.now())
    from farm.interfaces.agent import Job

    await board.agent.start(Job(f"run-1.{begun}", "d" * 64, ("./run",), {}))
    lab.clock.advance(1000)
    await run(lab, repeats=2)
    assert [r.attempt_id for r in lab.journal.records] == [begun, "camaxn-r02-a1"]
    assert [record.outcome for record in lab.journal.records] == [Outcome.OK, Outcome.OK]
    assert [what for what, _ in board.agent.log].count("start") == 2


async def test_a_killed_host_starts_what_never_reached_the_board(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    lab.add("a", lambda _: GOOD)
    trial = lab.plan(repeats=1).trials[0]
    await lab.journal.begin_attempt("camaxn-r01-a1", trial.trial_id, "a", 1, lab.clock.now())
    await run(lab, repeats=1)
    assert [r.attempt_id for r in lab.journal.records] == ["camaxn-r01-a1"]
    assert lab.journal.states == {"camaxn-r01": TrialState.DONE}


async def test_finished_trials_are_not_run_again(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    board = lab.add("a", lambda _: GOOD)
    await run(lab, repeats=2)
    board.agent.log.clear()
    end = await run(lab, repeats=2)
    assert end.lanes == ()
    assert board.agent.log == []


async def test_a_meter_that_does_not_answer_stops_its_board_with_the_reason(
    tmp_path: Path,
) -> None:
    lab = Lab(tmp_path)
    meter = FakeMeter(lab.clock, lambda _: 5.0)
    meter.open_error = MeterError("meter", "plug-a: no answer in 1 s")
    lab.add("a", lambda _: GOOD, meter=meter)
    lab.add("b", lambda _: GOOD)
    end = await run(lab, repeats=1)
    faults = {lane.board: lane.fault for lane in end.lanes}
    assert "plug-a: no answer" in faults["a"]
    pending, done = TrialState.PENDING, TrialState.DONE
    assert lab.journal.states == {"camaxn-r01": pending, "cbmaxn-r01": done}
    assert lab.journal.reasons == {"camaxn-r01": faults["a"]}


async def test_a_meter_that_falls_silent_never_gives_a_valid_result(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    meter = FakeMeter(lab.clock, lambda _: 5.0)

    def script(_: object) -> FakeRun:
        meter.faults.extend([MissKind.TIMEOUT] * 100_000)
        return GOOD

    lab.add("a", script, meter=meter)
    end = await run(lab, repeats=2)
    assert {record.outcome for record in lab.journal.records} == {Outcome.INVALID}
    assert {r.verdict.status for r in lab.journal.records} == {VerdictStatus.INVALID}
    assert "gave no reading" in end.lanes[0].fault


async def test_boards_on_one_meter_take_turns(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    running = 0

    def script(_: object) -> FakeRun:
        nonlocal running
        running += 1
        return GOOD

    meter = FakeMeter(lab.clock, lambda _: 5.0)
    first = lab.add("a", script, meter=meter)
    second = lab.add("b", script)
    second.feed = first.feed
    await run(lab, repeats=2)
    spans = sorted((record.started, record.ended) for record in lab.journal.records)
    assert len(spans) == 4
    for (_, ended), (started, _) in pairwise(spans):
        assert started >= ended


async def test_a_board_that_cannot_be_put_back_is_told_and_given_back(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    board = lab.add("a", lambda _: GOOD)

    async def refuse(_: object) -> None:
        raise PowerModeError("power mode", "6 cores are online, not 4")

    board.controller.restore = refuse  # type: ignore[method-assign, assignment]
    await run(lab, modes=("MAXQ",), repeats=1)
    (told,) = lab.journal.texts("restore_failed")
    assert "a was not put back to MAXN" in told
    assert "6 cores are online" in told
    assert board.agent.lease is None
