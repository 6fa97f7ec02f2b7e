import pytest

from farm.model.history import History
from farm.model.plan import Cell
from farm.planning.pace import (
    MODE_CHANGE_S,
    REBOOT_S,
    SIMULATED_REBOOT_S,
    TRIAL_OVERHEAD_S,
    Pace,
    percentile,
)
from tests.planning.builders import board, plan, sweep
from tests.planning.test_lessons import RULES, past

ASKED = sweep(measure={"window_s": 100, "warmup_s": 0, "settle": {"pause_s": 0}})


def cell() -> Cell:
    return plan(ASKED, [board("a")]).trials[0].cell


def history(*overheads: float, cell_id: str = "", run: int = 1) -> History:
    attempts = tuple(
        past(0, 25 + extra, cell_id or cell().cell_id, board=f"x{at}", run=run)
        for at, extra in enumerate(overheads)
    )
    return History(attempts, (), {run: RULES})


def test_without_history_the_default_stands_with_a_wide_band() -> None:
    found = Pace(ASKED).trial(cell(), "a")
    assert (found.origin, found.count) == ("default", 0)
    assert found.mid_s == 100 + TRIAL_OVERHEAD_S
    assert (found.low_s, found.high_s) == pytest.approx((100, 1.5 * found.mid_s))


def test_the_same_cell_tells_the_median_and_the_percentiles_of_its_spread() -> None:
    found = Pace(ASKED, history(0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100)).trial(cell(), "a")
    assert (found.origin, found.count) == ("cell", 11)
    # attempts without one before them count 0.7 s for the way from the last one
    assert (found.low_s, found.mid_s, found.high_s) == pytest.approx((110.7, 150.7, 190.7))


def test_few_samples_that_agree_still_leave_a_band() -> None:
    found = Pace(ASKED, history(49.3)).trial(cell(), "a")
    assert (found.low_s, found.mid_s, found.high_s) == pytest.approx((135, 150, 165))
    more = Pace(ASKED, history(*[49.3] * 4)).trial(cell(), "a")
    assert (more.low_s, more.high_s) == pytest.approx((142.5, 157.5))


def test_another_cell_of_the_payload_tells_less() -> None:
    found = Pace(ASKED, history(49.3, cell_id="other")).trial(cell(), "a")
    assert (found.origin, found.count) == ("payload", 1)
    assert (found.low_s, found.mid_s, found.high_s) == pytest.approx((120, 150, 180))


def test_a_simulated_board_says_nothing_of_a_real_one() -> None:
    known = history(49.3, cell_id="other")
    assert Pace(ASKED, known, {"a"}).trial(cell(), "a").origin == "default"


def test_changes_and_reboots_have_defaults_too() -> None:
    pace = Pace(ASKED, simulated={"s"})
    assert pace.change("a", "tx2").mid_s == MODE_CHANGE_S
    assert pace.reboot("a", "tx2").mid_s == REBOOT_S
    assert pace.reboot("s", "tx2").mid_s == SIMULATED_REBOOT_S


@pytest.mark.parametrize(("share", "expected"), [(0, 1), (0.5, 3), (0.9, 4.6), (1, 5)])
def test_percentiles_lie_between_values(share: float, expected: float) -> None:
    assert percentile([1, 2, 3, 4, 5], share) == pytest.approx(expected)
