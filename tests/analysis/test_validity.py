"""Every code is provoked by what it is for, and good attempts are not flagged."""

from collections.abc import Mapping
from dataclasses import replace
from math import sin

import pytest

from farm.analysis.clock import clock_problems
from farm.analysis.energy import power_over_window
from farm.analysis.events import PayloadEvents
from farm.analysis.reasons import DISTURBANCES, ReasonCode, reason
from farm.analysis.telemetry_checks import TelemetryEvidence
from farm.analysis.validity import Evidence, judge, least_window_s
from farm.model.board import MeterAccuracy, MeterSpec
from farm.model.measurement import IdlePower, VerdictStatus, Window
from farm.model.payload import Metric, PayloadManifest
from farm.model.power_mode import AppliedPowerMode, ClockPolicy, PowerModeState
from farm.model.sweep import MeasureRules
from farm.model.telemetry import TelemetryTrace
from farm.model.trace import MeterMiss, MissKind, PowerTrace
from tests.analysis.traces import Curve, SimulatedMeter, constant, pulse, ramp, spec

RULES = MeasureRules()
MANIFEST = PayloadManifest(
    name="p", level=2, summary="s", command=("x",), metrics={"throughput": Metric(unit="1/s")}
)
BEGIN_S, END_S = 1000.0, 1060.0
WINDOW = Window(begin_s=BEGIN_S, end_s=END_S)
EVENTS = PayloadEvents(window=Window(begin_s=10, end_s=70), metrics={})
MAXN = PowerModeState(name="MAXN", id=0)
METER = spec(averaging_s=1.0, lag_s=0.3, poll_hz=5)


def applied(clocks: ClockPolicy = "default", read_back: PowerModeState = MAXN) -> AppliedPowerMode:
    return AppliedPowerMode(asked="maxn", name="MAXN", id=0, clocks=clocks, read_back=read_back)


def unmetered() -> Evidence:
    return Evidence(
        manifest=MANIFEST,
        events=EVENTS,
        is_exit_ok=True,
        window=WINDOW,
        mode=applied(),
        mode_after=MAXN,
    )


def load(t_s: float) -> float:
    """A steady load with a breath of noise, in a board that idles at 5 W."""
    return (12.0 if BEGIN_S - 6 <= t_s < END_S + 1 else 5.0) + 0.05 * sin(t_s * 1.7)


def trace_of(
    curve: Curve = load,
    meter: MeterSpec = METER,
    *,
    gaps: tuple[tuple[float, float], ...] = (),
    has_counter: bool = True,
    begin_s: float = BEGIN_S - 20,
    end_s: float = END_S + 20,
) -> PowerTrace:
    simulated = SimulatedMeter(meter, curve, has_counter=has_counter)
    return simulated.poll(begin_s, end_s, gaps=gaps)


def metered(
    trace: PowerTrace | None = None,
    meter: MeterSpec = METER,
    *,
    idle: IdlePower | None = None,
    clock_bound_s: float = 0.002,
) -> Evidence:
    trace = trace if trace is not None else trace_of(meter=meter)
    power = power_over_window(trace, BEGIN_S, END_S, meter, idle=idle, clock_bound_s=clock_bound_s)
    return replace(
        unmetered(),
        expects_meter=True,
        spec=meter,
        trace=trace,
        power=power,
        idle=idle,
        clock_bound_s=clock_bound_s,
    )


def judged(evidence: Evidence, rules: MeasureRules = RULES) -> tuple[str, list[str]]:
    verdict = judge(evidence, rules)
    return verdict.status.value, [one.code for one in verdict.reasons]


GOOD: Mapping[str, Evidence] = {
    "without a meter": unmetered(),
    "averaging meter": metered(),
    "instantaneous meter": metered(meter=spec(poll_hz=5)),
    "polled at 2 Hz": metered(meter=spec(averaging_s=1.0, lag_s=0.3, poll_hz=2)),
    "quick meter": metered(meter=spec(update_s=0.2, poll_hz=10)),
    "idle known": metered(idle=IdlePower(before_w=5.0, after_w=5.1)),
    "one lost poll": metered(trace_of(gaps=((1020.0, 1021.0),))),
    "trace just long enough": metered(trace_of(begin_s=BEGIN_S - 5.2, end_s=END_S + 5.4)),
    "simulated window of 60 s with 0.5 % missing": replace(
        unmetered(), events=replace(EVENTS, window=Window(begin_s=10, end_s=69.7))
    ),
    "off for what was not in the window": metered(
        trace_of(pulse(0.0, 12.0, BEGIN_S - 10, END_S + 10))
    ),
}


