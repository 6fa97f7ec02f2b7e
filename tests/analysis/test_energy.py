"""Power and energy of windows with closed forms, seen through meters that hold and average."""

from math import sqrt

import pytest

from farm.analysis.energy import edge_share, idle_power, power_over_window
from farm.model.board import MeterAccuracy
from farm.model.measurement import IdlePower
from farm.model.trace import PowerTrace
from tests.analysis.traces import SimulatedMeter, constant, pulse, ramp, spec

AVERAGING = spec(averaging_s=1.0, lag_s=0.3, poll_hz=5)


def test_constant_power() -> None:
    trace = SimulatedMeter(AVERAGING, constant(12.0)).poll(0, 100)
    power = power_over_window(
        trace, 20, 80, AVERAGING, idle=IdlePower(before_w=4.0, after_w=5.0), inferences=600
    )
    assert power.meter == "plug"
    assert power.window_s == 60
    assert power.mean_w == pytest.approx(12.0)
    assert power.energy_j == pytest.approx(720.0)
    assert power.integral_j == pytest.approx(720.0)
    assert power.energy_per_inference_j == pytest.approx(1.2)
    assert power.idle_w == 4.5
    assert power.net_energy_per_inference_j == pytest.approx((12.0 - 4.5) * 60 / 600)
    assert power.coverage == 1.0
    assert 58 <= power.fresh_updates <= 60


@pytest.mark.parametrize("averaging_s", [0.0, 1.0])
def test_ramp_has_its_closed_form(averaging_s: float) -> None:
    meter = spec(averaging_s=averaging_s, lag_s=0.2, poll_hz=10)
    trace = SimulatedMeter(meter, ramp(5.0, 0.05)).poll(0, 160)
    power = power_over_window(trace, 20, 140, meter)
    exact_w = 5.0 + 0.05 * 80
    assert power.mean_w == pytest.approx(exact_w, rel=0.005)
    assert power.integral_j == pytest.approx(exact_w * 120, rel=0.002)


def test_a_plain_mean_of_polls_would_be_wrong_where_this_is_not() -> None:
    """Load exactly in the window; the meter shows it late and averaged over 3 s."""
    meter = spec(update_s=3.0, averaging_s=3.0, lag_s=0.5, poll_hz=10)
    trace = SimulatedMeter(meter, pulse(8, 20, 50, 80)).poll(0, 130)
    power = power_over_window(trace, 50, 80, meter)
    polls = trace.between(50, 80).power_w
    plain_w = sum(polls) / len(polls)
    assert plain_w < 20 * 0.96
    assert power.mean_w == pytest.approx(20.0, rel=0.001)


@pytest.mark.parametrize("phase_s", [0.0, 0.3, 0.6, 0.9])
def test_held_values_of_any_phase(phase_s: float) -> None:
    meter = spec(lag_s=0.4, poll_hz=10)
    curve = pulse(8, 20, 40, 100)
    trace = SimulatedMeter(meter, curve, phase_s=phase_s).poll(0, 140)
    power = power_over_window(trace, 40, 100, meter)
    assert power.mean_w == pytest.approx(20.0, rel=0.01)
    assert power.integral_j == pytest.approx(1200.0, rel=0.02)


def test_an_uncorrected_lag_is_felt_by_the_integral() -> None:
    """The check has teeth: without the lag in its profile the meter reads low."""
    late = spec(update_s=1.0, averaging_s=1.0, lag_s=5.0, poll_hz=10)
    trace = SimulatedMeter(late, pulse(8, 20, 40, 70)).poll(0, 120)
    blind = spec(update_s=1.0, averaging_s=1.0, poll_hz=10)
    seen = power_over_window(trace, 40, 70, blind)
    assert seen.integral_j is not None
    assert seen.integral_j < 600 * 0.92
    right = power_over_window(trace, 40, 70, late)
    assert right.integral_j == pytest.approx(600, rel=0.02)


def test_a_gap_is_not_bridged() -> None:
    trace = SimulatedMeter(AVERAGING, ramp(5, 0.1)).poll(0, 100, gaps=((40.0, 60.0),))
    power = power_over_window(trace, 20, 80, AVERAGING)
    assert power.integral_j is None
    assert power.coverage == pytest.approx(1 - 20 / 60, abs=0.04)
    assert power.mean_w == pytest.approx(5 + 0.1 * 50, rel=0.01)  # the middle is symmetric


