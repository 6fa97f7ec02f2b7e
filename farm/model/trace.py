"""A trace: the samples of one meter in columns.

A pydantic object a reading would cost fifteen times an appended column value, and the loop
that samples also drives the boards.
"""

from array import array
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from enum import StrEnum
from math import nan


class MissKind(StrEnum):
    """Why a poll gave no number."""

    TIMEOUT = "timeout"
    REFUSED = "refused"
    AUTH = "auth"
    PROTOCOL = "protocol"
    NO_DATA = "no_data"
    OUT_OF_RANGE = "out_of_range"


@dataclass(frozen=True, slots=True)
class MeterReading:
    """One answer of a meter. Host monotonic seconds; watts, Wh, volts, amperes; NaN is unknown."""

    sent_s: float
    received_s: float
    power_w: float
    energy_wh: float = nan
    voltage_v: float = nan
    current_a: float = nan
    is_output_on: bool | None = None


@dataclass(frozen=True, slots=True)
class MeterMiss:
    """A poll that gave no number: a gap, never a repeat of the last value."""

    sent_s: float
    kind: MissKind
    text: str = ""


@dataclass(slots=True)
class PowerTrace:
    """Samples of one meter in columns, by time. `t_s` is the middle of request and answer."""

    meter: str
    t_s: "array[float]" = field(default_factory=lambda: array("d"))
    rtt_s: "array[float]" = field(default_factory=lambda: array("d"))
    power_w: "array[float]" = field(default_factory=lambda: array("d"))
    energy_wh: "array[float]" = field(default_factory=lambda: array("d"))
    voltage_v: "array[float]" = field(default_factory=lambda: array("d"))
    current_a: "array[float]" = field(default_factory=lambda: array("d"))
    output_on: "array[int]" = field(default_factory=lambda: array("b"))  # 1, 0, -1 unknown
    misses: list[MeterMiss] = field(default_factory=list)

    def append(self, reading: MeterReading) -> None:
        """Add one reading; readings come in the order of time."""
        self.t_s.append((reading.sent_s + reading.received_s) / 2)
        self.rtt_s.append(reading.received_s - reading.sent_s)
        self.power_w.append(reading.power_w)
        self.energy_wh.append(reading.energy_wh)
        self.voltage_v.append(reading.voltage_v)
        self.current_a.append(reading.current_a)
        self.output_on.append(-1 if reading.is_output_on is None else int(reading.is_output_on))

    def __len__(self) -> int:
        return len(self.t_s)

    def between(self, begin_s: float, end_s: float) -> "PowerTrace":
        """The samples and misses with begin_s <= t <= end_s (host monotonic), copied."""
        low, high = bisect_left(self.t_s, begin_s), bisect_right(self.t_s, end_s)
        return PowerTrace(
            self.meter,
            self.t_s[low:high],
            self.rtt_s[low:high],
            self.power_w[low:high],
            self.energy_wh[low:high],
            self.voltage_v[low:high],
            self.current_a[low:high],
            self.output_on[low:high],
            [miss for miss in self.misses if begin_s <= miss.sent_s <= end_s],
        )

    def followed_by(self, later: "PowerTrace") -> "PowerTrace":
        """This trace and then what `later` has after its end (a host was restarted between)."""
        last_s = self.t_s[-1] if len(self) else float("-inf")
        rest = later.between(last_s + 1e-9, float("inf"))
        return PowerTrace(
            self.meter,
            self.t_s + rest.t_s,
            self.rtt_s + rest.rtt_s,
            self.power_w + rest.power_w,
            self.energy_wh + rest.energy_wh,
            self.voltage_v + rest.voltage_v,
            self.current_a + rest.current_a,
            self.output_on + rest.output_on,
            self.misses + rest.misses,
        )

    def drop_before(self, t_s: float) -> None:
        """Forget samples and misses before `t_s`, so that memory stays flat over a night."""
        low = bisect_left(self.t_s, t_s)
        for column in (
            self.t_s,
            self.rtt_s,
            self.power_w,
            self.energy_wh,
            self.voltage_v,
            self.current_a,
            self.output_on,
        ):
            del column[:low]
        self.misses = [miss for miss in self.misses if miss.sent_s >= t_s]
