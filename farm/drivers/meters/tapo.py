"""TP-Link's newer plugs with metering: Tapo P110, P110M, P115, Kasa KP125M and EP25 v2.

In the inventory::

    meters:
      plug-7:
        kind: tapo
        host: 192.0.2.13
        secret: env:TPLINK_PASSWORD          # the account's
        options: {user: you@example.org}

Needs ``pip install 'jetfarm[kasa]'`` and "third-party compatibility" in the app. Milliwatts come
from ``get_emeter_data`` where the plug has it, else from ``get_energy_usage``; whole watts of
``get_current_power`` are not used. Tried on a protocol server, not on a real plug yet.
"""

import time
from collections.abc import Callable

from farm.drivers.kasa_session import KasaSession
from farm.drivers.meter_dialogue import WATTS, Measured, NoReading, PolledMeter, optional, required
from farm.drivers.meter_http import at_path, fields
from farm.drivers.tapo_options import TapoOptions
from farm.interfaces.meter import MeterFacts
from farm.model.board import MeterSpec
from farm.model.trace import MissKind


class TapoMeter(PolledMeter):
    """One plug."""

    Options = TapoOptions

    def __init__(
        self,
        spec: MeterSpec,
        options: TapoOptions,
        secret: str | None,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(spec, monotonic=monotonic)
        self._session = KasaSession(spec, options.language, user=options.user, secret=secret)
        self._has_emeter = True

    async def _identify(self) -> MeterFacts:
        told = fields((await self._session.ask({"get_device_info": None})).get("get_device_info"))
        mac, model = told.get("mac"), told.get("model")
        if not isinstance(mac, str) or not isinstance(model, str):
            raise NoReading(MissKind.PROTOCOL, "it answers, but not as a Tapo does")
        firmware = told.get("fw_ver")
        return MeterFacts(
            model[:100],
            mac[:40].lower().replace("-", ":"),
            firmware[:100] if isinstance(firmware, str) else "",
        )

    async def _measure(self) -> Measured:
        if self._has_emeter:
            try:
                told = await self._session.ask({"get_emeter_data": None})
            except NoReading as miss:
                if miss.kind is not MissKind.PROTOCOL or "UNKNOWN_METHOD" not in miss.text:
                    raise
                self._has_emeter = False  # older ones only have the other question
            else:
                data = told.get("get_emeter_data")
                return Measured(
                    required(at_path(data, "power_mw"), "power_mw", WATTS["mW"]),
                    voltage_v=optional(at_path(data, "voltage_mv"), 1e-3),
                    current_a=optional(at_path(data, "current_ma"), 1e-3),
                )
        told = await self._session.ask({"get_energy_usage": None})
        power = at_path(told, "get_energy_usage.current_power")
        return Measured(required(power, "current_power", WATTS["mW"]))

    async def _disconnect(self) -> None:
        await self._session.close()
