"""The Shelly driver: the contract for meters, then what is Shelly's own."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from math import isnan
from typing import Literal

import pytest

from farm.drivers.meters.shelly import ShellyMeter
from farm.drivers.outlets.shelly import ShellyOutlet
from farm.drivers.shelly_http import AUTH_BACKOFF_S, ShellyOptions
from farm.errors import MeterError
from farm.model.board import MeterSpec
from farm.model.trace import MeterMiss, MeterReading, MissKind
from farm.testing.meter_contract import Fault, MeterContract, MeterRig
from tests.servers.shelly import MAC, ShellyServer

Component = Literal["pm1", "em1"]
PASSWORD = "not-a-secret"


def meter_spec(port: int, *, deadline_s: float = 5.0, min_w: float = 0.0) -> MeterSpec:
    return MeterSpec(
        name="plug",
        kind="shelly",
        host="127.0.0.1",
        port=port,
        deadline_s=deadline_s,
        min_w=min_w,
    )


class ShellyRig:
    def __init__(self, server: ShellyServer) -> None:
        self.server = server

    def meter(self, deadline_s: float) -> ShellyMeter:
        spec = meter_spec(self.server.port, deadline_s=deadline_s)
        return ShellyMeter(spec, ShellyOptions(), self.server.password)

    async def set_fault(self, fault: Fault) -> None:
        await self.server.set_fault(fault)

    def set_power(self, power_w: float) -> None:
        self.server.set_power(power_w)

    @property
    def requests(self) -> int:
        return self.server.requests

    @property
    def most_at_once(self) -> int:
        return self.server.most_at_once


@asynccontextmanager
async def rig(server: ShellyServer) -> AsyncIterator[MeterRig]:
    async with server:
        yield ShellyRig(server)


class TestGen2(MeterContract):
    def open_rig(self) -> AbstractAsyncContextManager[MeterRig]:
        return rig(ShellyServer())


class TestGen2WithPassword(MeterContract):
    def open_rig(self) -> AbstractAsyncContextManager[MeterRig]:
        return rig(ShellyServer(password=PASSWORD))


class TestGen1WithPassword(MeterContract):
    def open_rig(self) -> AbstractAsyncContextManager[MeterRig]:
        return rig(ShellyServer(generation=1, password=PASSWORD))


async def opened(server: ShellyServer, options: ShellyOptions | None = None) -> ShellyMeter:
    spec = meter_spec(server.port)
    meter = ShellyMeter(spec, options or ShellyOptions(), server.password)
    await meter.open()
    return meter


async def test_gen2_facts_and_all_values() -> None:
    async with ShellyServer(is_simulated=True, power_w=23.0) as server:
        meter = ShellyMeter(meter_spec(server.port), ShellyOptions(), None)
        facts = await meter.open()
        reading = await meter.read()
        await meter.close()
    assert (facts.model, facts.identity) == ("SNPL-00112EU", MAC.lower())
    assert (facts.firmware, facts.is_simulated) == ("1.4.4", True)
    assert isinstance(reading, MeterReading)
    assert (reading.power_w, reading.energy_wh, reading.voltage_v) == (23.0, 100.0, 230.0)
    assert reading.current_a == pytest.approx(0.1)
    assert reading.is_output_on is True


async def test_gen1_counter_is_in_watt_minutes() -> None:
    async with ShellyServer(generation=1, energy_wh=7.5) as server:
        meter = ShellyMeter(meter_spec(server.port), ShellyOptions(), None)
        facts = await meter.open()
        reading = await meter.read()
        await meter.close()
    assert (facts.model, facts.firmware, facts.is_simulated) == ("SHPLG-S", "v1.11.0", False)
    assert isinstance(reading, MeterReading)
    assert reading.energy_wh == pytest.approx(7.5)
    assert isnan(reading.voltage_v)


async def test_gen1_emeter_counts_in_watt_hours() -> None:
    async with ShellyServer(generation=1, component="em1", energy_wh=7.5) as server:
        meter = await opened(server, ShellyOptions(component="em1"))
        reading = await meter.read()
        await meter.close()
    assert isinstance(reading, MeterReading)
    assert (reading.energy_wh, reading.voltage_v) == (7.5, 230.0)


@pytest.mark.parametrize("component", ["pm1", "em1"])
async def test_gen2_metering_only_components_have_no_output(component: Component) -> None:
    async with ShellyServer(component=component, power_w=31.0) as server:
        meter = await opened(server, ShellyOptions(component=component))
        reading = await meter.read()
        await meter.close()
    assert isinstance(reading, MeterReading)
    assert (reading.power_w, reading.is_output_on) == (31.0, None)
    assert isnan(reading.energy_wh) == (component == "em1")


@pytest.mark.parametrize(
    ("server", "options", "present"),
    [
        (ShellyServer(component="pm1"), ShellyOptions(), "pm1:0"),
        (ShellyServer(), ShellyOptions(id=1), "switch:0"),
        (ShellyServer(generation=1), ShellyOptions(component="em1"), "meters[0]"),
        (ShellyServer(generation=1), ShellyOptions(id=2), "meters[0]"),
    ],
)
async def test_a_missing_component_names_those_present(
    server: ShellyServer, options: ShellyOptions, present: str
) -> None:
    async with server:
        with pytest.raises(MeterError, match="there is no") as caught:
            await opened(server, options)
    assert f"the device has {present}" in str(caught.value)
    assert "options" in caught.value.remedy


async def test_a_relay_that_is_off_is_not_zero_watts_with_output_on() -> None:
    async with ShellyServer(power_w=0.0, is_on=False) as server:
        meter = ShellyMeter(meter_spec(server.port, min_w=1.0), ShellyOptions(), None)
        await meter.open()
        off = await meter.read()
        server.is_on = True
        on = await meter.read()
        await meter.close()
    assert isinstance(off, MeterReading)
    assert (off.power_w, off.is_output_on) == (0.0, False)
    assert isinstance(on, MeterMiss)
    assert on.kind is MissKind.OUT_OF_RANGE


async def test_gen1_reading_that_is_not_valid_yet_is_no_data() -> None:
    async with ShellyServer(generation=1) as server:
        meter = await opened(server)
        server.is_valid = False
        got = await meter.read()
        await meter.close()
    assert isinstance(got, MeterMiss)
    assert got.kind is MissKind.NO_DATA


@pytest.mark.parametrize("generation", [1, 2])
@pytest.mark.parametrize("secret", [None, "wrong"])
async def test_a_wrong_password_is_named_at_open(generation: int, secret: str | None) -> None:
    async with ShellyServer(generation=generation, password=PASSWORD) as server:
        meter = ShellyMeter(meter_spec(server.port), ShellyOptions(), secret)
        with pytest.raises(MeterError, match="password") as caught:
            await meter.open()
    assert PASSWORD not in str(caught.value)
    assert "wrong" not in str(caught.value)


async def test_after_a_refused_login_it_asks_again_when_the_pause_is_over() -> None:
    now_s = 1000.0
    async with ShellyServer(password=PASSWORD) as server:
        spec = meter_spec(server.port)
        meter = ShellyMeter(spec, ShellyOptions(), PASSWORD, monotonic=lambda: now_s)
        await meter.open()
        await server.set_fault("unauthorized")
        assert isinstance(await meter.read(), MeterMiss)
        await server.set_fault("none")
        now_s += AUTH_BACKOFF_S[0] - 1
        early = await meter.read()
        now_s += 2
        late = await meter.read()
        await meter.close()
    assert isinstance(early, MeterMiss)
    assert early.kind is MissKind.AUTH
    assert isinstance(late, MeterReading)


async def test_another_web_server_is_not_a_shelly() -> None:
    async with ShellyServer() as server:
        server.who = {"hello": "world"}
        meter = ShellyMeter(meter_spec(server.port), ShellyOptions(), None)
        with pytest.raises(MeterError, match="not as a Shelly"):
            await meter.open()


async def test_an_endless_answer_is_cut() -> None:
    async with ShellyServer() as server:
        meter = await opened(server)
        server.filler = "x" * 200_000
        got = await meter.read()
        await meter.close()
    assert isinstance(got, MeterMiss)
    assert got.kind is MissKind.PROTOCOL
    assert "65536" in got.text


@pytest.mark.parametrize("generation", [1, 2])
async def test_one_connection_is_kept(generation: int) -> None:
    async with ShellyServer(generation=generation, password=PASSWORD) as server:
        meter = await opened(server)
        before = server.requests
        for _ in range(10):
            assert isinstance(await meter.read(), MeterReading)
        await meter.close()
    assert server.requests - before == 10  # no login dance for each reading


@pytest.mark.parametrize("generation", [1, 2])
async def test_the_outlet_switches_and_reads_back(generation: int) -> None:
    async with ShellyServer(generation=generation, password=PASSWORD) as server:
        outlet = ShellyOutlet(meter_spec(server.port), ShellyOptions(), PASSWORD)
        assert await outlet.is_on() is True
        assert await outlet.switch(to_on=False) is False
        assert server.is_on is False
        assert await outlet.switch(to_on=True) is True


async def test_a_device_without_a_relay_is_no_outlet() -> None:
    async with ShellyServer(component="pm1") as server:
        outlet = ShellyOutlet(meter_spec(server.port), ShellyOptions(), None)
        with pytest.raises(MeterError):
            await outlet.switch(to_on=True)