@pytest.mark.parametrize("name", GOOD)
def test_good_attempts_are_valid(name: str) -> None:
    assert judged(GOOD[name]) == ("valid", [])


def with_misses(kind: MissKind, count: int) -> Evidence:
    trace = trace_of()
    trace.misses += [MeterMiss(1010.0 + k, kind) for k in range(count)]
    return metered(trace)


def changed(evidence: Evidence, column: str, value: float, count: int = 3) -> Evidence:
    """Overwrite some samples in the middle of the window."""
    trace = evidence.trace
    assert trace is not None
    middle = len(trace) // 2
    for k in range(middle, middle + count):
        getattr(trace, column)[k] = value
    return evidence


def volts_and_amperes(amperes: float) -> Evidence:
    evidence = metered()
    trace = evidence.trace
    assert trace is not None
    for k in range(len(trace)):
        trace.voltage_v[k], trace.current_a[k] = 230.0, amperes
    return evidence


def counter_reset() -> Evidence:
    evidence = metered()
    trace = evidence.trace
    assert trace is not None
    for k in range(len(trace) // 2, len(trace)):
        trace.energy_wh[k] -= 50.0
    return evidence


def hot() -> TelemetryEvidence:
    trace = TelemetryTrace()
    trace.append(20.0, {"temperature_c:CPU": 99.0})
    return TelemetryEvidence(trace, Window(begin_s=10, end_s=70), 8.0, limit_c=95.0)


STALE = metered(trace_of(constant(7.0), has_counter=False))
SLOW = spec(update_s=4.0, averaging_s=4.0, poll_hz=2)
INVALID = {
    "exit_failed": replace(unmetered(), is_exit_ok=False, exit_text="signal 9"),
    "window_missing": replace(
        unmetered(),
        events=PayloadEvents(None, {}, problems=(reason(ReasonCode.WINDOW_MISSING, "no"),)),
    ),
    "metric_missing": replace(
        unmetered(), events=replace(EVENTS, problems=(reason(ReasonCode.METRIC_MISSING, "x"),))
    ),
    "boot_changed": replace(unmetered(), are_boot_ids_equal=False),
    "clock_missing": replace(
        unmetered(), clock_problems=clock_problems([], [], are_boot_ids_equal=True)
    ),
    "mode_unproven": replace(unmetered(), mode=None),
    "mode_changed": replace(unmetered(), mode_after=PowerModeState(name="MAXQ", id=1)),
    "clocks_unlocked": replace(
        unmetered(), mode=applied("locked", MAXN.model_copy(update={"is_locked": True}))
    ),
    "power_missing": replace(unmetered(), expects_meter=True),
    "trace_short": metered(trace_of(end_s=END_S + 3)),
    "coverage_low": metered(trace_of(gaps=((1020.0, 1032.0),))),
    "gap": metered(trace_of(gaps=((1020.0, 1035.0),))),
    "gap_at_edge": metered(trace_of(gaps=((BEGIN_S - 4.0, BEGIN_S + 2.0),))),
    "stale": STALE,
    "reading_low": changed(metered(), "power_w", 0.0),
    "output_off": changed(metered(), "output_on", 0),
    "spikes": with_misses(MissKind.OUT_OF_RANGE, 10),
    "units_wrong": volts_and_amperes(0.02),
    "meter_auth": with_misses(MissKind.AUTH, 1),
    "idle_drift": metered(idle=IdlePower(before_w=5.0, after_w=6.5)),
}
ACCURATE = METER.model_copy(update={"accuracy": MeterAccuracy(floor_w=5.0)})
SUSPECT = {
    "events_garbled": replace(
        unmetered(), events=replace(EVENTS, problems=(reason(ReasonCode.EVENTS_GARBLED, "x"),))
    ),
    "mode_not_reread": replace(unmetered(), mode_after=None),
    "window_short": replace(
        unmetered(), events=replace(EVENTS, window=Window(begin_s=10, end_s=60))
    ),
    "gap": metered(trace_of(gaps=((1020.0, 1025.5),))),
    "cadence_slow": metered(trace_of(meter=spec(update_s=2.9, averaging_s=1.0, poll_hz=5))),
    "spikes": with_misses(MissKind.OUT_OF_RANGE, 1),
    "counter_fell": counter_reset(),
    "near_floor": metered(meter=ACCURATE),
    "power_drift": metered(trace_of(ramp(-88.0, 0.1))),
    "integral_differs": metered(
        trace_of(lambda t: load(t) + (150.0 if 999.13 < t < 1000.13 else 0))
    ),
    "idle_drift": metered(idle=IdlePower(before_w=5.0, after_w=5.4)),
    "clock_wide": metered(clock_bound_s=0.7),
    "meter_shared": replace(metered(), is_meter_shared=True),
    "over_temperature": replace(unmetered(), telemetry=hot()),
}


@pytest.mark.parametrize("code", INVALID)
def test_invalid(code: str) -> None:
    status, codes = judged(INVALID[code])
    assert (status, code in codes) == ("invalid", True), codes


@pytest.mark.parametrize("code", SUSPECT)
def test_suspect(code: str) -> None:
    status, codes = judged(SUSPECT[code])
    assert status == "suspect", codes
    assert code in codes


def test_every_code_is_provoked_somewhere() -> None:
    told_by_events = {code for code in ReasonCode if code.startswith(("window_", "metric_"))}
    told_by_clock = {ReasonCode.CLOCK_DRIFT, ReasonCode.CLOCK_BOUND}
    here = {*INVALID, *SUSPECT, "few_updates"}
    # What is in DISTURBANCES has a file of its own: test_telemetry_checks.py.
    assert set(ReasonCode) - told_by_events - told_by_clock - DISTURBANCES - here == set()


@pytest.mark.parametrize(("update_s", "status"), [(4.0, "suspect"), (10.0, "invalid")])
def test_few_updates(update_s: float, status: str) -> None:
    meter = spec(update_s=update_s, averaging_s=update_s, poll_hz=2)
    got, codes = judged(metered(trace_of(meter=meter), meter))
    assert (got, "few_updates" in codes) == (status, True)
    assert "window_short" in codes  # 30 refreshes are wanted


def test_reasons_carry_numbers_and_what_is_invalid_comes_first() -> None:
    evidence = replace(metered(trace_of(end_s=END_S + 3)), is_meter_shared=True)
    verdict = judge(evidence, RULES)
    assert [one.code for one in verdict.reasons] == ["trace_short", "meter_shared"]
    assert verdict.reasons[0].text == (
        "reaches 20.0 s before and 3.0 s after the window; 5.0 s are needed"
    )


def test_a_code_appears_once() -> None:
    twice = clock_problems([], [], are_boot_ids_equal=False)
    verdict = judge(replace(unmetered(), are_boot_ids_equal=False, clock_problems=twice), RULES)
    assert [one.code for one in verdict.reasons] == ["boot_changed"]


@pytest.mark.parametrize(
    ("power", "has_meter", "status"),
    [
        ("optional", False, "valid"),
        ("optional", True, "invalid"),
        ("required", False, "invalid"),
        ("off", False, "valid"),
        ("off", True, "valid"),
    ],
)
def test_power_that_is_not_there(power: str, has_meter: bool, status: str) -> None:
    rules = MeasureRules.model_validate({"power": power})
    verdict = judge(replace(unmetered(), expects_meter=has_meter), rules)
    assert verdict.status is VerdictStatus(status)


def test_a_payload_that_owes_no_window_owes_no_power_either() -> None:
    manifest = MANIFEST.model_copy(update={"metrics": {}})
    evidence = replace(
        unmetered(),
        manifest=manifest,
        events=PayloadEvents(None, {}),
        window=None,
        expects_meter=True,
    )
    assert judged(evidence) == ("valid", [])
    assert judged(evidence, MeasureRules(power="required"))[1] == ["power_missing"]


def test_shortest_window() -> None:
    assert least_window_s(RULES, None) == pytest.approx(59.4)
    assert least_window_s(RULES, spec(update_s=3.0)) == 90
    assert least_window_s(MeasureRules(window_s=6), spec(update_s=0.2)) == pytest.approx(6)
