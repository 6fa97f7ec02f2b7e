"""Whether a meter answers, and whether what it tells moves."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from farm.config.secrets import resolve_secret
from farm.drivers.registry import meter_class
from farm.errors import FarmError, MeterError
from farm.interfaces.clock import Clock
from farm.interfaces.meter import Meter
from farm.model.board import MeterSpec
from farm.model.trace import MeterMiss, MeterReading
from farm.pipeline.lab import Lab

OPEN_LIMIT_S = 20.0
SHORTEST_LOOK_S, LONGEST_LOOK_S = 3.0, 12.0
REFRESHES = 4
"""How many refreshes of a meter must pass before a value that stays the same says something."""
POLL_HZ = 4.0


@dataclass(frozen=True, slots=True)
class MeterLook:
    """What a meter did while it was looked at for `seconds`; `error` when it did not open."""

    meter: str
    seconds: float = 0.0
    readings: tuple[MeterReading, ...] = ()
    misses: tuple[MeterMiss, ...] = ()
    error: FarmError | None = None

    @property
    def has_moved(self) -> bool:
        """Whether any two readings differ in what they tell."""
        return len({(r.power_w, str(r.energy_wh), str(r.current_a)) for r in self.readings}) > 1


async def look_at_meters(
    lab: Lab, specs: Sequence[MeterSpec], clock: Clock
) -> dict[str, MeterLook]:
    """Look at all at once; by meter name. Never raises for what a meter does wrong."""
    looks = await asyncio.gather(*(_look(lab, spec, clock) for spec in specs))
    return {look.meter: look for look in looks}


async def _look(lab: Lab, spec: MeterSpec, clock: Clock) -> MeterLook:
    try:
        kind = meter_class(spec.kind)
        options = lab.document.validate(("meters", spec.name, "options"), kind.Options)
        meter = kind(spec, options, resolve_secret(spec.secret) if spec.secret else None)
        try:
            async with asyncio.timeout(OPEN_LIMIT_S):
                await meter.open()
            return await _watch(meter, spec, clock)
        finally:
            await meter.close()
    except TimeoutError:
        seen = f"no answer in {OPEN_LIMIT_S:.0f} s"
        return MeterLook(spec.name, error=MeterError("open the meter", seen))
    except FarmError as error:
        return MeterLook(spec.name, error=error)


async def _watch(meter: Meter, spec: MeterSpec, clock: Clock) -> MeterLook:
    """Read until it moved, or long enough to say that it does not."""
    begin_s = clock.monotonic()
    wanted_s = REFRESHES * spec.update_s + spec.lag_s
    limit_s = min(LONGEST_LOOK_S, max(SHORTEST_LOOK_S, wanted_s))
    readings: list[MeterReading] = []
    misses: list[MeterMiss] = []
    while True:
        sample = await meter.read()
        if isinstance(sample, MeterReading):
            readings.append(sample)
        else:
            misses.append(sample)
        passed_s = clock.monotonic() - begin_s
        look = MeterLook(spec.name, passed_s, tuple(readings), tuple(misses))
        if passed_s >= limit_s or (look.has_moved and readings[-1].power_w > 0):
            return look
        await clock.sleep(1 / min(POLL_HZ, spec.poll_hz))
