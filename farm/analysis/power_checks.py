"""What speaks against a meter's trace over one window. docs/energy.md explains each code.

Every check is a function of `PowerEvidence` that yields findings; a finding is a reason and
whether it makes the power figures invalid or only suspect. Times: host monotonic seconds.
"""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from math import isnan

from farm.analysis.energy import edge_share, power_drift, update_period_s
from farm.analysis.reasons import ReasonCode, reason
from farm.analysis.windows import (
    Update,
    fresh_updates,
    gaps,
    inside,
    longest_stale_s,
    margin_s,
)
from farm.model.board import MeterSpec
from farm.model.measurement import IdlePower, PowerResult, Reason, Window
from farm.model.trace import MissKind, PowerTrace

MIN_UPDATES, GOOD_UPDATES = 10, 30
MIN_COVERAGE, GOOD_COVERAGE = 0.90, 0.95
MAX_SPIKE_SHARE = 0.01
MAX_CLOCK_SHARE = 0.01
MAX_INTEGRAL_SHARE = 0.02
MAX_DRIFT_SHARE = 0.03
UNIT_SLACK_W = 0.5
"""Assumed: P <= V * I holds to 10 % and this, the rounding of V and I on a plug at low load."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A reason, and whether it makes the result invalid (else suspect)."""

    reason: Reason
    is_invalid: bool


@dataclass(frozen=True)
class PowerEvidence:
    """A window on the host axis, the trace around it, and what was derived from both."""

    window: Window
    trace: PowerTrace
    spec: MeterSpec
    power: PowerResult
    idle: IdlePower | None
    clock_bound_s: float
    is_meter_shared: bool

    @cached_property
    def within(self) -> PowerTrace:
        """The samples in the window."""
        return self.trace.between(self.window.begin_s, self.window.end_s)

    @cached_property
    def updates(self) -> tuple[Update, ...]:
        """Fresh updates of the whole trace."""
        return fresh_updates(self.trace, self.spec)


def check_power(evidence: PowerEvidence) -> list[Finding]:
    """All findings about one window's power."""
    return [finding for check in _CHECKS for finding in check(evidence)]


def _extent(e: PowerEvidence) -> Iterator[Finding]:
    need_s = margin_s(e.spec)
    before_s = e.window.begin_s - e.trace.t_s[0] if len(e.trace) else 0.0
    after_s = e.trace.t_s[-1] - e.window.end_s if len(e.trace) else 0.0
    if min(before_s, after_s) < need_s:
        text = f"reaches {before_s:.1f} s before and {after_s:.1f} s after the window"
        yield _invalid(ReasonCode.TRACE_SHORT, f"{text}; {need_s:.1f} s are needed")


def _freshness(e: PowerEvidence) -> Iterator[Finding]:
    count = e.power.fresh_updates
    if count < GOOD_UPDATES:
        text = f"{count} fresh updates in the window, {GOOD_UPDATES} wanted"
        yield _graded(ReasonCode.FEW_UPDATES, text, is_invalid=count < MIN_UPDATES)
    stale_s = longest_stale_s(e.trace, e.window.begin_s, e.window.end_s)
    limit_s = max(5 * e.spec.update_s, 30.0)
    if stale_s > limit_s:
        text = f"nothing changed for {stale_s:.0f} s, {limit_s:.0f} s allowed"
        yield _invalid(ReasonCode.STALE, text)
    within = inside(e.updates, e.window.begin_s, e.window.end_s, e.spec)
    period_s = update_period_s(within)
    # Polls see a refresh up to one poll late, so the cadence cannot look quicker than that.
    if period_s is not None and period_s > 2 * max(e.spec.update_s, 1 / e.spec.poll_hz):
        text = f"refreshes every {period_s:.2g} s, its profile says {e.spec.update_s:.2g} s"
        yield _suspect(ReasonCode.CADENCE_SLOW, text)


def _gaps(e: PowerEvidence) -> Iterator[Finding]:
    covered = e.power.coverage
    if covered < GOOD_COVERAGE:
        text = f"{covered:.1%} of the window is covered by updates"
        yield _graded(ReasonCode.COVERAGE_LOW, text, is_invalid=covered < MIN_COVERAGE)
    found = gaps(e.updates, e.window.begin_s, e.window.end_s, e.spec)
    if not found:
        return
    longest_s = max(gap.length_s for gap in found)
    limit_s = 10.0 + 3 * e.spec.update_s
    text = f"{len(found)} gaps, the longest {longest_s:.1f} s"
    yield _graded(ReasonCode.GAP, text, is_invalid=longest_s > limit_s)
    edge_s = e.spec.lag_s + e.spec.averaging_s + e.spec.update_s
    low_s, high_s = e.window.begin_s + edge_s, e.window.end_s - edge_s
    if any(gap.begin_s < low_s or gap.end_s > high_s for gap in found):
        text = f"a gap touches the first or last {edge_s:.1f} s of the window"
        yield _invalid(ReasonCode.GAP_AT_EDGE, text)


