"""The relay of a plug with Tasmota, over HTTP: ``Power1 ON``, and ``Power1`` to read it back.

The inventory's entry is the meter's (`farm/drivers/meters/tasmota.py`).
"""

from farm.drivers.device_outlet import DeviceOutlet
from farm.drivers.meter_dialogue import NoReading, brief
from farm.drivers.tasmota_http import TasmotaConnection, TasmotaOptions
from farm.model.board import MeterSpec
from farm.model.trace import MissKind


class TasmotaOutlet(DeviceOutlet):
    """One relay."""

    Options = TasmotaOptions

    def __init__(self, spec: MeterSpec, options: TasmotaOptions, secret: str | None) -> None:
        super().__init__(spec)
        self._channel = options.channel
        self._connection = TasmotaConnection(spec, options, secret)

    async def _set(self, *, to_on: bool) -> None:
        await self._connection.command(f"Power{self._channel} {'ON' if to_on else 'OFF'}")

    async def _state(self) -> bool:
        told = await self._connection.command(f"Power{self._channel}")
        # A device with one relay calls it POWER, whatever number it was asked by.
        single = told.get("POWER") if self._channel == 1 else None
        state = told.get(f"POWER{self._channel}", single)
        if state not in ("ON", "OFF"):
            raise NoReading(MissKind.PROTOCOL, f"it tells no relay state: {brief(told)}")
        return state == "ON"

    async def _disconnect(self) -> None:
        await self._connection.close()
