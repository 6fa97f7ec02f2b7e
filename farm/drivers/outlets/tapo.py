"""The relay of TP-Link's newer plugs; the inventory's entry is the meter's."""

from farm.drivers.device_outlet import DeviceOutlet
from farm.drivers.kasa_session import KasaSession
from farm.drivers.meter_dialogue import NoReading
from farm.drivers.meter_http import at_path
from farm.drivers.tapo_options import TapoOptions
from farm.model.board import MeterSpec
from farm.model.trace import MissKind


class TapoOutlet(DeviceOutlet):
    """One plug."""

    Options = TapoOptions

    def __init__(self, spec: MeterSpec, options: TapoOptions, secret: str | None) -> None:
        super().__init__(spec)
        self._session = KasaSession(spec, options.language, user=options.user, secret=secret)

    async def _set(self, *, to_on: bool) -> None:
        await self._session.ask({"set_device_info": {"device_on": to_on}})

    async def _state(self) -> bool:
        told = await self._session.ask({"get_device_info": None})
        state = at_path(told, "get_device_info.device_on")
        if not isinstance(state, bool):
            raise NoReading(MissKind.PROTOCOL, "it tells no relay state")
        return state

    async def _disconnect(self) -> None:
        await self._session.close()
