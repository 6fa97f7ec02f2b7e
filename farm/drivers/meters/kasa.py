"""TP-Link's older plugs and strips with metering: HS110, KP115, KP125, EP25, HS300.

In the inventory::

    meters:
      plug-6: {kind: kasa, host: 192.0.2.12}
      strip-2: {kind: kasa, host: 192.0.2.14, options: {child: 1}}

Needs ``pip install 'jetfarm[kasa]'``. HS110's first version tells V, A, W and kWh, later ones mV,
mA, mW and Wh. Tried on a protocol server, not on a real plug yet.
"""

import time
from collections.abc import Callable

from farm.drivers.kasa_plug import KasaPlug
from farm.drivers.meter_dialogue import (
    WATT_HOURS,
    WATTS,
    Measured,
    NoReading,
    PolledMeter,
    optional,
    required,
)
from farm.drivers.tapo_options import KasaOptions
from farm.interfaces.meter import MeterFacts
from farm.model.board import MeterSpec
from farm.model.trace import MissKind


class KasaMeter(PolledMeter):
    """One outlet."""

    Options = KasaOptions

    def __init__(
        self,
        spec: MeterSpec,
        options: KasaOptions,
        secret: str | None,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(spec, monotonic=monotonic)
        self._plug = KasaPlug(spec, options, secret)

    async def _identify(self) -> MeterFacts:
        told = await self._plug.sysinfo()
        model, identity = told.get("model"), told.get("mac", told.get("mic_mac"))
        if not isinstance(model, str) or not isinstance(identity, str):
            raise NoReading(MissKind.PROTOCOL, "it answers, but not as a Kasa plug does")
        firmware = told.get("sw_ver")
        return MeterFacts(
            model[:100],
            identity[:40].lower(),
            firmware[:100] if isinstance(firmware, str) else "",
        )

    async def _measure(self) -> Measured:
        told = await self._plug.ask("emeter", "get_realtime", {})
        if "power" in told:  # HS110 version 1
            return Measured(
                required(told["power"], "power"),
                energy_wh=optional(told.get("total"), WATT_HOURS["kWh"]),
                voltage_v=optional(told.get("voltage")),
                current_a=optional(told.get("current")),
            )
        return Measured(
            required(told.get("power_mw"), "power_mw", WATTS["mW"]),
            energy_wh=optional(told.get("total_wh")),
            voltage_v=optional(told.get("voltage_mv"), 1e-3),
            current_a=optional(told.get("current_ma"), 1e-3),
        )

    async def _disconnect(self) -> None:
        await self._plug.close()
