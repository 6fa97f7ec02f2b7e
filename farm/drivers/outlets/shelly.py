"""The relay of a Shelly plug, Gen1 and Gen2 and later, as a switchable outlet.

In the inventory it is the meter's entry with another use::

    plug-1:
      kind: shelly
      host: 192.0.2.10
      options: {id: 0}

Gen2+: ``Switch.Set`` and ``Switch.GetStatus``; Gen1: ``/relay/N?turn=on``. PM1 and EM1 devices
have no relay. The state is always read back. Tried on protocol servers, not on a real plug yet.
"""

from farm.drivers.shelly_http import Json, ShellyConnection, ShellyMiss, ShellyOptions
from farm.errors import MeterError
from farm.interfaces.outlet import Outlet
from farm.model.board import MeterSpec


class ShellyOutlet(Outlet):
    """One relay. The connection is opened when it is first used and closed after each use."""

    Options = ShellyOptions

    def __init__(self, spec: MeterSpec, options: ShellyOptions, secret: str | None) -> None:
        self._spec, self._options, self._secret = spec, options, secret

    async def is_on(self) -> bool:
        """Read the relay's state. Raises MeterError."""
        return await self._use(to_on=None)

    async def switch(self, *, to_on: bool) -> bool:
        """Switch, read back, return what was read. Raises MeterError."""
        return await self._use(to_on=to_on)

    async def _use(self, *, to_on: bool | None) -> bool:
        connection = ShellyConnection(self._spec, self._options, self._secret)
        await connection.open()
        try:
            if to_on is not None:
                await self._switch(connection, to_on=to_on)
            return await self._state(connection)
        except ShellyMiss as miss:
            raise connection.error("switch outlet", miss) from miss
        finally:
            await connection.close()

    async def _switch(self, connection: ShellyConnection, *, to_on: bool) -> None:
        number = str(self._options.id)
        if connection.generation == 1:
            await connection.ask(f"/relay/{number}", {"turn": "on" if to_on else "off"})
        else:
            query = {"id": number, "on": "true" if to_on else "false"}
            await connection.ask("/rpc/Switch.Set", query)

    async def _state(self, connection: ShellyConnection) -> bool:
        number = self._options.id
        if connection.generation == 1:
            answer: Json = await connection.ask(f"/relay/{number}")
            state = answer.get("ison")
        else:
            answer = await connection.ask("/rpc/Switch.GetStatus", {"id": str(number)})
            state = answer.get("output")
        if not isinstance(state, bool):
            raise MeterError("read outlet", f"{self._spec.name} tells no relay state")
        return state
