"""Meters on Modbus TCP, or behind a gateway: Eastron SDM and what has a register for power.

In the inventory::

    meters:
      rail-meter-3:
        kind: modbus
        host: 192.0.2.60
        options: {preset: sdm120, device: 3}
      odd-one:
        kind: modbus
        host: 192.0.2.61
        options: {address: 0x0034, table: holding, scale: 0.1, type: int32}

Needs ``pip install 'jetfarm[modbus]'``. Meters behind one gateway (same host and port) take turns
with a pause between, as their bus needs. Addresses count from zero. Tried on pymodbus' server,
not on a real meter yet.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from math import nan
from typing import Literal, Self, get_args
from weakref import WeakValueDictionary

from pydantic import Field, model_validator
from pymodbus import FramerType, ModbusException
from pymodbus.client import AsyncModbusTcpClient

from farm.drivers.meter_dialogue import WATT_HOURS, Measured, NoReading, PolledMeter, brief
from farm.interfaces.meter import MeterFacts
from farm.model.board import MeterSpec
from farm.model.record import Record
from farm.model.trace import MissKind

# It dumps frames at each fault; a miss tells it better.
logging.getLogger("pymodbus.logging").setLevel(logging.CRITICAL)

MAINS_V = (80.0, 280.0)
"""What a mains voltage may be; anything else tells that the words are the wrong way round."""


@dataclass(frozen=True, slots=True)
class _Preset:
    """Registers of float32, high word first, function 4; the maker's "Modbus protocol" papers."""

    power: int
    energy: int
    voltage: int | None = 0x0000
    current: int | None = 0x0006
    min_gap_ms: int = 20


_PRESETS = {
    "sdm120": _Preset(power=0x000C, energy=0x0156),
    "sdm230": _Preset(power=0x000C, energy=0x0156),
    # Three phases: the system's total power; volts of phase 1.
    "sdm630": _Preset(power=0x0034, energy=0x0156, current=0x0030),
    # Reboots when it is asked faster (reaper7/SDM_Energy_Meter#50).
    "sdm72d": _Preset(power=0x0034, energy=0x0048, voltage=None, current=None, min_gap_ms=500),
}

Type = Literal["float32", "int16", "uint16", "int32", "uint32"]
_TYPES = {name: AsyncModbusTcpClient.DATATYPE[name.upper()] for name in get_args(Type)}


class ModbusOptions(Record):
    """A preset, or the register of the power with its form; `scale` makes it watts."""

    preset: Literal["sdm120", "sdm230", "sdm630", "sdm72d"] | None = None
    address: int | None = Field(default=None, ge=0, le=0xFFFF)
    table: Literal["input", "holding"] = "input"
    type: Type = "float32"
    scale: float = Field(default=1.0, gt=0)
    word_order: Literal["big", "little"] = "big"
    device: int = Field(default=1, ge=0, le=255)
    framing: Literal["tcp", "rtu-over-tcp"] = "tcp"
    min_gap_ms: int | None = Field(default=None, ge=0, le=5000)
    energy: bool = False

    @model_validator(mode="after")
    def _has_one_source(self) -> Self:
        if (self.preset is None) == (self.address is None):
            raise ValueError('either "preset" or "address"')
        if self.address is not None and self.energy:
            raise ValueError('"energy" is for presets')
        return self


class _Bus:
    """What meters behind one server share; gone with the last of them."""

    def __init__(self) -> None:
        self.turn = asyncio.Lock()
        self.last_s = 0.0


_buses: WeakValueDictionary[tuple[str, int], _Bus] = WeakValueDictionary()


