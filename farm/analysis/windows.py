"""From polled samples to what the meter really said: fresh updates, gaps, coverage.

A meter is polled faster than its value refreshes, so most polls repeat the last value. Only a
poll at which anything changed (power, counter, voltage, current) proves a refresh; an unchanged
steady value counts when another of the fields moved. docs/energy.md, "Fresh updates".
All times are host monotonic seconds, corrected for the meter's lag.
"""

import itertools
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan

from farm.model.board import MeterSpec
from farm.model.trace import PowerTrace


@dataclass(frozen=True, slots=True)
class Update:
    """A refresh of the meter: `power_w` holds for what lies before `t_s`."""

    t_s: float
    power_w: float


@dataclass(frozen=True, slots=True)
class Gap:
    """A span without a fresh update, longer than `gap_limit_s`."""

    begin_s: float
    end_s: float

    @property
    def length_s(self) -> float:
        """Seconds."""
        return self.end_s - self.begin_s


def fresh_updates(trace: PowerTrace, spec: MeterSpec) -> tuple[Update, ...]:
    """The polls that differ from the one before, stamped `lag_s` earlier.

    The first poll is no update: how long its value had been held is unknown.
    """
    columns = (trace.power_w, trace.energy_wh, trace.voltage_v, trace.current_a)
    return tuple(
        Update(trace.t_s[k] - spec.lag_s, trace.power_w[k])
        for k in range(1, len(trace))
        if any(_has_changed(column, k) for column in columns)
    )


def inside(
    updates: Sequence[Update], begin_s: float, end_s: float, spec: MeterSpec
) -> tuple[Update, ...]:
    """The updates whose whole averaging interval lies in the window."""
    return tuple(u for u in updates if u.t_s - spec.averaging_s >= begin_s and u.t_s <= end_s)


def gap_limit_s(spec: MeterSpec) -> float:
    """Longer spans between fresh updates are gaps: three refreshes, at least 5 s."""
    return max(3 * spec.update_s, 5.0)


def gaps(
    updates: Sequence[Update], begin_s: float, end_s: float, spec: MeterSpec
) -> tuple[Gap, ...]:
    """The gaps that touch the window, cut to it.

    Where no update lies before (after) the window, the span counts from (to) its edge.
    """
    limit_s = gap_limit_s(spec)
    times = [u.t_s for u in updates]
    if not times or times[0] > begin_s:
        times.insert(0, begin_s)
    if times[-1] < end_s:
        times.append(end_s)
    found = []
    for earlier, later in itertools.pairwise(times):
        cut = Gap(max(earlier, begin_s), min(later, end_s))
        if later - earlier > limit_s and cut.length_s > 0:
            found.append(cut)
    return tuple(found)


def coverage(updates: Sequence[Update], begin_s: float, end_s: float, spec: MeterSpec) -> float:
    """The share of the window, 0..1, that is not in a gap."""
    length_s = end_s - begin_s
    if length_s <= 0:
        return 0.0
    lost_s = sum(gap.length_s for gap in gaps(updates, begin_s, end_s, spec))
    return max(0.0, 1.0 - lost_s / length_s)


def longest_stale_s(trace: PowerTrace, begin_s: float, end_s: float) -> float:
    """The longest span in the window over which polls were answered and nothing changed."""
    part = trace.between(begin_s, end_s)
    columns = (part.power_w, part.energy_wh, part.voltage_v, part.current_a)
    longest_s, since_s = 0.0, part.t_s[0] if len(part) else 0.0
    for k in range(1, len(part)):
        if any(_has_changed(column, k) for column in columns):
            since_s = part.t_s[k]
        longest_s = max(longest_s, part.t_s[k] - since_s)
    return longest_s


def margin_s(spec: MeterSpec) -> float:
    """How far a trace must reach beyond both ends of a window, in seconds.

    Five seconds suit a meter of which nothing is known. One whose refresh, lag and averaging
    are known needs five refreshes and those two: enough to see that it was alive on both
    sides and to have the updates that belong to the window's last seconds.
    """
    return min(5.0, 5 * spec.update_s + spec.lag_s + spec.averaging_s)


def _has_changed(column: "array[float]", k: int) -> bool:
    now, before = column[k], column[k - 1]
    return now != before and not (isnan(now) and isnan(before))