def _readings(e: PowerEvidence) -> Iterator[Finding]:
    part = e.within
    if any(on == 0 for on in part.output_on):
        off = sum(on == 0 for on in part.output_on)
        text = f"the outlet was off in {off} of {len(part)} samples"
        yield _invalid(ReasonCode.OUTPUT_OFF, text)
    low = [
        w
        for w, on in zip(part.power_w, part.output_on, strict=True)
        if on != 0 and (w <= 0 or w < e.spec.min_w)
    ]
    if low:
        text = f"{len(low)} readings of {min(low):.2f} W or more under {e.spec.min_w:g} W or zero"
        yield _invalid(ReasonCode.READING_LOW, text)


def _misses(e: PowerEvidence) -> Iterator[Finding]:
    kinds = [miss.kind for miss in e.within.misses]
    spikes = kinds.count(MissKind.OUT_OF_RANGE)
    if spikes:
        share = spikes / (spikes + len(e.within))
        text = f"{spikes} readings ({share:.1%}) outside {e.spec.min_w:g}..{e.spec.max_w:g} W"
        yield _graded(ReasonCode.SPIKES, text, is_invalid=share > MAX_SPIKE_SHARE)
    if MissKind.AUTH in kinds:
        text = f"the meter refused the login {kinds.count(MissKind.AUTH)} times"
        yield _invalid(ReasonCode.METER_AUTH, text)


def _units(e: PowerEvidence) -> Iterator[Finding]:
    part = e.within
    apparent_va = [
        v * i for v, i in zip(part.voltage_v, part.current_a, strict=True) if not isnan(v * i)
    ]
    mean_w = e.power.mean_w
    if not apparent_va or mean_w is None:
        return
    mean_va = sum(apparent_va) / len(apparent_va)
    if mean_w > 1.1 * mean_va + UNIT_SLACK_W:
        text = f"{mean_w:.2f} W is more than volts times amperes give ({mean_va:.2f} VA)"
        yield _invalid(ReasonCode.UNITS_WRONG, text)


def _counter(e: PowerEvidence) -> Iterator[Finding]:
    column = [wh for wh in e.within.energy_wh if not isnan(wh)]
    fall = max((a - b for a, b in itertools.pairwise(column)), default=0.0)
    if fall > 0:
        text = f"the meter's counter fell by {fall:.3f} Wh: the meter started anew"
        yield _suspect(ReasonCode.COUNTER_FELL, text)


def _figures(e: PowerEvidence) -> Iterator[Finding]:
    mean_w, energy_j = e.power.mean_w, e.power.energy_j
    if mean_w is None or energy_j is None or mean_w <= 0:
        return
    floor_w = e.spec.accuracy.floor_w
    if mean_w < 3 * floor_w:
        text = f"{mean_w:.2f} W is near the meter's floor of {floor_w:g} W"
        yield _suspect(ReasonCode.NEAR_FLOOR, text)
    if e.power.integral_j is not None:
        share = abs(energy_j - e.power.integral_j) / energy_j
        edge = edge_share(mean_w, e.power.idle_w, e.power.window_s, e.spec, e.clock_bound_s)
        if share > max(MAX_INTEGRAL_SHARE, edge):
            text = f"mean x time {energy_j:.1f} J, integral {e.power.integral_j:.1f} J"
            yield _suspect(ReasonCode.INTEGRAL_DIFFERS, text)
    thirds = power_drift(e.trace, e.window.begin_s, e.window.end_s, e.spec)
    if thirds is not None and abs(thirds[1] - thirds[0]) > MAX_DRIFT_SHARE * mean_w:
        text = f"first third {thirds[0]:.2f} W, last third {thirds[1]:.2f} W"
        yield _suspect(ReasonCode.POWER_DRIFT, text)


def _idle(e: PowerEvidence) -> Iterator[Finding]:
    if e.idle is None or e.idle.before_w is None or e.idle.after_w is None:
        return
    shift = abs(e.idle.after_w - e.idle.before_w)
    if shift > max(0.03 * e.idle.before_w, 0.3):
        text = f"idle {e.idle.before_w:.2f} W before, {e.idle.after_w:.2f} W after"
        is_invalid = shift > max(0.10 * e.idle.before_w, 1.0)
        yield _graded(ReasonCode.IDLE_DRIFT, text, is_invalid=is_invalid)


def _set_up(e: PowerEvidence) -> Iterator[Finding]:
    length_s = e.window.end_s - e.window.begin_s
    if e.clock_bound_s > MAX_CLOCK_SHARE * length_s:
        text = f"the clocks agree to {e.clock_bound_s:.3f} s in a window of {length_s:.1f} s"
        yield _suspect(ReasonCode.CLOCK_WIDE, text)
    if e.is_meter_shared:
        text = "the meter feeds other boards too: gross power is not this board's alone"
        yield _suspect(ReasonCode.METER_SHARED, text)


_CHECKS: tuple[Callable[[PowerEvidence], Iterator[Finding]], ...] = (
    _extent,
    _freshness,
    _gaps,
    _readings,
    _misses,
    _units,
    _counter,
    _figures,
    _idle,
    _set_up,
)


def _invalid(code: ReasonCode, text: str) -> Finding:
    return Finding(reason(code, text), is_invalid=True)


def _suspect(code: ReasonCode, text: str) -> Finding:
    return Finding(reason(code, text), is_invalid=False)


def _graded(code: ReasonCode, text: str, *, is_invalid: bool) -> Finding:
    return Finding(reason(code, text), is_invalid=is_invalid)
