"""Meters in simulated time: a true power curve, a meter that averages, holds and lags, polls."""

from collections.abc import Callable
from dataclasses import dataclass
from math import floor, nan

from farm.model.board import MeterAccuracy, MeterSpec
from farm.model.trace import MeterReading, PowerTrace

Curve = Callable[[float], float]


def spec(
    *,
    update_s: float = 1.0,
    averaging_s: float = 0.0,
    lag_s: float = 0.0,
    poll_hz: float = 2.0,
    min_w: float = 0.0,
    accuracy: MeterAccuracy | None = None,
) -> MeterSpec:
    return MeterSpec(
        name="plug",
        kind="shelly",
        update_s=update_s,
        averaging_s=averaging_s,
        lag_s=lag_s,
        poll_hz=poll_hz,
        min_w=min_w,
        accuracy=accuracy or MeterAccuracy(),
    )


@dataclass(frozen=True)
class SimulatedMeter:
    """Refreshes at phase + k * update_s, tells each value `lag_s` later; counter in Wh."""

    meter: MeterSpec
    power: Curve
    phase_s: float = 0.13
    has_counter: bool = True
    resolution_w: float = 0.0
    is_on: bool | None = True

    def value_w(self, refresh_s: float) -> float:
        value = self.power(refresh_s)
        if self.meter.averaging_s > 0:
            steps = 50
            width = self.meter.averaging_s / steps
            begin = refresh_s - self.meter.averaging_s
            value = sum(self.power(begin + (k + 0.5) * width) for k in range(steps)) / steps
        if self.resolution_w:
            value = round(value / self.resolution_w) * self.resolution_w
        return value

    def poll(
        self, begin_s: float, end_s: float, *, gaps: tuple[tuple[float, float], ...] = ()
    ) -> PowerTrace:
        """The trace of polls at `poll_hz`, none inside `gaps`."""
        trace = PowerTrace(self.meter.name)
        counter, counted = 0.0, floor((begin_s - self.phase_s) / self.meter.update_s) - 1
        k = 0
        while (t_s := begin_s + k / self.meter.poll_hz) <= end_s:
            k += 1
            shown = floor((t_s - self.meter.lag_s - self.phase_s) / self.meter.update_s)
            refresh_s = self.phase_s + shown * self.meter.update_s
            while counted < shown:
                counted += 1
                at_s = self.phase_s + (counted - 0.5) * self.meter.update_s
                counter += self.power(at_s) * self.meter.update_s / 3600
            if any(low <= t_s <= high for low, high in gaps):
                continue
            trace.append(
                MeterReading(
                    sent_s=t_s - 0.001,
                    received_s=t_s + 0.001,
                    power_w=self.value_w(refresh_s),
                    energy_wh=counter if self.has_counter else nan,
                    is_output_on=self.is_on,
                )
            )
        return trace


def constant(power_w: float) -> Curve:
    return lambda _t: power_w


def ramp(at_zero_w: float, per_s: float) -> Curve:
    return lambda t: at_zero_w + per_s * t


def pulse(idle_w: float, load_w: float, begin_s: float, end_s: float) -> Curve:
    return lambda t: load_w if begin_s <= t < end_s else idle_w
