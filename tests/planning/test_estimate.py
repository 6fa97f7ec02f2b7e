from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farm.model.board import BoardSimulation
from farm.planning.estimate import Slot, schedule, trial_s
from farm.planning.pace import MODE_CHANGE_S, REBOOT_S, SIMULATED_REBOOT_S, TRIAL_OVERHEAD_S
from tests.planning.builders import board, plan, profile, sweep

MEASURE = {"window_s": 60.0, "warmup_s": 5.0, "idle_s": 30.0, "settle": {"pause_s": 2.0}}
ONE_S = 2 + 5 + 60 + TRIAL_OVERHEAD_S


def test_a_trial_is_pause_warmup_window_and_overhead() -> None:
    assert trial_s(sweep(measure=MEASURE)) == ONE_S


@pytest.mark.parametrize(
    ("meter", "power", "idle_s"),
    [("m", "optional", 30), ("m", "off", 0), (None, "optional", 0)],
)
def test_a_lane_is_its_trials_idle_baselines_and_mode_changes(
    meter: str | None, power: str, idle_s: float
) -> None:
    made = plan(
        sweep(measure={**MEASURE, "power": power}, power_modes=("A", "B"), repeats=3),
        [board("a", meter=meter)],
        [profile(masks={"A": 0, "B": 5})],
    )
    # into A, from A to B by a reboot, back
    expected = 6 * ONE_S + 4 * idle_s + 3 * MODE_CHANGE_S + REBOOT_S
    assert made.lanes[0].estimate_s == pytest.approx(expected)
    assert made.estimate_s == pytest.approx(expected)


def test_the_slots_of_a_lane_follow_each_other() -> None:
    made = plan(
        sweep(measure=MEASURE, power_modes=("current", "B"), repeats=2),
        [board("a", meter="m")],
        [profile(masks={"A": 0, "B": 5}, default="A")],
    )
    ends = [30 + ONE_S, 60 + 2 * ONE_S]
    ends.append(ends[-1] + MODE_CHANGE_S + REBOOT_S + 30 + ONE_S)
    ends.append(ends[-1] + ONE_S + 30 + MODE_CHANGE_S + REBOOT_S)
    slots = list(schedule(made))
    assert [slot.trial_id for slot in slots] == [trial.trial_id for trial in made.trials]
    assert [slot.end_s for slot in slots] == pytest.approx(ends)
    assert [slot.begin_s for slot in slots] == pytest.approx([0, *ends[:-1]])


def test_a_simulated_board_boots_quickly() -> None:
    asked = sweep(measure=MEASURE, power_modes=("A",))
    profiles = [profile(masks={"A": 0, "B": 5}, default="B")]
    real = plan(asked, [board("a")], profiles)
    simulated = board("a").model_copy(update={"simulation": BoardSimulation()})
    quick = plan(asked, [simulated], profiles)
    assert real.lanes[0].reboots == quick.lanes[0].reboots == 2
    saved_s = 2 * (REBOOT_S - SIMULATED_REBOOT_S)
    assert real.estimate_s - quick.estimate_s == pytest.approx(saved_s)
    assert quick.lanes[0].estimate_s == pytest.approx(quick.estimate_s)


def test_boards_on_one_meter_take_turns_and_the_others_run_at_once() -> None:
    made = plan(
        sweep(measure=MEASURE, repeats=2),
        [board("a", meter="m"), board("b", meter="m"), board("c")],
    )
    slots = list(schedule(made))
    assert [slot.board for slot in slots] == ["a", "b", "a", "b", "c", "c"]
    assert made.estimate_s == pytest.approx(4 * ONE_S + 4 * 30)
    assert [slot.begin_s for slot in slots if slot.board == "c"] == pytest.approx([0, ONE_S])


def test_a_shared_meter_that_is_not_read_holds_nobody_up() -> None:
    made = plan(
        sweep(measure={**MEASURE, "power": "off"}), [board("a", meter="m"), board("b", meter="m")]
    )
    assert [slot.begin_s for slot in schedule(made)] == [0, 0]


@given(
    meters=st.lists(st.sampled_from([None, "m1", "m2"]), min_size=1, max_size=6),
    order=st.sampled_from(["grouped", "shuffled"]),
    spread=st.sampled_from(["every", "any"]),
    repeats=st.integers(1, 3),
)
@settings(deadline=None, max_examples=60)
def test_slots_never_overlap_on_a_board_or_a_shared_meter(
    meters: list[str | None], order: str, spread: str, repeats: int
) -> None:
    made = plan(
        sweep(
            [{"payload": "w", "axes": {"batch": (1, 2, 4)}}],
            power_modes=("A", "B"),
            repeats=repeats,
            order=order,
            spread=spread,
        ),
        [board(f"b{at}", meter=meter) for at, meter in enumerate(meters)],
        [profile(masks={"A": 0, "B": 5})],
    )
    slots = list(schedule(made))
    by_user: dict[str, list[Slot]] = {}
    for slot in slots:
        meter = meters[int(slot.board[1:])]
        by_user.setdefault(slot.board, []).append(slot)
        if meter:
            by_user.setdefault(f"meter {meter}", []).append(slot)
    for used in by_user.values():
        used.sort(key=lambda slot: slot.begin_s)
        assert all(one.end_s <= two.begin_s for one, two in pairwise(used))
    assert all(slot.begin_s < slot.end_s for slot in slots)
    for lane in made.lanes:
        mine = [slot.trial_id for slot in by_user[lane.board]]
        assert mine == [trial.trial_id for trial in lane.trials]
        assert sum(s.end_s - s.begin_s for s in by_user[lane.board]) == pytest.approx(
            lane.estimate_s
        )
    assert made.estimate_s == pytest.approx(max(slot.end_s for slot in slots))
