"""Home Assistant's REST API: the contract, then units, ages and words."""

import json
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta

import pytest
from aiohttp import web

from farm.drivers.homeassistant_http import HomeassistantOptions
from farm.drivers.meters.homeassistant import HomeassistantMeter
from farm.drivers.outlets.homeassistant import HomeassistantOutlet
from farm.errors import MeterError
from farm.model.trace import MeterMiss, MeterReading, MissKind
from farm.testing.meter_contract import MeterContract, MeterRig
from tests.servers.meter_http import MeterHttpServer, json_of
from tests.servers.meter_rig import rig_of, spec_of

TOKEN = "not-a-secret-token"
POWER, ENERGY, SWITCH = "sensor.plug_power", "sensor.plug_energy", "switch.plug"


class HomeassistantServer(MeterHttpServer):
    def __init__(self) -> None:
        super().__init__()
        self.unit: object = "W"
        self.state: str | None = None
        self.age_s = 0.0
        self.zone = UTC
        self.is_on = True
        self.looks_until_off = 0
        self.date: str | None = None

    async def reply(self, request: web.Request) -> web.Response:
        answer = await self._page(request)
        if self.date is not None:
            answer.headers["Date"] = self.date
        return answer

    async def _page(self, request: web.Request) -> web.Response:  # noqa: PLR0911 - one a page
        if request.headers.get("Authorization") != f"Bearer {TOKEN}":
            return self.refusal()
        name = request.path.rpartition("/")[2]
        if request.path == "/api/config":
            return json_of({"version": "2026.11.1", "state": "RUNNING"})
        if request.path.startswith("/api/services/switch/"):
            assert json.loads(await request.text()) == {"entity_id": SWITCH}
            self.is_on, self.looks_until_off = name == "turn_on", 2
            return json_of([])
        if request.path == f"/api/states/{POWER}":
            return json_of(self._state(self.state or str(self.shown_w), self.unit))
        if request.path == f"/api/states/{ENERGY}":
            return json_of(self._state("1.5", "kWh"))
        if request.path == f"/api/states/{SWITCH}":
            self.looks_until_off -= 1
            is_on = self.is_on != (self.looks_until_off > 0)
            return json_of(self._state("on" if is_on else "off", None))
        return web.Response(status=404, text='{"message":"Entity not found."}')

    def _state(self, state: str, unit: object) -> dict[str, object]:
        stamp = (datetime.now(UTC) - timedelta(seconds=self.age_s)).isoformat()
        attributes: dict[str, object] = {"unit_of_measurement": unit, "device_class": "power"}
        old = "2026-01-01T00:00:00+00:00"
        stamps = {"last_reported": stamp, "last_updated": old, "last_changed": old}
        return {"entity_id": POWER, "state": state, "attributes": attributes, **stamps}


class TestHomeassistant(MeterContract):
    def open_rig(self) -> AbstractAsyncContextManager[MeterRig]:
        options = HomeassistantOptions(entity=POWER)
        return rig_of(HomeassistantServer(), lambda spec: HomeassistantMeter(spec, options, TOKEN))


async def opened(server: HomeassistantServer, **options: str) -> HomeassistantMeter:
    settings = HomeassistantOptions.model_validate({"entity": POWER, **options})
    meter = HomeassistantMeter(spec_of(server.port), settings, TOKEN)
    await meter.open()
    return meter


@pytest.mark.parametrize(("unit", "watts"), [("W", 10.0), ("kW", 10_000.0), ("mW", 0.01)])
async def test_the_unit_is_the_sensors(unit: str, watts: float) -> None:
    async with HomeassistantServer() as server:
        server.unit = unit
        spec = spec_of(server.port).model_copy(update={"max_w": 20_000.0})
        meter = HomeassistantMeter(
            spec, HomeassistantOptions(entity=POWER, energy_entity=ENERGY), TOKEN
        )
        await meter.open()
        reading = await meter.read()
        await meter.close()
    assert isinstance(reading, MeterReading)
    assert reading.power_w == pytest.approx(watts)
    assert reading.energy_wh == 1500.0


@pytest.mark.parametrize("unit", [None, "BTU/h", ["W"]])
async def test_another_unit_is_refused(unit: object) -> None:
    async with HomeassistantServer() as server:
        server.unit = unit
        with pytest.raises(MeterError, match="not in one of mW, W, kW"):
            await opened(server)


@pytest.mark.parametrize("state", ["unavailable", "unknown"])
async def test_no_state_is_a_gap(state: str) -> None:
    async with HomeassistantServer() as server:
        meter = await opened(server)
        server.state = state
        got = await meter.read()
        await meter.close()
    assert isinstance(got, MeterMiss)
    assert got.kind is MissKind.NO_DATA
    assert state in got.text


async def test_what_was_not_reported_for_long_is_a_gap() -> None:
    async with HomeassistantServer() as server:
        meter = await opened(server)
        server.age_s = 3600.0
        got = await meter.read()
        server.age_s = 0.0
        again = await meter.read()
        await meter.close()
    assert isinstance(got, MeterMiss)
    assert got.kind is MissKind.NO_DATA
    assert "3600 s" in got.text or "3599 s" in got.text
    assert isinstance(again, MeterReading)


@pytest.mark.parametrize(
    ("date", "is_read"),
    [
        ("Sat, 01 Jan 2000 00:00:00 -0000", True),
        ("Fri, 01 Jan 2100 00:00:00 -0000", False),
        ("no date", False),
    ],
)
async def test_a_date_without_a_zone_or_that_is_none(date: str, is_read: bool) -> None:
    async with HomeassistantServer() as server:
        meter = await opened(server)
        server.date = date
        got = await meter.read()
        await meter.close()
    assert isinstance(got, MeterReading) is is_read


async def test_an_unknown_entity_and_a_wrong_token_are_told() -> None:
    async with HomeassistantServer() as server:
        with pytest.raises(MeterError, match="404"):
            await opened(server, entity="sensor.other")
        meter = HomeassistantMeter(
            spec_of(server.port), HomeassistantOptions(entity=POWER), "wrong-word"
        )
        with pytest.raises(MeterError, match="auth") as caught:
            await meter.open()
    assert "wrong-word" not in f"{caught.value} {caught.value.__cause__}"


async def test_the_switch_is_read_back_until_it_did_it() -> None:
    async with HomeassistantServer() as server:
        options = HomeassistantOptions(entity=POWER, switch_entity=SWITCH)
        outlet = HomeassistantOutlet(spec_of(server.port), options, TOKEN)
        server.looks_until_off = 0
        assert await outlet.is_on() is True
        assert await outlet.switch(to_on=False) is False
        assert server.is_on is False


async def test_an_entry_without_a_switch_says_so() -> None:
    async with HomeassistantServer() as server:
        outlet = HomeassistantOutlet(
            spec_of(server.port), HomeassistantOptions(entity=POWER), TOKEN
        )
        with pytest.raises(MeterError, match="switch_entity"):
            await outlet.is_on()
