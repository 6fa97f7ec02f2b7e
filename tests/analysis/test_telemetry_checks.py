"""Each disturbance is found by the numbers of a trace, and a good board is left in peace."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.analysis.telemetry_checks import TelemetryEvidence, check_telemetry
from farm.model.measurement import Window
from farm.model.power_mode import PowerMode
from farm.model.telemetry import ForeignLoad, TelemetryTrace

BEGIN_S, END_S = 100.0, 160.0
Row = Callable[[float], Mapping[str, float]]


def good(t_s: float) -> dict[str, float]:
    """A board that works from 98 to 162 at its caps."""
    is_busy = BEGIN_S - 2 <= t_s <= END_S + 2
    return {
        "attempts": float(is_busy),
        "load_pct:cpu0": 100.0 if is_busy else 1.0,
        "clock_mhz:cpu0": 2034.0 if is_busy else 345.0,
        "cap_mhz:cpu0": 2035.0,
        "load_pct:GPU": 99.0 if is_busy else 0.0,
        "clock_mhz:GPU": 1300.0 if is_busy else 114.0,
        "cap_mhz:GPU": 1300.0,
        "temperature_c:GPU": 61.0 if is_busy else 40.0,
        "cooling_state:thermal-cpufreq-0": 0.0,
        "over_current_count:oc1": 7.0,
        "throttle_count:package": 2.0,
        "throttled_bits": 0x50000,
    }


def evidence(row: Row = good) -> TelemetryEvidence:
    trace = TelemetryTrace("tegrastats", "boot")
    for t_s in range(80, 165):
        trace.append(float(t_s), row(float(t_s)))
    window = Window(begin_s=BEGIN_S, end_s=END_S)
    return TelemetryEvidence(trace, window, BEGIN_S - 2, limit_c=95.0)


def codes(given_evidence: TelemetryEvidence) -> dict[str, str]:
    findings = list(check_telemetry(given_evidence))
    assert not any(finding.is_invalid for finding in findings)
    return {finding.reason.code: finding.reason.text for finding in findings}


def with_(channel: str, value: float, since_s: float = 110.0, until_s: float = 150.0) -> Row:
    return lambda t: {**good(t), **({channel: value} if since_s <= t <= until_s else {})}


def test_a_good_board_is_left_in_peace() -> None:
    assert codes(evidence()) == {}
    assert codes(replace(evidence(), trace=TelemetryTrace())) == {}


CASES = {
    "clock_below_cap": (with_("clock_mhz:GPU", 600.0), "GPU at 600 of 1300 MHz over 61"),
    "over_temperature": (with_("temperature_c:GPU", 96.5), "GPU reached 96.5 C"),
    "over_current": (with_("over_current_count:oc1", 9.0, until_s=999), "2 of oc1"),
    "throttled": (with_("cooling_state:thermal-cpufreq-0", 2.0), "at 2 in 41 of 61 samples"),
}


@pytest.mark.parametrize("code", CASES)
def test_a_disturbance_is_named_with_its_numbers(code: str) -> None:
    row, text = CASES[code]
    found = codes(evidence(row))
    assert set(found) == {code}
    assert text in found[code]


@pytest.mark.parametrize(
    ("bits", "text"), [(0x50002, "ARM clock capped"), (0xD0000, "soft temperature limit")]
)
def test_the_bits_of_a_raspberry_pi_are_named(bits: int, text: str) -> None:
    assert codes(evidence(with_("throttled_bits", bits, until_s=999)))["throttled"] == text


def test_counters_count_from_before_the_window() -> None:
    assert codes(evidence(with_("throttle_count:package", 3.0, until_s=999)))["throttled"] == (
        "1 of package throttling events"
    )
    early = with_("over_current_count:oc1", 9.0, since_s=0.0, until_s=999)
    assert codes(evidence(early)) == {}


def test_a_cap_that_heat_lowers_is_no_excuse() -> None:
    def row(t_s: float) -> dict[str, float]:
        low = {"cap_mhz:cpu0": 1190.0, "clock_mhz:cpu0": 1190.0}
        return {**good(t_s), **(low if t_s >= 110 else {})}

    assert "cpu0 at 1190 of 2035" in codes(evidence(row))["clock_below_cap"]


def test_an_idle_core_may_be_slow_and_a_turbo_clock_is_no_cap() -> None:
    def row(t_s: float) -> dict[str, float]:
        return {**good(t_s), "clock_mhz:cpu0": 345.0, "load_pct:cpu0": 50.0}

    assert codes(evidence(row)) == {}
    slow = evidence(with_("clock_mhz:cpu0", 345.0))
    assert set(codes(slow)) == {"clock_below_cap"}
    assert codes(replace(slow, are_caps_reached=False)) == {}


def test_the_profile_tells_the_cap_where_the_board_does_not() -> None:
    def row(t_s: float) -> dict[str, float]:
        told = {name: value for name, value in good(t_s).items() if "cap" not in name}
        return {**told, "clock_mhz:GPU": 600.0}

    silent = evidence(row)
    assert codes(silent) == {}
    known = replace(silent, mode=PowerMode(name="MAXN", gpu_mhz=1300.0))
    assert set(codes(known)) == {"clock_below_cap"}


def test_another_process_counts_for_its_share_of_the_window() -> None:
    busy = evidence()
    busy.trace.foreign += [
        ForeignLoad(110, 130, "apt", 90.0),
        ForeignLoad(130, 131, "cron", 99.0),
        ForeignLoad(60, 110, "before", 100.0),
    ]
    assert codes(busy) == {"foreign_load": "apt used 30 % of a core"}


def test_a_gpu_that_is_busy_while_nothing_of_ours_runs_is_shared() -> None:
    shared = evidence(with_("load_pct:GPU", 40.0, since_s=0.0, until_s=97.0))
    assert "the GPU was 40 % busy" in codes(shared)["foreign_load"]
    after_ours = evidence(lambda t: {**good(t), "load_pct:GPU": 40.0, "attempts": float(t < 96.0)})
    assert codes(after_ours) == {}  # two samples at rest are too few


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(sorted(good(0.0))), st.floats(0, 1e9, allow_nan=False), max_size=6
        ),
        max_size=8,
    )
)
def test_whatever_a_board_tells_is_judged(rows: list[dict[str, float]]) -> None:
    trace = TelemetryTrace()
    for number, row in enumerate(rows):
        trace.append(95.0 + 10 * number, row)
    found = codes(replace(evidence(), trace=trace))
    assert all(found.values())
