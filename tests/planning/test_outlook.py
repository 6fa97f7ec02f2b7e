import pytest

from farm.planning.outlook import NIGHT_SHARE, Outlook, Spread, forecast
from farm.planning.pace import Estimate, Pace
from tests.planning.builders import board, plan, sweep
from tests.planning.test_pace import history

MEASURE = {"window_s": 8, "warmup_s": 0, "idle_s": 0}  # 10 s a trial by the defaults


def test_chance_adds_as_squares_and_what_is_wrong_alike_adds_up() -> None:
    chance, alike = Spread(), Spread()
    chance.add(Estimate(8, 10, 14, "cell", 5), 4)
    alike.add(Estimate(8, 10, 14, "payload", 5), 4)
    night_s = NIGHT_SHARE * 40
    assert chance.band(40) == pytest.approx((40 - 4 - night_s, 40, 40 + 8 + night_s))
    assert alike.band(40) == pytest.approx((40 - 8 - night_s, 40, 40 + 16 + night_s))
    chance.add(Estimate(8, 10, 14, "cell", 5), -4)
    assert chance.band(0) == pytest.approx((0, 0, 0))


def test_a_forecast_takes_the_slowest_and_tells_where_it_has_it_from() -> None:
    asked = sweep(measure=MEASURE, repeats=2)
    made = plan(asked, [board("a", meter="m"), board("b", meter="m"), board("c")])
    known = history(5.3, 5.3, cell_id=made.lanes[0].trials[0].cell.cell_id)
    cast = forecast(made, Pace(asked, known))
    assert cast.origins == {"cell": 2, "payload": 4}
    assert cast.samples == (2, 2)
    assert cast.low_s < cast.mid_s < cast.high_s
    assert cast.mid_s == made.estimate_s == pytest.approx(40)


def test_boards_that_take_turns_at_a_meter_add_up_in_what_is_left() -> None:
    asked = sweep(measure=MEASURE, repeats=2)
    made = plan(asked, [board("a", meter="m"), board("b", meter="m"), board("c")])
    now_s = 0.0
    outlook = Outlook(made, Pace(asked), (), lambda: now_s)
    low_s, mid_s, high_s = outlook.left_s()
    assert mid_s == pytest.approx(40)
    assert low_s < mid_s < high_s
    for at, trial in enumerate([made.lanes[0].trials[0], made.lanes[1].trials[0]], start=1):
        now_s = 10.0 * at
        outlook.ended(trial)
        outlook.ended(trial)  # told twice
    assert outlook.left_s()[1] == pytest.approx(20)
    outlook.restart(100.0)
    now_s = 105.0
    assert outlook.left_s()[1] == pytest.approx(5, abs=15)
    for trial in made.trials:
        outlook.ended(trial)
    assert outlook.left_s() == (0, 0, 0)
