"""Tasmota over HTTP: the contract, then what is Tasmota's own."""

from contextlib import AbstractAsyncContextManager

import pytest
from aiohttp import web

from farm.drivers.meters.tasmota import TasmotaMeter
from farm.drivers.outlets.tasmota import TasmotaOutlet
from farm.drivers.tasmota_http import TasmotaOptions
from farm.errors import MeterError
from farm.model.trace import MeterMiss, MeterReading, MissKind
from farm.testing.meter_contract import MeterContract, MeterRig
from tests.servers.meter_http import MeterHttpServer, json_of
from tests.servers.meter_rig import rig_of, spec_of

PASSWORD = "not-a-secret"


class TasmotaServer(MeterHttpServer):
    """Without the password it answers 200 with a WARNING, as Tasmota does."""

    def __init__(self, *, password: str | None = None, channels: int = 1) -> None:
        super().__init__()
        self.password, self.channels = password, channels
        self.is_on = True
        self.has_energy = True

    def refusal(self) -> web.Response:
        return json_of({"WARNING": "Need user=<username>&password=<password>"})

    async def reply(self, request: web.Request) -> web.Response:
        query = request.query
        if self.password and (query.get("user"), query.get("password")) != (
            "admin",
            self.password,
        ):
            return self.refusal()
        words = query["cmnd"]
        if words == "Status 0":
            return json_of(
                {
                    "Status": {"Module": 0, "DeviceName": "Nous A1T", "Topic": "plug1"},
                    "StatusFWR": {"Version": "13.4.0(tasmota)"},
                    "StatusNET": {"Hostname": "plug1", "Mac": "A4:CF:12:AA:BB:CC"},
                }
            )
        if words == "Status 8":
            return json_of({"StatusSNS": self._sensors()})
        name, _, turn = words.partition(" ")
        if turn:
            self.is_on = turn == "ON"
        key = "POWER" if self.channels == 1 else name.upper()
        return json_of({key: "ON" if self.is_on else "OFF"})

    def _sensors(self) -> dict[str, object]:
        told: dict[str, object] = {"Time": "2026-11-30T03:00:00"}
        power: object = self.shown_w
        if self.channels == 2:
            power = [3, self.shown_w]
        if self.has_energy:
            told["ENERGY"] = {
                "TotalStartTime": "2026-01-01T00:00:00",
                "Total": 1.234,
                "Power": power,
                "ApparentPower": 14,
                "Factor": 0.86,
                "Voltage": 231,
                "Current": 0.061,
            }
        return told


class TestTasmota(MeterContract):
    def open_rig(self) -> AbstractAsyncContextManager[MeterRig]:
        server = TasmotaServer(password=PASSWORD)
        return rig_of(server, lambda spec: TasmotaMeter(spec, TasmotaOptions(), PASSWORD))


async def test_all_values_and_kwh_in_wh() -> None:
    async with TasmotaServer() as server:
        meter = TasmotaMeter(spec_of(server.port), TasmotaOptions(), None)
        facts = await meter.open()
        reading = await meter.read()
        await meter.close()
    assert (facts.model, facts.identity) == ("Nous A1T", "a4:cf:12:aa:bb:cc")
    assert facts.firmware == "13.4.0(tasmota)"
    assert isinstance(reading, MeterReading)
    assert (reading.power_w, reading.voltage_v, reading.current_a) == (10.0, 231.0, 0.061)
    assert reading.energy_wh == pytest.approx(1234)


async def test_a_channel_of_several() -> None:
    async with TasmotaServer(channels=2) as server:
        meter = TasmotaMeter(spec_of(server.port), TasmotaOptions(channel=2), None)
        await meter.open()
        reading = await meter.read()
        await meter.close()
        third = TasmotaMeter(spec_of(server.port), TasmotaOptions(channel=3), None)
        with pytest.raises(MeterError, match="holds no power"):
            await third.open()
    assert isinstance(reading, MeterReading)
    assert reading.power_w == 10.0


@pytest.mark.parametrize("secret", [None, "wrong-word"])
async def test_a_wrong_password_is_named_and_not_told(secret: str | None) -> None:
    async with TasmotaServer(password=PASSWORD) as server:
        meter = TasmotaMeter(spec_of(server.port), TasmotaOptions(), secret)
        with pytest.raises(MeterError, match="password") as caught:
            await meter.open()
    assert "wrong-word" not in f"{caught.value} {caught.value.__cause__}"


async def test_a_device_without_a_meter_is_told_at_open() -> None:
    async with TasmotaServer() as server:
        server.has_energy = False
        meter = TasmotaMeter(spec_of(server.port), TasmotaOptions(), None)
        with pytest.raises(MeterError, match="measures no energy"):
            await meter.open()


async def test_an_energy_part_that_vanishes_is_a_gap() -> None:
    async with TasmotaServer() as server:
        meter = TasmotaMeter(spec_of(server.port), TasmotaOptions(), None)
        await meter.open()
        server.has_energy = False
        got = await meter.read()
        await meter.close()
    assert isinstance(got, MeterMiss)
    assert got.kind is MissKind.NO_DATA


@pytest.mark.parametrize("channels", [1, 2])
async def test_the_outlet_switches_and_reads_back(channels: int) -> None:
    async with TasmotaServer(password=PASSWORD, channels=channels) as server:
        outlet = TasmotaOutlet(spec_of(server.port), TasmotaOptions(channel=channels), PASSWORD)
        assert await outlet.is_on() is True
        assert await outlet.switch(to_on=False) is False
        assert server.is_on is False
        assert await outlet.switch(to_on=True) is True


async def test_an_outlet_that_is_gone_is_an_error() -> None:
    async with TasmotaServer() as server:
        await server.set_fault("refuse")
        outlet = TasmotaOutlet(spec_of(server.port), TasmotaOptions(), None)
        with pytest.raises(MeterError, match="refused"):
            await outlet.switch(to_on=True)