class ModbusMeter(PolledMeter):
    """One meter of one bus."""

    Options = ModbusOptions

    def __init__(
        self,
        spec: MeterSpec,
        options: ModbusOptions,
        secret: str | None,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(spec, monotonic=monotonic)
        del secret  # Modbus has no login
        self._options = options
        self._preset = _PRESETS.get(options.preset or "")
        usual = self._preset.min_gap_ms if self._preset else 0
        gap_ms = usual if options.min_gap_ms is None else options.min_gap_ms
        self._gap_s = gap_ms / 1000
        self._server = (spec.host or "", spec.port or 502)
        self._bus = _buses.setdefault(self._server, _Bus())
        self._client: AsyncModbusTcpClient | None = None
        self._lost = asyncio.Event()

    async def _identify(self) -> MeterFacts:
        host, port = self._server
        model = self._options.preset or f"register {self._options.address}"
        return MeterFacts(f"Modbus {model}", f"{host}:{port}/{self._options.device}")

    async def _measure(self) -> Measured:
        preset = self._preset
        if preset is None:
            value = await self._number(self._options.address or 0)
            return Measured(value * self._options.scale)
        power = await self._number(preset.power)
        energy = await self._number(preset.energy) if self._options.energy else nan
        volts = nan if preset.voltage is None else await self._number(preset.voltage)
        amps = nan if preset.current is None else await self._number(preset.current)
        if preset.voltage is not None and not MAINS_V[0] <= volts <= MAINS_V[1]:
            text = f"{volts:g} V is no mains: is word_order right?"
            raise NoReading(MissKind.PROTOCOL, text)
        return Measured(power, energy * WATT_HOURS["kWh"], volts, amps)

    async def _number(self, register: int) -> float:
        kind = _TYPES[self._options.type]
        async with self._bus.turn:
            await asyncio.sleep(max(0.0, self._bus.last_s + self._gap_s - time.monotonic()))
            try:
                registers = await self._registers(register, kind.value[1])
            except ModbusException as error:  # a late answer must not be the next one's
                raise NoReading(MissKind.REFUSED, brief(error)) from error
            finally:
                self._bus.last_s = time.monotonic()
        value = AsyncModbusTcpClient.convert_from_registers(
            registers, kind, word_order=self._options.word_order
        )
        if not isinstance(value, int | float):
            raise NoReading(MissKind.PROTOCOL, f"no number in register {register}")
        return float(value)

    async def _registers(self, register: int, count: int) -> list[int]:
        if self._client is not None and not self._client.connected:
            await self._disconnect()  # it would wait for a connection that nobody makes
        client = self._client or await self._connect()
        is_input = self._options.table == "input"
        read = client.read_input_registers if is_input else client.read_holding_registers
        asked = asyncio.ensure_future(read(register, count=count, device_id=self._options.device))
        lost = asyncio.ensure_future(self._lost.wait())
        try:
            await asyncio.wait((asked, lost), return_when=asyncio.FIRST_COMPLETED)
            if not asked.done():  # the library would wait for the answer all the same
                raise ConnectionError("the connection was cut")
            answer = asked.result()
        finally:
            asked.cancel()
            lost.cancel()
        if answer.isError():
            code = getattr(answer, "exception_code", "?")
            text = f"exception {code} for register {register} of device {self._options.device}"
            raise NoReading(MissKind.PROTOCOL, text)
        if len(answer.registers) != count:
            raise NoReading(MissKind.PROTOCOL, f"{len(answer.registers)} registers, not {count}")
        return list(answer.registers)

    async def _connect(self) -> AsyncModbusTcpClient:
        is_tcp = self._options.framing == "tcp"
        host, port = self._server
        self._client = AsyncModbusTcpClient(
            host,
            port=port,
            framer=FramerType.SOCKET if is_tcp else FramerType.RTU,
            timeout=2 * self._spec.deadline_s,  # ours comes first
            retries=0,
            reconnect_delay=0,  # reconnecting is ours, too
            trace_connect=lambda is_there: None if is_there else self._lost.set(),
        )
        self._lost.clear()
        if not await self._client.connect():
            raise NoReading(MissKind.REFUSED, "the connection is refused")
        return self._client

    async def _disconnect(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()
