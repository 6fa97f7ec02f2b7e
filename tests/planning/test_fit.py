import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farm.model.plan import Plan
from farm.planning.fit import fit_plan, without
from farm.planning.outlook import forecast
from farm.planning.pace import Pace
from tests.planning.builders import board, payload, plan, profile, sweep

PROFILES = {"tx2": profile()}
MEASURE = {"window_s": 8, "warmup_s": 0, "idle_s": 0}  # 10 s a trial by the defaults


def made(**rest: object) -> Plan:
    asked = sweep(
        [{"payload": "dear", "priority": 1}, {"payload": "cheap"}],
        measure=MEASURE,
        **{"repeats": 3, **rest},
    )
    boards = [board("a", meter="m"), board("b", meter="m"), board("c")]
    return plan(asked, boards, payloads=[payload("dear"), payload("cheap")])


def names(left_out: object) -> list[str]:
    assert isinstance(left_out, tuple)
    return [f"{one.board} {one.cell.payload} r{one.repeat}" for one in left_out]


def test_what_fits_stays_whole() -> None:
    whole = made()
    assert fit_plan(whole, Pace(whole.sweep), PROFILES, whole.estimate_s) == ()


def test_the_last_repeat_goes_first_then_the_lower_priority_and_the_later_board() -> None:
    whole = made()
    assert whole.estimate_s == pytest.approx(120)  # two boards take turns; c needs 60 s
    left_out = fit_plan(whole, Pace(whole.sweep), PROFILES, 65)
    assert names(left_out) == [
        "a cheap r3",
        "b cheap r3",
        "a dear r3",
        "b dear r3",
        "a cheap r2",
        "b cheap r2",
    ]
    kept = without(whole, {one.trial_id for one in left_out}, Pace(whole.sweep), PROFILES)
    assert kept.estimate_s == pytest.approx(60)
    assert [len(lane.trials) for lane in kept.lanes] == [3, 3, 6]
    assert kept.lanes[2] == whole.lanes[2]


def test_to_be_safe_the_upper_end_must_fit() -> None:
    whole = made()
    pace = Pace(whole.sweep)
    safe = fit_plan(whole, pace, PROFILES, 65, is_safe=True)
    assert len(safe) > len(fit_plan(whole, pace, PROFILES, 65))
    kept = without(whole, {one.trial_id for one in safe}, pace, PROFILES)
    assert forecast(kept, pace).high_s <= 65


def test_nothing_fits_into_no_time() -> None:
    whole = made()
    left_out = fit_plan(whole, Pace(whole.sweep), PROFILES, 1)
    assert len(left_out) == len(whole.trials)
    ids = {one.trial_id for one in left_out}
    assert without(whole, ids, Pace(whole.sweep), PROFILES).lanes == ()


def test_a_mode_that_goes_saves_its_reboots() -> None:
    asked = sweep(
        [{"payload": "dear", "priority": 1, "power_modes": ["A"]},
         {"payload": "cheap", "power_modes": ["B"]}],
        measure=MEASURE,
    )  # fmt: skip
    known = profile(masks={"A": 0, "B": 5}, default="A")
    whole = plan(asked, [board("a")], [known], [payload("dear"), payload("cheap")])
    assert whole.lanes[0].reboots == 2
    pace = Pace(asked)
    left_out = fit_plan(whole, pace, {"tx2": known}, 60)
    assert names(left_out) == ["a cheap r1"]
    assert without(whole, {left_out[0].trial_id}, pace, {"tx2": known}).lanes[0].reboots == 0


@given(limit_s=st.floats(1, 130), repeats=st.integers(1, 4))
@settings(deadline=None, max_examples=30)
def test_as_few_as_needed_are_left_out(limit_s: float, repeats: int) -> None:
    whole = made(repeats=repeats)
    pace = Pace(whole.sweep)
    left_out = [one.trial_id for one in fit_plan(whole, pace, PROFILES, limit_s)]
    assert without(whole, left_out, pace, PROFILES).estimate_s <= limit_s
    for board_name in {one.rpartition(" ")[0] for one in ("a x", "c x")}:
        mine = [i for i in left_out if _board(whole, i) in {board_name, *_twin(board_name)}]
        if mine:
            fewer = [one for one in left_out if one != mine[-1]]
            assert without(whole, fewer, pace, PROFILES).estimate_s > limit_s


def _board(whole: Plan, trial_id: str) -> str:
    return next(one.board for one in whole.trials if one.trial_id == trial_id)


def _twin(name: str) -> tuple[str, ...]:
    return ("b",) if name == "a" else ()
