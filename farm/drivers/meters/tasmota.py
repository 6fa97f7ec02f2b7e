"""Plugs with Tasmota, over HTTP.

In the inventory::

    meters:
      plug-1:
        kind: tasmota
        host: 192.0.2.11
        secret: env:PLUG_1_PASSWORD     # only if the web interface has a password

``Status 8`` (older: ``Status 10``) gives ``StatusSNS.ENERGY``. Power is in whole watts unless
the device was told ``WattRes 3``; ``Total`` is in kWh and falls back after a power loss; ``Time``
is local time without a zone and is not used. Manual: tasmota.github.io/docs/Power-Monitoring-
Calibration. Tried on protocol servers, not on a real plug yet.
"""

import time
from collections.abc import Callable

from farm.drivers.meter_dialogue import WATT_HOURS, Measured, NoReading, PolledMeter
from farm.drivers.meter_dialogue import optional as maybe
from farm.drivers.meter_dialogue import required as number
from farm.drivers.meter_http import Json, at_path, fields
from farm.drivers.tasmota_http import TasmotaConnection, TasmotaOptions
from farm.interfaces.meter import MeterFacts
from farm.model.board import MeterSpec
from farm.model.trace import MissKind


class TasmotaMeter(PolledMeter):
    """One channel of one plug."""

    Options = TasmotaOptions

    def __init__(
        self,
        spec: MeterSpec,
        options: TasmotaOptions,
        secret: str | None,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(spec, monotonic=monotonic)
        self._options = options
        self._connection = TasmotaConnection(spec, options, secret)

    async def _identify(self) -> MeterFacts:
        told = await self._connection.command("Status 0")
        mac = at_path(told, "StatusNET.Mac")
        if not isinstance(mac, str):
            raise NoReading(MissKind.PROTOCOL, "it answers, but not as Tasmota does")
        name = at_path(told, "Status.DeviceName")
        version = at_path(told, "StatusFWR.Version")
        return MeterFacts(
            model=name[:100] if isinstance(name, str) and name else "Tasmota",
            identity=mac[:40].lower(),
            firmware=version[:100] if isinstance(version, str) else "",
            is_simulated=told.get("simulated") is True,
        )

    async def _measure(self) -> Measured:
        told = await self._connection.command("Status 8")
        energy = fields(at_path(told, "StatusSNS.ENERGY"))
        if not energy:
            raise NoReading(MissKind.NO_DATA, "it measures no energy")
        power = self._one(energy, "Power")
        return Measured(
            number(power, "power"),
            energy_wh=maybe(self._one(energy, "Total"), WATT_HOURS["kWh"]),
            voltage_v=maybe(self._one(energy, "Voltage")),
            current_a=maybe(self._one(energy, "Current")),
        )

    def _one(self, energy: Json, key: str) -> object:
        """A device with several channels gives lists, one with a single channel plain numbers."""
        value = energy.get(key)
        if not isinstance(value, list):
            return value if self._options.channel == 1 or key == "Voltage" else None
        place = self._options.channel - 1
        return value[place] if place < len(value) else None

    async def _disconnect(self) -> None:
        await self._connection.close()
