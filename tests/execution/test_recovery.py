"""The ladder on fake boards in virtual time: which step is taken for what, and how often."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farm.errors import (
    AgentError,
    AuthError,
    ConnectError,
    LinkLostError,
    MeterError,
    TransferError,
)
from farm.execution.fleet import FleetEnd, run_fleet
from farm.execution.recovery_counts import Spent
from farm.execution.recovery_power_cycle import power_cycle, switch_on
from farm.execution.session import BoardSession
from farm.interfaces.agent import Job
from farm.interfaces.sinks import RunEvent
from farm.interfaces.transport import CommandResult
from farm.model.attempt import Outcome, TrialState
from farm.model.board import MeterSpec
from farm.model.sweep import Limits, RecoveryLimits
from farm.testing.fake_outlet import FakeOutlet
from farm.testing.fakes import FakeMeter, FakeRun
from tests.execution.lab import Lab, LabBoard

GOOD = FakeRun(metrics={"throughput": (50.0, "images/s")})
LONG = FakeRun(window_s=700, metrics={"throughput": (50.0, "images/s")})


def limits(*, reboot: bool = False, **recovery: float) -> Limits:
    return Limits(
        retries=2,
        connect_retries=3,
        reboot=reboot,
        recovery=RecoveryLimits(**recovery),
    )


async def run(lab: Lab, repeats: int = 1) -> FleetEnd:
    left = await lab.journal.open_attempts()
    plan = lab.plan(repeats=repeats)
    return await run_fleet(plan, lab.equipment(), lab.services(), lab.progress(), left)


def steps(lab: Lab, board: str = "a") -> list[tuple[object, object]]:
    """(step, outcome) of each recovery event."""
    return [
        (event.data["step"], event.data["outcome"])
        for event in lab.journal.events
        if event.kind == "recovery" and event.board == board
    ]


async def until(condition: Callable[[], bool]) -> None:
    """In virtual time: each turn of the loop lets it move on."""
    while not condition():  # noqa: ASYNC110 - there is no event for what any fake may do
        await asyncio.sleep(0)


async def cut_at(lab: Lab, seconds: float, *boards: str) -> None:
    """After so long they answer to nothing, and the links die under whoever waits."""
    await lab.clock.sleep(seconds)
    for name in boards or lab.boards:
        lab.boards[name].transport.is_cut = True


def hanging(lab: Lab, times: int = 1, *, is_fed: bool = True) -> tuple[LabBoard, FakeOutlet]:
    """Board ``a`` hangs under each of its first attempts, until its outlet was off."""
    left, tasks = times, list[asyncio.Future[None]]()

    def script(_: Job) -> FakeRun:
        nonlocal left
        if left:
            left -= 1
            tasks.append(asyncio.ensure_future(cut_at(lab, 5, "a")))
        return LONG

    def on_change(is_on: bool) -> None:
        if is_on and is_fed:
            board.agent.reboot()
            board.transport.is_cut = False

    board = lab.add("a", script)
    board.outlet = outlet = FakeOutlet(on_change)
    return board, outlet


async def test_a_hung_board_is_power_cycled_and_its_trial_run_again(tmp_path: Path) -> None:
    lab = Lab(tmp_path, limits=limits())
    _, outlet = hanging(lab)
    end = await run(lab)
    assert [lane.fault for lane in end.lanes] == [""]
    assert outlet.switched == [False, True]
    assert [record.outcome for record in lab.journal.records] == [Outcome.LOST, Outcome.OK]
    assert lab.journal.states == {"camaxn-r01": TrialState.DONE}
    assert ("power_cycle", "begun") in steps(lab)
    assert ("power_cycle", "done") in steps(lab)
    begun = next(e for e in lab.journal.events if e.data.get("step") == "power_cycle")
    assert "no keepalive was answered" in begun.text or "no answer" in begun.text


async def test_a_short_silence_costs_no_power(tmp_path: Path) -> None:
    lab = Lab(tmp_path, limits=limits())
    board, outlet = hanging(lab)
    task = asyncio.create_task(run(lab))
    await until(
        lambda: board.transport.tries >= 1 + 3 + 2
    )  # the reconnects are used up, others were tried
    board.transport.is_cut = False
    await task
    assert outlet.switched == []
    assert lab.journal.states == {"camaxn-r01": TrialState.DONE}
    assert [record.number for record in lab.journal.records] == [1]


async def test_an_outlet_that_feeds_another_board_is_never_switched(tmp_path: Path) -> None:
    lab = Lab(tmp_path, limits=limits())
    board, outlet = hanging(lab)
    board.outlet_shared = ("b",)
    end = await run(lab)
    assert outlet.switched == []
    assert "its outlet also feeds b" in lab.journal.texts("quarantined")[0]
    assert end.lanes[0].fault


async def test_power_cycles_are_bounded_for_a_board_also_over_a_resume(tmp_path: Path) -> None:
    lab = Lab(tmp_path, limits=limits(power_cycles_per_board=1))
    _, outlet = hanging(lab, times=99)
    await run(lab)
    assert outlet.switched == [False, True]
    assert "done once in this run, which is the limit" in lab.journal.texts("quarantined")[0]
    lab.boards["a"].transport.is_cut = False
    await run(lab)
    assert outlet.switched == [False, True]


async def test_a_trial_under_which_the_board_hangs_is_not_begun_a_third_time(
    tmp_path: Path,
) -> None:
    lab = Lab(tmp_path, limits=limits())
    _, outlet = hanging(lab, times=2)
    end = await run(lab, repeats=2)
    assert outlet.switched == [False, True] * 2
    assert lab.journal.states == {"camaxn-r01": TrialState.FAILED, "camaxn-r02": TrialState.DONE}
    assert "hung under it 2 times" in lab.journal.reasons["camaxn-r01"]
    assert [record.number for record in lab.journal.records] == [1, 2, 1]
    assert not end.lanes[0].fault


async def test_power_cycles_are_bounded_for_the_night(tmp_path: Path) -> None:
    lab = Lab(tmp_path, limits=limits(power_cycles_per_night=1))
    _, outlet = hanging(lab, times=99)
    await run(lab)
    assert outlet.switched == [False, True]
    assert "the run has had its 1" in lab.journal.texts("quarantined")[0]


async def test_an_outlet_that_does_not_feed_the_board_is_found_by_the_watts(
    tmp_path: Path,
) -> None:
    lab = Lab(tmp_path, limits=limits())
    board, outlet = hanging(lab, is_fed=False)
    lab.boards.pop("a")
    meter = FakeMeter(lab.clock, lambda _: 5.0)
    metered = lab.add("a", board.agent._script, meter=meter, spec=MeterSpec(name="m", kind="fake"))
    metered.agent, metered.transport, metered.outlet = board.agent, board.transport, outlet
    await run(lab)
    assert outlet.switched == [False, True]
    assert "still shows 5.0 W" in lab.journal.texts("quarantined")[0]
    assert ("power_cycle", "failed") in steps(lab)


async def test_an_outlet_that_does_not_go_off_is_told(tmp_path: Path) -> None:
    lab = Lab(tmp_path, limits=limits())
    _, outlet = hanging(lab)
    outlet.faults = ["ignored", None]
    await run(lab)
    assert outlet.switched[:2] == [False, True]
    assert any("reads back as on" in event.text for event in lab.journal.events)


async def test_what_a_killed_host_switched_off_goes_on_first(tmp_path: Path) -> None:
    lab = Lab(tmp_path, limits=limits())
    board = lab.add("a", lambda _: GOOD)
    board.outlet = outlet = FakeOutlet(lambda is_on: setattr(board.transport, "is_cut", not is_on))
    await outlet.switch(to_on=False)
    data = {"step": "power_cycle", "outcome": "begun"}
    lab.journal.events.append(RunEvent(lab.clock.now(), "recovery", "a", data=data))
    await run(lab)
    assert outlet.switched == [False, True]
    assert lab.journal.states == {"camaxn-r01": TrialState.DONE}
    assert Spent(lab.journal.events).left_off == set()
    assert Spent(lab.journal.events).power_cycles["a"] == 1


FAULTS = st.lists(st.sampled_from([None, "ignored", "refused", "unanswered"]), max_size=12)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(faults=FAULTS, turns=st.integers(0, 60))
def test_however_it_goes_the_outlet_is_on_at_the_end_or_that_is_told(
    faults: list[str | None], turns: int
) -> None:
    async def cycle() -> None:
        lab = Lab(Path("/nowhere"), limits=limits())
        board = lab.add("a", lambda _: GOOD)
        board.outlet = outlet = FakeOutlet()
        outlet.faults = list(faults)
        services = lab.services()
        session = BoardSession(board.equipment(), services)
        task = asyncio.create_task(power_cycle(session, outlet, services))
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert outlet.is_now_on or lab.journal.texts("outlet_left_off")
        await session.close()

    asyncio.run(cycle())


async def test_an_outlet_that_stays_off_is_told_loudly(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lab = Lab(tmp_path)
    outlet = FakeOutlet()
    outlet.is_now_on = False
    outlet.faults = ["refused"] * 50
    assert not await switch_on("a", outlet, lab.services())
    assert "a: the outlet may be OFF" in lab.journal.texts("outlet_left_off")[0]
    assert "the outlet may be OFF" in caplog.text


def rebooting(lab: Lab, errors: list[LinkLostError | AgentError | TransferError]) -> LabBoard:
    """Board ``a`` whose pushes fail with `errors`, and that reboots when it is told to."""

    def command(argv: Sequence[str]) -> CommandResult:
        if "is-system-running" in argv:
            return CommandResult(tuple(argv), 0, b"running", b"", 0.0)
        board.agent.reboot()
        board.transport.is_up = False
        return CommandResult(tuple(argv), 0, b"", b"", 0.0)

    board = lab.add("a", lambda _: GOOD)
    board.agent._command = command
    board.agent.fail["ensure_payload"].extend(errors)
    return board


async def test_a_board_that_answers_with_faults_is_rebooted_where_that_is_allowed(
    tmp_path: Path,
) -> None:
    lab = Lab(tmp_path, limits=limits(reboot=True))
    board = rebooting(lab, [TransferError("push", "no room")] * 5)
    await run(lab)
    assert board.agent.boot_id == "boot-2"
    done = [step for step, outcome in steps(lab) if outcome == "done"]
    assert done == ["restart_agent", "reboot"]
    assert lab.journal.states == {"camaxn-r01": TrialState.DONE}


async def test_no_board_is_rebooted_where_the_sweep_does_not_allow_it(tmp_path: Path) -> None:
    lab = Lab(tmp_path, limits=limits())
    board = rebooting(lab, [TransferError("push", "no room")] * 50)
    end = await run(lab)
    assert board.agent.boot_id == "boot-1"
    assert "the sweep does not allow it" in lab.journal.texts("quarantined")[0]
    assert "no room" in end.lanes[0].fault


async def test_an_agent_that_fails_is_started_anew_at_once(tmp_path: Path) -> None:
    lab = Lab(tmp_path, limits=limits())
    board = rebooting(lab, [AgentError("agent", "it ended with status 1")])
    await run(lab)
    assert steps(lab)[:2] == [("restart_agent", "begun"), ("restart_agent", "done")]
    assert "retry" not in lab.journal.kinds()
    assert board.transport.tries == 2
    assert lab.journal.states == {"camaxn-r01": TrialState.DONE}


async def test_an_agent_that_never_ran_needs_people(tmp_path: Path) -> None:
    lab = Lab(tmp_path, limits=limits())
    board = lab.add("a", lambda _: GOOD)
    board.agent.fail["take_lease"].append(AgentError("agent", "Python is too old"))
    end = await run(lab)
    assert "quarantined" not in lab.journal.kinds()
    assert "Python is too old" in end.lanes[0].fault


async def test_a_silent_meter_never_costs_a_board_its_power(tmp_path: Path) -> None:
    lab = Lab(tmp_path, limits=limits(reboot=True))
    meter = FakeMeter(lab.clock, lambda _: 5.0)
    meter.open_error = MeterError("meter", "no answer")
    board = lab.add("a", lambda _: GOOD, meter=meter)
    board.outlet = outlet = FakeOutlet()
    await run(lab)
    assert outlet.switched == []
    assert board.agent.boot_id == "boot-1"
    assert "quarantined" in lab.journal.kinds()


async def test_a_board_that_is_back_after_its_rest_finishes_its_trials(tmp_path: Path) -> None:
    lab = Lab(tmp_path, limits=limits(rest_s=600))
    lab.add("long", lambda _: FakeRun(window_s=4000, metrics={"throughput": (1.0, "images/s")}))
    board = lab.add("a", lambda _: GOOD)
    task = asyncio.create_task(run(lab))
    await cut_at(lab, 30, "a")
    await until(lambda: "quarantined" in lab.journal.kinds("a"))
    board.transport.is_cut = False
    await task
    assert "board_back" in lab.journal.kinds("a")
    assert lab.journal.states["camaxn-r01"] is TrialState.DONE
    assert "board_lost" not in lab.journal.kinds()


async def test_a_board_that_stays_away_is_tried_after_each_rest_and_at_the_end(
    tmp_path: Path,
) -> None:
    lab = Lab(tmp_path, limits=limits(rest_s=100, last_chance_s=0))
    lab.add("long", lambda _: FakeRun(window_s=650, metrics={"throughput": (1.0, "images/s")}))
    board = lab.add("a", lambda _: GOOD)
    board.transport.is_cut = True
    end = await run(lab)
    # At once and three times again; after rests of 100, 200, then 400 s cut off by the end.
    assert board.transport.tries == 1 + 3 + 3
    assert [lane.fault for lane in end.lanes if lane.board == "a"] == ["a: connect: no answer"]
    assert lab.journal.states["camaxn-r01"] is TrialState.PENDING


@pytest.mark.parametrize("count", [2, 3, 8])
async def test_boards_that_vanish_together_are_waited_for_and_not_charged(
    tmp_path: Path, count: int
) -> None:
    lab = Lab(tmp_path, limits=limits())
    outlets = []
    for number in range(count):
        board = lab.add(f"b{number}", lambda _: GOOD)
        board.outlet = FakeOutlet()
        outlets.append(board.outlet)
    task = asyncio.create_task(run(lab))
    await cut_at(lab, 30)
    await until(lambda: "lab_fault" in lab.journal.kinds())
    begin_s = lab.clock.monotonic()
    await until(lambda: lab.clock.monotonic() >= begin_s + 1200)
    for board in lab.boards.values():
        board.transport.is_cut = False
    await task
    assert set(lab.journal.states.values()) == {TrialState.DONE}
    assert lab.journal.kinds().count("lab_fault") == 1
    assert lab.journal.kinds().count("lab_fault_over") == 1
    assert "quarantined" not in lab.journal.kinds()
    assert all(outlet.switched == [] for outlet in outlets)
    assert [record.number for record in lab.journal.records] == [1] * count


async def test_a_lab_that_does_not_come_back_is_waited_for_in_bounds(tmp_path: Path) -> None:
    lab = Lab(tmp_path, limits=limits(lab_wait_s=1800))
    for name in ("a", "b", "c"):
        lab.add(name, lambda _: GOOD)
    begin_s = lab.clock.monotonic()
    end, _ = await asyncio.gather(run(lab), cut_at(lab, 30))
    assert all(lane.fault for lane in end.lanes)
    assert "in vain" in lab.journal.texts("lab_fault_over")[0]
    assert 1800 <= lab.clock.monotonic() - begin_s < 3 * 1800
    assert {"quarantined", "board_lost"} <= set(lab.journal.kinds())


async def test_meters_that_vanish_together_are_waited_for(tmp_path: Path) -> None:
    lab = Lab(tmp_path, limits=limits())
    meters = []

    def script_of(meter: FakeMeter) -> Callable[[Job], FakeRun]:
        def script(job: Job) -> FakeRun:
            if job.attempt_id.endswith("r01-a1"):
                meter.is_open = False  # from now on each read is a miss
            return GOOD

        return script

    for name in ("a", "b", "c"):
        meter = FakeMeter(lab.clock, lambda _: 5.0)
        meters.append(meter)
        lab.add(name, script_of(meter), meter=meter)
    task = asyncio.create_task(run(lab))
    await until(lambda: "lab_fault" in lab.journal.kinds())
    for meter in meters:
        meter.is_open = True
    await task
    assert "3 of 3 meters" in lab.journal.texts("lab_fault")[0]
    assert set(lab.journal.states.values()) == {TrialState.DONE}
    assert "quarantined" not in lab.journal.kinds()


async def test_one_board_of_three_is_no_fault_of_the_lab(tmp_path: Path) -> None:
    lab = Lab(tmp_path, limits=limits(last_chance_s=0))
    for name in ("a", "b", "c"):
        lab.add(name, lambda _: GOOD)
    await asyncio.gather(run(lab), cut_at(lab, 30, "a"))
    assert "lab_fault" not in lab.journal.kinds()
    assert "quarantined" in lab.journal.kinds("a")


async def test_a_board_that_knew_us_and_refuses_the_login_may_be_booting(tmp_path: Path) -> None:
    lab = Lab(tmp_path, limits=limits())
    board = lab.add("a", lambda _: GOOD)
    board.agent.fail["wait"].append(LinkLostError("wait", "gone"))

    def script(_: Job) -> FakeRun:
        board.transport.is_up = False
        board.transport.faults += [ConnectError("connect", "refused"), AuthError("connect", "no")]
        return GOOD

    board.agent._script = script
    await run(lab)
    assert lab.journal.states == {"camaxn-r01": TrialState.DONE}
