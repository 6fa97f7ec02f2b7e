"""Fresh updates, gaps and coverage of polled traces."""

from math import nan

import pytest

from farm.analysis.windows import (
    Update,
    coverage,
    fresh_updates,
    gap_limit_s,
    gaps,
    inside,
    longest_stale_s,
    margin_s,
)
from farm.model.trace import MeterReading, PowerTrace
from tests.analysis.traces import SimulatedMeter, constant, ramp, spec


def polled(*rows: tuple[float, float, float]) -> PowerTrace:
    """(time, watts, volts)"""
    trace = PowerTrace("plug")
    for t_s, power_w, voltage_v in rows:
        trace.append(MeterReading(t_s, t_s, power_w, voltage_v=voltage_v))
    return trace


def test_repeats_are_no_updates_and_the_first_poll_is_none() -> None:
    trace = polled((0, 5, nan), (1, 5, nan), (2, 6, nan), (3, 6, nan), (4, 5, nan))
    assert fresh_updates(trace, spec()) == (Update(2, 6), Update(4, 5))


def test_an_unchanged_value_counts_when_another_field_moved() -> None:
    trace = polled((0, 5, 230.0), (1, 5, 230.1), (2, 5, 230.1))
    assert fresh_updates(trace, spec()) == (Update(1, 5),)


def test_lag_shifts_updates_to_the_past() -> None:
    trace = polled((10, 5, nan), (11, 6, nan))
    assert fresh_updates(trace, spec(lag_s=0.4)) == (Update(10.6, 6),)


def test_polling_ten_times_as_often_makes_no_more_updates() -> None:
    slow = SimulatedMeter(spec(poll_hz=2), ramp(5, 0.1)).poll(0, 60)
    fast = SimulatedMeter(spec(poll_hz=10), ramp(5, 0.1)).poll(0, 60)
    assert len(fresh_updates(fast, spec())) == len(fresh_updates(slow, spec())) == 60


def test_inside_wants_the_whole_averaging_interval() -> None:
    updates = (Update(10.5, 1), Update(11.5, 2), Update(19.9, 3), Update(20.1, 4))
    assert inside(updates, 10, 20, spec(averaging_s=1.0)) == updates[1:3]
    assert inside(updates, 10, 20, spec()) == updates[:3]


def test_gaps_are_cut_to_the_window_and_reduce_coverage() -> None:
    updates = tuple(Update(float(t), 1) for t in (*range(30), *range(50, 100)))
    found = gaps(updates, 0, 100, spec())
    assert [(gap.begin_s, gap.end_s) for gap in found] == [(29, 50)]
    assert coverage(updates, 0, 100, spec()) == pytest.approx(0.79)
    assert [(gap.begin_s, gap.end_s) for gap in gaps(updates, 40, 100, spec())] == [(40, 50)]


def test_edges_without_updates_are_gaps_only_when_long() -> None:
    updates = tuple(Update(float(t), 1) for t in range(3, 98))
    assert gaps(updates, 0, 100, spec()) == ()
    assert coverage(updates, 0, 100, spec()) == 1.0
    assert [gap.length_s for gap in gaps(updates, -10, 100, spec())] == [13]
    assert coverage((), 0, 100, spec()) == 0.0
    assert coverage(updates, 5, 5, spec()) == 0.0


@pytest.mark.parametrize(("update_s", "limit_s"), [(0.2, 5), (1, 5), (3, 9)])
def test_gap_limit(update_s: float, limit_s: float) -> None:
    assert gap_limit_s(spec(update_s=update_s)) == limit_s


def test_stale_is_answered_but_unchanged() -> None:
    trace = SimulatedMeter(spec(), constant(7), has_counter=False).poll(0, 60)
    assert longest_stale_s(trace, 10, 50) == pytest.approx(40)
    lively = SimulatedMeter(spec(), constant(7)).poll(0, 60)
    assert longest_stale_s(lively, 10, 50) < 1
    assert longest_stale_s(PowerTrace("plug"), 0, 1) == 0


@pytest.mark.parametrize(
    ("update_s", "lag_s", "averaging_s", "wanted_s"),
    [(0.2, 0.1, 0.0, 1.1), (1.0, 0.3, 1.0, 5.0), (10.0, 1.0, 10.0, 5.0)],
)
def test_margin(update_s: float, lag_s: float, averaging_s: float, wanted_s: float) -> None:
    meter = spec(update_s=update_s, lag_s=lag_s, averaging_s=averaging_s)
    assert margin_s(meter) == pytest.approx(wanted_s)
