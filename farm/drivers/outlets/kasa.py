"""The relay of TP-Link's older plugs and strips; the inventory's entry is the meter's."""

from farm.drivers.device_outlet import DeviceOutlet
from farm.drivers.kasa_plug import KasaPlug
from farm.drivers.meter_dialogue import NoReading, brief
from farm.drivers.tapo_options import KasaOptions
from farm.model.board import MeterSpec
from farm.model.trace import MissKind


class KasaOutlet(DeviceOutlet):
    """One outlet."""

    Options = KasaOptions

    def __init__(self, spec: MeterSpec, options: KasaOptions, secret: str | None) -> None:
        super().__init__(spec)
        self._plug = KasaPlug(spec, options, secret)

    async def _set(self, *, to_on: bool) -> None:
        await self._plug.ask("system", "set_relay_state", {"state": int(to_on)})

    async def _state(self) -> bool:
        told = await self._plug.outlet()
        state = told.get("relay_state", told.get("state"))  # a plug's, an outlet's of a strip
        if state not in (0, 1):
            raise NoReading(MissKind.PROTOCOL, f"it tells no relay state: {brief(state)}")
        return state == 1

    async def _disconnect(self) -> None:
        await self._plug.close()
