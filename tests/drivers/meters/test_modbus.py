"""Modbus meters on pymodbus' own server: the contract, then presets, words and buses."""

import asyncio
import struct
from contextlib import AbstractAsyncContextManager
from math import isnan

import pytest
from pydantic import ValidationError
from pymodbus.constants import ExcCodes
from pymodbus.server import ModbusTcpServer
from pymodbus.simulator import DataType, SimData, SimDevice

from farm.drivers.meters.modbus import ModbusMeter, ModbusOptions
from farm.errors import MeterError
from farm.model.trace import MeterMiss, MeterReading, MissKind
from farm.testing.meter_contract import MeterContract, MeterRig
from tests.servers.meter_device import MeterDevice
from tests.servers.meter_rig import rig_of, spec_of

EnergyKwh, Volts, Amps = 1.5, 230.5, 0.25


class ModbusServer(MeterDevice):
    """Float registers by address; what is not there is an exception response."""

    def __init__(self, *, power_at: int = 0x000C, is_swapped: bool = False) -> None:
        super().__init__()
        self.power_at, self.is_swapped = power_at, is_swapped
        self.volts = Volts
        self.asked: list[int] = []
        self._server: ModbusTcpServer | None = None

    async def listen(self) -> int:
        device = SimDevice(
            id=1,
            simdata=SimData(0, count=1000, values=0, datatype=DataType.REGISTERS),
            action=self._action,
        )
        self._server = ModbusTcpServer(device, address=("127.0.0.1", self.port))
        await self._server.listen()
        transport = self._server.transport
        assert transport is not None
        port: int = transport.sockets[0].getsockname()[1]  # type: ignore[attr-defined]
        return port

    async def stop_listening(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            await server.shutdown()  # type: ignore[no-untyped-call]

    async def _action(  # noqa: PLR0917 - pymodbus calls it so
        self,
        function_code: int,
        start_address: int,
        address: int,
        count: int,
        current_registers: list[int],
        set_values: list[int] | list[bool] | None,
    ) -> ExcCodes | None:
        self.asked.append(address)
        async with self.request():
            if self.fault == "garbage":
                return ExcCodes.ILLEGAL_ADDRESS
            values = {
                self.power_at: self.shown_w,
                0x0000: self.volts,
                0x0006: Amps,
                0x0156: EnergyKwh,
            }
            words = list(struct.unpack(">HH", struct.pack(">f", values.get(address, 0.0))))
            at = address - start_address
            current_registers[at : at + count] = words[::-1] if self.is_swapped else words
            return None


SDM120 = ModbusOptions(preset="sdm120", min_gap_ms=0)


class TestModbus(MeterContract):
    has_login = False

    def open_rig(self) -> AbstractAsyncContextManager[MeterRig]:
        return rig_of(ModbusServer(), lambda spec: ModbusMeter(spec, SDM120, None))


async def one_reading(server: ModbusServer, options: ModbusOptions) -> MeterReading | MeterMiss:
    meter = ModbusMeter(spec_of(server.port), options, None)
    try:
        await meter.open()
        return await meter.read()
    finally:
        await meter.close()


async def test_all_values_of_a_preset() -> None:
    async with ModbusServer() as server:
        got = await one_reading(server, SDM120.model_copy(update={"energy": True}))
    assert isinstance(got, MeterReading)
    assert (got.power_w, got.energy_wh) == (10.0, 1500.0)
    assert (got.voltage_v, got.current_a) == (Volts, Amps)


async def test_a_preset_without_voltage() -> None:
    async with ModbusServer(power_at=0x0034) as server:
        got = await one_reading(server, ModbusOptions(preset="sdm72d", min_gap_ms=1))
        assert set(server.asked) == {0x0034}
    assert isinstance(got, MeterReading)
    assert got.power_w == 10.0
    assert isnan(got.voltage_v)


async def test_an_address_of_ones_own_with_a_form_and_a_scale() -> None:
    async with ModbusServer(power_at=0x0100) as server:
        server.power_w = struct.unpack(">f", struct.pack(">i", 1234))[0]
        options = ModbusOptions(address=0x0100, table="holding", type="int32", scale=0.01)
        got = await one_reading(server, options)
    assert isinstance(got, MeterReading)
    assert got.power_w == pytest.approx(12.34)


async def test_swapped_words_are_noticed_and_can_be_told() -> None:
    async with ModbusServer(is_swapped=True) as server:
        with pytest.raises(MeterError, match="is no mains: is word_order right"):
            await one_reading(server, SDM120)
        got = await one_reading(server, SDM120.model_copy(update={"word_order": "little"}))
    assert isinstance(got, MeterReading)
    assert got.power_w == 10.0


async def test_another_device_number_is_told() -> None:
    async with ModbusServer() as server:
        with pytest.raises(MeterError, match="of device 7"):
            await one_reading(server, ModbusOptions(preset="sdm120", device=7))


async def test_meters_of_one_bus_take_turns() -> None:
    async with ModbusServer() as server:
        meters = [ModbusMeter(spec_of(server.port), SDM120, None) for _ in range(3)]
        for meter in meters:
            await meter.open()
        got = await asyncio.gather(*(meter.read() for meter in meters))
        for meter in meters:
            await meter.close()
    assert all(isinstance(g, MeterReading) for g in got)
    assert server.most_at_once == 1


async def test_an_exception_response_is_a_typed_miss() -> None:
    async with ModbusServer() as server:
        meter = ModbusMeter(spec_of(server.port), SDM120, None)
        await meter.open()
        await server.set_fault("garbage")
        got = await meter.read()
        await meter.close()
    assert isinstance(got, MeterMiss)
    assert got.kind is MissKind.PROTOCOL
    assert "exception 2 for register 12" in got.text


@pytest.mark.parametrize(
    "options",
    [{}, {"preset": "sdm120", "address": 1}, {"address": 1, "energy": True}, {"address": 70000}],
)
def test_options_that_cannot_work_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        ModbusOptions.model_validate(options)