def test_the_value_after_a_silence_does_not_count_for_the_silence() -> None:
    curve = pulse(10, 100, 59.0, 61.5)
    trace = SimulatedMeter(AVERAGING, curve).poll(0, 100, gaps=((30.0, 60.5),))
    power = power_over_window(trace, 20, 80, AVERAGING)
    assert power.mean_w is not None
    assert power.mean_w < 10 + 90 * 3 / 30


def test_nothing_fresh_is_unknown_not_zero() -> None:
    frozen = SimulatedMeter(spec(), constant(7), has_counter=False).poll(0, 100)
    power = power_over_window(frozen, 20, 80, spec(), inferences=10)
    assert (power.mean_w, power.energy_j, power.energy_per_inference_j) == (None, None, None)
    assert (power.fresh_updates, power.coverage) == (0, 0.0)
    empty = power_over_window(PowerTrace("plug"), 20, 80, spec())
    assert (empty.mean_w, empty.integral_j, empty.counter_j, empty.uncertainty_w) == (None,) * 4


def test_a_window_that_the_trace_does_not_span_has_no_integral() -> None:
    trace = SimulatedMeter(AVERAGING, constant(12)).poll(0, 70)
    assert power_over_window(trace, 20, 80, AVERAGING).integral_j is None


def test_counter_when_fine_enough() -> None:
    trace = SimulatedMeter(spec(), constant(20)).poll(0, 260)
    power = power_over_window(trace, 20, 240, spec())
    assert power.counter_j == pytest.approx(20 * 220, rel=0.01)
    coarse = power_over_window(trace, 20, 80, spec())
    assert coarse.counter_j is None


def test_counter_that_fell_is_not_used() -> None:
    trace = SimulatedMeter(spec(), constant(20)).poll(0, 260)
    for k in range(200, len(trace)):
        trace.energy_wh[k] -= 1.0
    assert power_over_window(trace, 20, 240, spec()).counter_j is None


def test_uncertainty_is_one_standard_deviation_of_the_makers_limits() -> None:
    accuracy = MeterAccuracy(gain_pct=1.0, floor_w=0.2, resolution_w=0.1)
    meter = spec(averaging_s=1.0, accuracy=accuracy)
    trace = SimulatedMeter(meter, constant(20)).poll(0, 100)
    power = power_over_window(trace, 20, 80, meter)
    parts = (20 * 0.01 / sqrt(3), 0.2 / sqrt(3), 0.1 / sqrt(12))
    assert power.uncertainty_w == pytest.approx(sqrt(sum(part**2 for part in parts)))
    wide = power_over_window(trace, 20, 80, meter, clock_bound_s=0.5)
    assert wide.uncertainty_w is not None
    assert power.uncertainty_w is not None
    assert wide.uncertainty_w > power.uncertainty_w


def test_without_a_profile_of_accuracy_there_is_no_uncertainty() -> None:
    trace = SimulatedMeter(spec(), constant(20)).poll(0, 100)
    assert power_over_window(trace, 20, 80, spec()).uncertainty_w is None


def test_edge_share_of_the_example_in_the_docs() -> None:
    """20 W against 8 W idle, h = 1 s, u_lag = 0.3 s, u_clk = 0.05 s: 1 % at 102 s."""
    meter = spec().model_copy(update={"lag_uncertainty_s": 0.3})
    assert edge_share(20, 8, 102, meter, 0.05) == pytest.approx(0.01, rel=0.01)


@pytest.mark.parametrize("inferences", [None, 0.0, -3.0])
def test_no_inferences_no_energy_per_inference(inferences: float | None) -> None:
    trace = SimulatedMeter(spec(), constant(20)).poll(0, 100)
    power = power_over_window(trace, 20, 80, spec(), inferences=inferences)
    assert power.energy_per_inference_j is None
    assert power.net_energy_per_inference_j is None


def test_idle_power() -> None:
    trace = SimulatedMeter(AVERAGING, constant(4.25)).poll(0, 60)
    assert idle_power(trace, 5, 55, AVERAGING) == pytest.approx(4.25)


def test_idle_power_is_unknown_when_the_meter_slept() -> None:
    frozen = SimulatedMeter(spec(), constant(4), has_counter=False).poll(0, 60)
    assert idle_power(frozen, 5, 55, spec()) is None
    broken = SimulatedMeter(spec(), ramp(4, 0.01)).poll(0, 60, gaps=((15.0, 50.0),))
    assert idle_power(broken, 5, 55, spec()) is None
