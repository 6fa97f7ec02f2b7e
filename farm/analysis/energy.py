"""Mean power and energy over a measured window, from a meter's trace.

In: a trace (host monotonic seconds, watts, Wh) and the window on the same axis. Out: watts and
joules with a standard uncertainty. The formulas and the reasons stand in docs/energy.md.
"""

import itertools
from collections.abc import Sequence
from math import isnan, sqrt
from statistics import median

from farm.analysis.windows import (
    Update,
    coverage,
    fresh_updates,
    gap_limit_s,
    gaps,
    inside,
)
from farm.model.board import MeterSpec
from farm.model.measurement import IdlePower, PowerResult
from farm.model.trace import PowerTrace

JOULES_PER_WH = 3600.0
MIN_IDLE_UPDATES = 3
MIN_IDLE_COVERAGE = 0.5
COUNTER_STEPS = 100
"""A counter is believed when the window's energy is this many of its steps (1 % each side)."""


def power_over_window(
    trace: PowerTrace,
    begin_s: float,
    end_s: float,
    spec: MeterSpec,
    *,
    idle: IdlePower | None = None,
    clock_bound_s: float = 0.0,
    inferences: float | None = None,
) -> PowerResult:
    """Power and energy over [begin_s, end_s]. `trace` should reach beyond it on both sides.

    `mean_w` is the time-weighted mean of the updates whose averaging interval lies inside,
    None if there is none. `uncertainty_w` is one standard deviation for a single run, without
    repeatability; None when the meter's profile tells no accuracy.
    """
    updates = fresh_updates(trace, spec)
    within = inside(updates, begin_s, end_s, spec)
    mean_w = _mean_w(updates, within, begin_s, spec)
    window_s = end_s - begin_s
    energy_j = None if mean_w is None else mean_w * window_s
    idle_w = idle.mean_w if idle is not None else None
    count = inferences if inferences is not None and inferences > 0 else None
    per_inference_j = None if energy_j is None or count is None else energy_j / count
    net_j = None
    if mean_w is not None and idle_w is not None and count is not None:
        net_j = (mean_w - idle_w) * window_s / count
    return PowerResult(
        meter=trace.meter,
        mean_w=mean_w,
        idle_w=idle_w,
        window_s=window_s,
        energy_j=energy_j,
        integral_j=_integral_j(updates, begin_s, end_s, spec),
        counter_j=_counter_j(trace, begin_s, end_s, spec),
        energy_per_inference_j=per_inference_j,
        net_energy_per_inference_j=net_j,
        uncertainty_w=_uncertainty_w(mean_w, idle_w, window_s, spec, clock_bound_s),
        fresh_updates=len(within),
        coverage=coverage(updates, begin_s, end_s, spec),
    )


def idle_power(trace: PowerTrace, begin_s: float, end_s: float, spec: MeterSpec) -> float | None:
    """Mean watts of a board at rest; None with under 3 fresh updates or half the span in gaps."""
    updates = fresh_updates(trace, spec)
    within = inside(updates, begin_s, end_s, spec)
    if len(within) < MIN_IDLE_UPDATES:
        return None
    if coverage(updates, begin_s, end_s, spec) < MIN_IDLE_COVERAGE:
        return None
    return _mean_w(updates, within, begin_s, spec)


def edge_share(
    mean_w: float, idle_w: float | None, window_s: float, spec: MeterSpec, clock_bound_s: float
) -> float:
    """The largest relative error of an integral that wrong window edges can make.

    Each edge may be off by half a refresh, the lag's uncertainty and the clock's bound; over
    that span load and idle are confused. Without an idle figure the whole power counts.
    """
    if mean_w <= 0 or window_s <= 0:
        return 0.0
    edge_s = spec.update_s / 2 + spec.lag_uncertainty_s + clock_bound_s
    return 2 * abs(mean_w - (idle_w or 0.0)) * edge_s / (mean_w * window_s)


def power_drift(
    trace: PowerTrace, begin_s: float, end_s: float, spec: MeterSpec
) -> tuple[float, float] | None:
    """Mean watts of the window's first and last third; None if a third has no update."""
    third_s = (end_s - begin_s) / 3
    updates = fresh_updates(trace, spec)
    parts = []
    for from_s, to_s in ((begin_s, begin_s + third_s), (end_s - third_s, end_s)):
        part_w = _mean_w(updates, inside(updates, from_s, to_s, spec), from_s, spec)
        if part_w is None:
            return None
        parts.append(part_w)
    return parts[0], parts[1]


