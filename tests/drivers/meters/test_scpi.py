"""SCPI on a raw socket: the contract, then presets, codes for no data, and other instruments."""

from contextlib import AbstractAsyncContextManager

import pytest
from pydantic import ValidationError

from farm.drivers.meters.scpi import ScpiMeter, ScpiOptions
from farm.errors import MeterError
from farm.model.trace import MeterMiss, MeterReading, MissKind
from farm.testing.meter_contract import MeterContract, MeterRig
from tests.servers.meter_rig import rig_of, spec_of
from tests.servers.meter_tcp import MeterLineServer

YOKOGAWA = ScpiOptions(preset="yokogawa-wt3xx")


class ScpiServer(MeterLineServer):
    def __init__(self) -> None:
        super().__init__()
        self.serial = "C2PH13047V"
        self.value: str | None = None

    def answer(self, words: str) -> list[str]:
        if words == "*IDN?":
            return [f"YOKOGAWA,WT310E,{self.serial},F1.04"]
        if words.startswith(":NUMERIC:NORMAL:VALUE? ") or words == "MEAS:POW?":
            return [self.value or f"{self.shown_w:.5E}"]
        return [] if "?" not in words else ["NAN"]


class TestYokogawa(MeterContract):
    has_login = False

    def open_rig(self) -> AbstractAsyncContextManager[MeterRig]:
        return rig_of(ScpiServer(), lambda spec: ScpiMeter(spec, YOKOGAWA, None))


@pytest.mark.parametrize(("element", "item"), [(1, 3), (2, 13), (3, 23)])
async def test_the_element_gives_the_item(element: int, item: int) -> None:
    options = ScpiOptions(
        preset="yokogawa-wt3xx", element=element, init=(":INPUT:CURRENT:RANGE 1A",)
    )
    async with ScpiServer() as server:
        meter = ScpiMeter(spec_of(server.port), options, None)
        facts = await meter.open()
        await meter.close()
    assert (facts.model, facts.identity) == ("YOKOGAWA WT310E", "C2PH13047V")
    assert facts.firmware == "F1.04"
    asked = ["*IDN?", ":NUMERIC:FORMAT ASCII", ":INPUT:CURRENT:RANGE 1A"]
    assert server.heard == [*asked, f":NUMERIC:NORMAL:VALUE? {item}"]


@pytest.mark.parametrize("code", ["NAN", "INF", "9.91E+37", "9.9E+37", "-INF"])
async def test_codes_for_no_data_are_no_numbers(code: str) -> None:
    async with ScpiServer() as server:
        meter = ScpiMeter(spec_of(server.port), YOKOGAWA, None)
        await meter.open()
        server.value = code
        got = await meter.read()
        await meter.close()
    assert isinstance(got, MeterMiss)
    assert got.kind is MissKind.OUT_OF_RANGE


async def test_a_field_of_several_in_milliwatts() -> None:
    options = ScpiOptions(query_power="MEAS:POW?", field=1, unit="mW")
    async with ScpiServer() as server:
        server.value = "230.1, 12500, 0.5"
        meter = ScpiMeter(spec_of(server.port), options, None)
        await meter.open()
        reading = await meter.read()
        server.value = "230.1"
        short = await meter.read()
        await meter.close()
    assert isinstance(reading, MeterReading)
    assert reading.power_w == 12.5
    assert isinstance(short, MeterMiss)
    assert short.kind is MissKind.NO_DATA


async def test_another_instrument_after_a_cut_is_not_taken_for_it() -> None:
    async with ScpiServer() as server:
        meter = ScpiMeter(spec_of(server.port), YOKOGAWA, None)
        await meter.open()
        await server.set_fault("refuse")
        assert isinstance(await meter.read(), MeterMiss)
        server.serial = "OTHER"
        await server.set_fault("none")
        got = await meter.read()
        await meter.close()
    assert isinstance(got, MeterMiss)
    assert got.kind is MissKind.PROTOCOL
    assert "another instrument" in got.text


async def test_an_endless_line_is_cut() -> None:
    async with ScpiServer() as server:
        meter = ScpiMeter(spec_of(server.port), YOKOGAWA, None)
        await meter.open()
        server.value = "1" * 200_000
        got = await meter.read()
        await meter.close()
    assert isinstance(got, MeterMiss)
    assert got.kind is MissKind.PROTOCOL
    assert "65536" in got.text


async def test_what_is_no_instrument_is_told() -> None:
    async with ScpiServer() as server:
        await server.set_fault("garbage")
        meter = ScpiMeter(spec_of(server.port), YOKOGAWA, None)
        with pytest.raises(MeterError, match=r"\*IDN"):
            await meter.open()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"query_power": "CONF:POW"},
        {"query_power": "A?\nB"},
        {"query_power": "A?", "init": ["\r"]},
    ],
)
def test_what_is_no_query_is_refused(options: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        ScpiOptions.model_validate(options)
