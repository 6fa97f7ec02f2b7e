"""Boards that fail everything, and trials that go to a lost board's twins."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from farm.execution.fleet import FleetEnd, run_fleet
from farm.execution.twins import are_twins
from farm.interfaces.agent import Job
from farm.model.attempt import BoardFingerprint, Outcome, TrialState
from farm.model.plan import Lane, Plan, Trial
from farm.model.sweep import Limits, RecoveryLimits
from farm.testing.fakes import FakeRun
from tests.execution.lab import Lab, a_trial

GOOD = FakeRun(metrics={"throughput": (50.0, "images/s")})
BAD = FakeRun(exit_status=1, ended_by="exit", window_s=1)
LIMITS = Limits(retries=1, connect_retries=2, recovery=RecoveryLimits(last_chance_s=0))


def cells(board: str, count: int, *, is_any: bool = True, first: int = 1) -> tuple[Trial, ...]:
    """Different cells of one mode, placed on `board`."""
    made = []
    for number in range(first, first + count):
        trial = a_trial(board)
        target = "fake" if is_any else board
        cell = replace(
            trial.cell,
            cell_id=f"{target}-{number}",
            target=target,
            is_any=is_any,
            parameters={"batch": number},
        )
        made.append(Trial(f"{cell.cell_id}-r01", cell, 1, board))
    return tuple(made)


def plan_of(lab: Lab, *lanes: tuple[Trial, ...]) -> Plan:
    made = [Lane(trials[0].board, "fake", None, trials, 1, 0, 60.0) for trials in lanes]
    return replace(lab.plan(), lanes=tuple(made))


async def run(lab: Lab, plan: Plan) -> FleetEnd:
    left = await lab.journal.open_attempts()
    return await run_fleet(plan, lab.equipment(), lab.services(), lab.progress(), left)


async def cut(lab: Lab, board: str, seconds: float) -> None:
    await lab.clock.sleep(seconds)
    lab.boards[board].transport.is_cut = True


def lab_of(tmp_path: Path, *names: str, script: Callable[[Job], FakeRun] | None = None) -> Lab:
    lab = Lab(tmp_path, limits=LIMITS)
    for name in names:
        lab.add(name, script or (lambda _: GOOD))
    return lab


async def test_trials_of_a_lost_board_are_done_by_its_twins(tmp_path: Path) -> None:
    lab = lab_of(tmp_path, "a", "b", "c")
    plan = plan_of(lab, cells("a", 6), cells("b", 1, first=11), cells("c", 4, first=21))
    end, _ = await asyncio.gather(run(lab, plan), cut(lab, "a", 90))
    assert set(lab.journal.states.values()) == {TrialState.DONE}
    assert not any(lane.fault for lane in end.lanes)
    moved = [record for record in lab.journal.records if record.moved_from]
    done = {record.trial_id: record.board for record in moved if record.outcome is Outcome.OK}
    assert set(done) == {f"fake-{number}-r01" for number in range(2, 7)}
    assert {record.moved_from for record in moved} == {"a"}
    assert set(done.values()) == {"b", "c"}  # b was done already, and began again
    assert lab.journal.kinds().count("trial_moved") == 5
    assert lab.journal.moved == done
    lost = [record for record in lab.journal.records if record.outcome is Outcome.LOST]
    assert [(record.board, record.trial_id) for record in lost] == [("a", "fake-2-r01")]
    assert not lab.journal.open


async def test_each_trial_has_one_result(tmp_path: Path) -> None:
    """The lost board comes back, still at work on what a twin does: it is told to stop."""
    lab = lab_of(tmp_path, "a", "b", script=lambda _: replace(GOOD, window_s=900))
    lab.limits = LIMITS.model_copy(update={"recovery": RecoveryLimits(rest_s=300)})
    mine = (*cells("a", 1), *cells("a", 1, is_any=False, first=9))
    plan = plan_of(lab, mine, cells("b", 2, first=11))

    async def away() -> None:
        await cut(lab, "a", 90)
        await lab.clock.sleep(200)
        lab.boards["a"].transport.is_cut = False

    await asyncio.gather(run(lab, plan), away())
    assert set(lab.journal.states.values()) == {TrialState.DONE}
    good = [r.trial_id for r in lab.journal.records if r.outcome is Outcome.OK]
    assert len(good) == len(set(good)) == 4
    where = {r.trial_id: r.board for r in lab.journal.records if r.outcome is Outcome.OK}
    assert (where["fake-1-r01"], where["a-9-r01"]) == ("b", "a")
    assert ("stop", "run-1.fake-1-r01-a1") in lab.boards["a"].agent.log


async def test_trials_for_every_board_never_move(tmp_path: Path) -> None:
    lab = lab_of(tmp_path, "a", "b")
    plan = plan_of(lab, cells("a", 3, is_any=False), cells("b", 3, is_any=False))
    end, _ = await asyncio.gather(run(lab, plan), cut(lab, "a", 90))
    assert lab.journal.moved == {}
    states = [lab.journal.states[f"a-{number}-r01"] for number in (1, 2, 3)]
    assert states == [TrialState.DONE, TrialState.PENDING, TrialState.PENDING]
    assert [lane.board for lane in end.lanes if lane.fault] == ["a"]


async def test_a_board_that_was_never_reached_leaves_its_trials_to_its_type(
    tmp_path: Path,
) -> None:
    lab = lab_of(tmp_path, "a", "b")
    lab.boards["a"].transport.is_cut = True
    end = await run(lab, plan_of(lab, cells("a", 2), cells("b", 2, first=11)))
    assert set(lab.journal.states.values()) == {TrialState.DONE}
    assert {record.board for record in lab.journal.records} == {"b"}
    assert end.has_reached_any


async def test_a_resumed_run_knows_where_a_trial_came_from(tmp_path: Path) -> None:
    lab = lab_of(tmp_path, "a", "b")
    lab.boards["a"].transport.is_cut = True
    plan = plan_of(lab, cells("a", 1), cells("b", 1, first=11))
    await run(lab, plan)
    lab.journal.states["fake-1-r01"] = TrialState.PENDING
    again = plan_of(lab, (*cells("b", 1), *cells("b", 1, first=11)))
    await run(lab, again)
    newest = lab.journal.records[-1]
    assert (newest.trial_id, newest.board, newest.moved_from) == ("fake-1-r01", "b", "a")
    assert newest.number == 2


NX = BoardFingerprint(boot_id="1", machine="aarch64", model="NX", l4t="32.7.4", memory_mb=7765)


@pytest.mark.parametrize(
    ("changed", "is_twin"),
    [
        ({"boot_id": "2", "memory_mb": 7760}, True),
        ({"memory_mb": 15_800}, False),
        ({"l4t": "35.4.1"}, False),
        ({"model": "Nano"}, False),
        ({"machine": "x86_64"}, False),
        ({"l4t": ""}, False),
    ],
)
def test_twins_have_the_same_module_memory_and_l4t(
    changed: dict[str, object], is_twin: bool
) -> None:
    assert are_twins(NX, NX.model_copy(update=changed)) is is_twin
    assert are_twins(NX.model_copy(update=changed), NX) is is_twin


def test_nobody_knows_the_twin_of_what_was_not_reached() -> None:
    assert not are_twins(NX, None)
    assert are_twins(None, NX)


@pytest.mark.parametrize("is_any", [True, False])
async def test_a_board_that_fails_everything_does_not_eat_the_queue(
    tmp_path: Path, is_any: bool
) -> None:
    """Its cells pass on others of its type."""
    lab = lab_of(tmp_path, "b")
    lab.add("a", lambda _: BAD)
    mine = cells("a", 9, is_any=is_any)
    others = cells("b", 9, is_any=is_any)
    if is_any:  # planned elsewhere under other ids: the same work
        others = tuple(replace(t, trial_id=t.trial_id.replace("fake", "b")) for t in others)
        others = tuple(
            replace(t, cell=replace(t.cell, cell_id=f"b{t.cell.cell_id}")) for t in others
        )
    await run(lab, plan_of(lab, mine, others))
    assert "it fails everything" in lab.journal.texts("quarantined")[0]
    states = [lab.journal.states.get(trial.trial_id, TrialState.PENDING) for trial in mine]
    if is_any:
        assert set(states) == {TrialState.DONE}
        assert {lab.journal.moved[trial.trial_id] for trial in mine} == {"b"}
    else:
        assert set(states) == {TrialState.PENDING}
        assert "it fails everything" in lab.journal.texts("board_lost")[0]
    tried = [record for record in lab.journal.records if record.board == "a"]
    assert 6 <= len(tried) < 9 * 2


async def test_a_board_under_which_every_payload_is_lost_is_quarantined(tmp_path: Path) -> None:
    lab = lab_of(tmp_path, "b")
    lab.add("a", lambda _: FakeRun(is_lost=True))
    await run(lab, plan_of(lab, cells("a", 9, is_any=False), cells("b", 1, is_any=False)))
    assert "it fails everything" in lab.journal.texts("quarantined")[0]
    assert all(len({r.number for r in lab.journal.records if r.trial_id == t}) <= 3
               for t in {r.trial_id for r in lab.journal.records})  # fmt: skip


async def test_a_payload_that_fails_everywhere_is_no_fault_of_the_boards(tmp_path: Path) -> None:
    lab = lab_of(tmp_path, "a", "b", script=lambda _: BAD)
    plan = plan_of(lab, cells("a", 5, is_any=False), cells("b", 5, is_any=False))
    await run(lab, plan)
    assert "quarantined" not in lab.journal.kinds()
    assert set(lab.journal.states.values()) == {TrialState.FAILED}
    assert len(lab.journal.records) == 2 * 5 * 2