def update_period_s(updates: Sequence[Update]) -> float | None:
    """The median span between fresh updates; None with fewer than three."""
    spans = [b.t_s - a.t_s for a, b in itertools.pairwise(updates)]
    return median(spans) if len(spans) > 1 else None


def _mean_w(
    updates: Sequence[Update], within: Sequence[Update], begin_s: float, spec: MeterSpec
) -> float | None:
    """Averaging meters: each value weighs the span it averages. Others: trapezoid.

    A span that is a gap weighs one refresh, so that the value after a silence of a minute
    does not count for that minute.
    """
    if not within:
        return None
    limit_s = gap_limit_s(spec)
    if spec.averaging_s > 0:
        before = {b: a.t_s for a, b in itertools.pairwise(updates)}
        spans = [u.t_s - max(before.get(u, begin_s), begin_s) for u in within]
        weights = [span if 0 < span <= limit_s else spec.update_s for span in spans]
        return sum(w * u.power_w for w, u in zip(weights, within, strict=True)) / sum(weights)
    if len(within) == 1:
        return within[0].power_w
    area, length = 0.0, 0.0
    for a, b in itertools.pairwise(within):
        span = b.t_s - a.t_s
        span = span if span <= limit_s else spec.update_s
        area += span * (a.power_w + b.power_w) / 2
        length += span
    return area / length if length > 0 else within[0].power_w


def _integral_j(
    updates: Sequence[Update], begin_s: float, end_s: float, spec: MeterSpec
) -> float | None:
    """The energy by summing up; None unless updates without a gap span the whole window."""
    if not updates or updates[0].t_s > begin_s or updates[-1].t_s < end_s:
        return None
    if gaps(updates, begin_s, end_s, spec):
        return None
    total = 0.0
    for a, b in itertools.pairwise(updates):
        low, high = max(a.t_s, begin_s), min(b.t_s, end_s)
        if high <= low:
            continue
        if spec.averaging_s > 0:
            total += b.power_w * (high - low)
        else:
            slope = (b.power_w - a.power_w) / (b.t_s - a.t_s)
            middle_s = (low + high) / 2
            total += (a.power_w + slope * (middle_s - a.t_s)) * (high - low)
    return total


def _counter_j(trace: PowerTrace, begin_s: float, end_s: float, spec: MeterSpec) -> float | None:
    """The meter's own counter over the window; None if it fell, is absent or too coarse."""
    points: list[tuple[float, float]] = []
    for t_s, wh in zip(trace.t_s, trace.energy_wh, strict=True):
        if isnan(wh):
            return None
        if not points or wh != points[-1][1]:
            points.append((t_s - spec.lag_s, wh))
    steps = [b[1] - a[1] for a, b in itertools.pairwise(points)]
    if not steps or min(steps) < 0 or points[0][0] > begin_s or points[-1][0] < end_s:
        return None
    energy_wh = _at(points, end_s) - _at(points, begin_s)
    return energy_wh * JOULES_PER_WH if energy_wh >= COUNTER_STEPS * min(steps) else None


def _at(points: Sequence[tuple[float, float]], t_s: float) -> float:
    for (t0, v0), (t1, v1) in itertools.pairwise(points):
        if t0 <= t_s <= t1:
            return v0 + (v1 - v0) * (t_s - t0) / (t1 - t0)
    return points[-1][1]


def _uncertainty_w(
    mean_w: float | None,
    idle_w: float | None,
    window_s: float,
    spec: MeterSpec,
    clock_bound_s: float,
) -> float | None:
    """Gain, floor and resolution as rectangular limits, and updates let in by a shifted clock."""
    told = spec.accuracy
    if mean_w is None or not (told.gain_pct or told.floor_w or told.resolution_w):
        return None
    gain = mean_w * told.gain_pct / 100 / sqrt(3)
    floor = told.floor_w / sqrt(3)
    resolution = told.resolution_w / sqrt(12)
    step_w = abs(mean_w - (idle_w or 0.0))
    edge = 2 * step_w * clock_bound_s / window_s / sqrt(3) if window_s > 0 else 0.0
    return sqrt(gain**2 + floor**2 + resolution**2 + edge**2)
