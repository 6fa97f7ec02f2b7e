"""Any power sensor that Home Assistant knows.

In the inventory::

    meters:
      plug-1:
        kind: homeassistant
        host: 192.0.2.20
        secret: env:HOMEASSISTANT_TOKEN     # a long-lived access token of a user
        options: {entity: sensor.plug_1_power, energy_entity: sensor.plug_1_energy}
        update_s: 10

Manual: developers.home-assistant.io/docs/api/rest. The unit is the sensor's own
(``unit_of_measurement``). How old a value is comes from ``last_reported``, which moves also when
the value does not, against the same answer's Date: one clock for both, Home Assistant's.
Tried on protocol servers, not on a real Home Assistant yet.
"""

import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import nan

from farm.drivers.homeassistant_http import HomeassistantConnection, HomeassistantOptions
from farm.drivers.meter_dialogue import (
    WATT_HOURS,
    WATTS,
    Measured,
    NoReading,
    PolledMeter,
    brief,
    required,
)
from farm.drivers.meter_http import Json, at_path
from farm.interfaces.meter import MeterFacts
from farm.model.board import MeterSpec
from farm.model.trace import MissKind


class HomeassistantMeter(PolledMeter):
    """One sensor entity."""

    Options = HomeassistantOptions

    def __init__(
        self,
        spec: MeterSpec,
        options: HomeassistantOptions,
        secret: str | None,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(spec, monotonic=monotonic)
        self._options = options
        self._server = HomeassistantConnection(spec, is_tls=options.tls, secret=secret)

    async def _identify(self) -> MeterFacts:
        told = await self._server.config()
        version = told.get("version")
        if not isinstance(version, str):
            raise NoReading(MissKind.PROTOCOL, "it answers, but not as Home Assistant does")
        return MeterFacts(
            model="Home Assistant sensor",
            identity=f"{self._spec.host}/{self._options.entity}",
            firmware=version[:100],
        )

    async def _measure(self) -> Measured:
        told = await self._server.state(self._options.entity)
        self._check_age(told)
        power = _in_unit(told, WATTS, self._options.entity)
        energy, counter = nan, self._options.energy_entity
        if counter is not None:
            energy = _in_unit(await self._server.state(counter), WATT_HOURS, counter)
        return Measured(power, energy_wh=energy)

    def _check_age(self, told: Json) -> None:
        stamp = told.get("last_reported", told.get("last_updated"))
        if not isinstance(stamp, str) or not self._server.http.date:
            return
        reported = datetime.fromisoformat(stamp)
        now = parsedate_to_datetime(self._server.http.date)
        now = now if now.tzinfo else now.replace(tzinfo=UTC)  # HTTP's Date always is
        if reported.tzinfo is None:
            raise NoReading(MissKind.PROTOCOL, f"a time without a zone: {brief(stamp)}")
        age_s = (now - reported).total_seconds()
        if age_s > self._options.stale_s:
            text = f"{self._options.entity} was not reported for {age_s:.0f} s"
            raise NoReading(MissKind.NO_DATA, text)

    async def _disconnect(self) -> None:
        await self._server.http.close()


def _in_unit(told: Json, units: Mapping[str, float], entity: str) -> float:
    unit = at_path(told, "attributes.unit_of_measurement")
    scale = units.get(unit) if isinstance(unit, str) else None
    if scale is None:
        text = f"{entity} is in {brief(unit)}, not in one of {', '.join(units)}"
        raise NoReading(MissKind.NO_DATA, text)
    return required(told["state"], entity, scale)
