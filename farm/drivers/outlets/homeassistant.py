"""A switch that Home Assistant knows: ``switch.turn_off``, and its state read back.

The inventory's entry is the meter's (`farm/drivers/meters/homeassistant.py`) with
``switch_entity`` in its options. Home Assistant may tell the wish before the device did it: the
state is read back until it is the one asked for, within the deadline.
"""

import asyncio

from farm.drivers.device_outlet import DeviceOutlet
from farm.drivers.homeassistant_http import HomeassistantConnection, HomeassistantOptions
from farm.drivers.meter_dialogue import NoReading, brief
from farm.model.board import MeterSpec
from farm.model.trace import MissKind

LOOKS = 20
"""How often the state is read after switching, at most."""


class HomeassistantOutlet(DeviceOutlet):
    """One switch entity."""

    Options = HomeassistantOptions

    def __init__(self, spec: MeterSpec, options: HomeassistantOptions, secret: str | None) -> None:
        super().__init__(spec)
        self._entity = options.switch_entity
        self._server = HomeassistantConnection(spec, is_tls=options.tls, secret=secret)

    async def _set(self, *, to_on: bool) -> None:
        await self._server.turn(self._named(), to_on=to_on)
        for _ in range(LOOKS):
            if await self._state() is to_on:
                return
            await asyncio.sleep(self._spec.deadline_s / (2 * LOOKS))

    async def _state(self) -> bool:
        state = (await self._server.state(self._named()))["state"]
        if state not in ("on", "off"):
            raise NoReading(MissKind.PROTOCOL, f"{self._entity} is {brief(state)}")
        return state == "on"

    def _named(self) -> str:
        if self._entity is None:
            raise NoReading(MissKind.NO_DATA, "options.switch_entity names no switch")
        return self._entity

    async def _disconnect(self) -> None:
        await self._server.http.close()
