"""The map between the board's boot-time clock and the host's monotonic one."""

from math import inf, nan

import pytest

from farm.analysis.clock import clock_problems, fit_clock_map
from farm.analysis.reasons import ReasonCode
from farm.errors import AnalysisError
from farm.model.measurement import ClockExchange

OFFSET_S = -4000.0


def exchange(
    host_s: float, rtt_s: float = 0.002, *, drift: float = 0.0, skew: float = 0.5
) -> ClockExchange:
    """The board answers after `skew` of the round trip; its clock runs `drift` too quick."""
    board_s = (host_s + skew * rtt_s) * (1 + drift) + OFFSET_S
    return ClockExchange(host_sent_s=host_s, board_s=board_s, host_received_s=host_s + rtt_s)


def codes(problems: tuple[object, ...]) -> list[str]:
    return [getattr(problem, "code", "") for problem in problems]


@pytest.mark.parametrize("drift", [0.0, 80e-6, -80e-6])
def test_the_map_inverts_offset_and_drift(drift: float) -> None:
    before, after = [exchange(5000.0, drift=drift)], [exchange(5600.0, drift=drift)]
    clock = fit_clock_map(before, after)
    for host_s in (5000.0, 5123.4, 5600.0):
        board_s = host_s * (1 + drift) + OFFSET_S
        assert clock.to_host_s(board_s) == pytest.approx(host_s, abs=1e-4)
    assert clock.bound_s == pytest.approx(0.001)
    assert clock_problems(before, after, are_boot_ids_equal=True) == ()


@pytest.mark.parametrize("skew", [0.0, 0.5, 1.0])
def test_the_error_stays_within_the_bound(skew: float) -> None:
    before, after = [exchange(5000.0, 0.1, skew=skew)], [exchange(5100.0, 0.04, skew=skew)]
    clock = fit_clock_map(before, after)
    assert abs(clock.to_host_s(5050.0 + OFFSET_S) - 5050.0) <= clock.bound_s + 1e-9


def test_the_exchange_with_the_least_round_trip_counts() -> None:
    slow = [exchange(4990.0 + k, 0.3, skew=1.0) for k in range(10)]
    clock = fit_clock_map([*slow, exchange(5000.0)], [exchange(5060.0), *slow])
    assert clock.bound_s == pytest.approx(0.001)


def test_over_a_moment_there_is_no_slope() -> None:
    clock = fit_clock_map([exchange(5000.0, 0.02, skew=0.0)], [exchange(5000.1, 0.02, skew=1.0)])
    assert clock.drift == 0.0
    assert abs(clock.to_host_s(5000.05 + OFFSET_S) - 5000.05) <= clock.bound_s


def test_drift_beyond_200_ppm_is_a_problem() -> None:
    before = [exchange(5000.0)]
    after = [exchange(5600.0, drift=0.0)]
    stepped = after[0].model_copy(update={"board_s": after[0].board_s + 0.2})
    found = clock_problems(before, [stepped], are_boot_ids_equal=True)
    assert codes(found) == [ReasonCode.CLOCK_DRIFT]
    assert "200.0 ms in 600.2 s" in found[0].text


def test_round_trips_excuse_a_seeming_drift_over_a_short_payload() -> None:
    """10 ms in 5 s are 2000 ppm, and nothing but round trip."""
    before, after = [exchange(5000.0, 0.01, skew=0.0)], [exchange(5005.0, 0.01, skew=1.0)]
    assert clock_problems(before, after, are_boot_ids_equal=True) == ()


def test_a_bound_over_250_ms_is_a_problem() -> None:
    found = clock_problems([exchange(5000.0, 0.6)], [exchange(5099.0)], are_boot_ids_equal=True)
    assert codes(found) == [ReasonCode.CLOCK_BOUND]
    assert "300 ms" in found[0].text


def test_another_boot_is_the_only_problem_told() -> None:
    found = clock_problems([], [], are_boot_ids_equal=False)
    assert codes(found) == [ReasonCode.BOOT_CHANGED]


def test_a_clock_that_went_back_is_another_boot() -> None:
    before, after = [exchange(5000.0)], [exchange(4000.0)]
    assert codes(clock_problems(before, after, are_boot_ids_equal=True)) == ["boot_changed"]
    with pytest.raises(AnalysisError, match="went back"):
        fit_clock_map(before, after)


@pytest.mark.parametrize(
    "broken",
    [
        ClockExchange(host_sent_s=1.0, board_s=nan, host_received_s=2.0),
        ClockExchange(host_sent_s=1.0, board_s=inf, host_received_s=2.0),
        ClockExchange(host_sent_s=1.0, board_s=-5.0, host_received_s=2.0),
        ClockExchange(host_sent_s=2.0, board_s=5.0, host_received_s=1.0),
    ],
)
def test_exchanges_that_cannot_be_are_not_used(broken: ClockExchange) -> None:
    good = [exchange(5000.0)]
    found = clock_problems(good, [broken], are_boot_ids_equal=True)
    assert codes(found) == [ReasonCode.CLOCK_MISSING]
    assert "after" in found[0].text
    with pytest.raises(AnalysisError, match="no usable"):
        fit_clock_map([broken], good)
