"""PTDaemon's line protocol: the contract, then ranges, marks and somebody else's measurement."""

from contextlib import AbstractAsyncContextManager

import pytest

from farm.drivers.meters.ptdaemon import PtdaemonMeter, PtdaemonOptions
from farm.errors import MeterError
from farm.model.trace import MeterMiss, MeterReading, MissKind
from farm.testing.meter_contract import MeterContract, MeterRig
from tests.servers.meter_rig import rig_of, spec_of
from tests.servers.meter_tcp import MeterLineServer


class PtdaemonServer(MeterLineServer):
    """Answers as public clients of the daemon expect it."""

    end = "\r\n"

    def __init__(self) -> None:
        super().__init__()
        self.is_measuring = False
        self.is_in_use = False
        self.samples = 2
        self.firmware = "version=1.10.0-8d3a1d2c-20220127"

    def answer(self, words: str) -> list[str]:  # noqa: PLR0911 - one a command
        command = words.partition(",")[0]
        if command == "Identify":
            return [f"YokogawaWT310E,1000,1,1,1,1,0,0,1,{self.firmware},OS=Linux,mode=power,0,300"]
        if command == "SR":
            return [f"Range {words.split(',')[1]} changed"]
        if command == "Go":
            if self.is_in_use:
                return ["Error: measurement already running"]
            self.is_measuring = True
            return ["Starting untimed measurement, maximum 500000 samples at 1000ms"]
        if command == "Stop":
            self.is_measuring = False
            return ["Stopping untimed measurement"]
        if not self.samples:
            return ["No unread samples available"]
        head = f"Last {self.samples} sample{'s' if self.samples > 1 else ''}"
        return [head, *(self._sample(i) for i in range(self.samples))]

    def _sample(self, index: int) -> str:
        shown = self.shown_w if index == self.samples - 1 else 1.0
        return (
            f"Time,11-30-2026 03:00:0{index}.123,Watts,{shown:.6f},Volts,228.570000,"
            "Amps,0.206430,PF,0.486400,Mark,farm"
        )


class TestPtdaemon(MeterContract):
    has_login = False

    def open_rig(self) -> AbstractAsyncContextManager[MeterRig]:
        return rig_of(PtdaemonServer(), lambda spec: PtdaemonMeter(spec, PtdaemonOptions(), None))


async def test_ranges_start_values_and_stop() -> None:
    async with PtdaemonServer() as server:
        options = PtdaemonOptions(range_v=300, range_a=0.5, sample_ms=1000, mark="trial-1")
        meter = PtdaemonMeter(spec_of(server.port), options, None)
        facts = await meter.open()
        reading = await meter.read()
        assert server.is_measuring
        await meter.close()
        heard = list(server.heard)
    assert (facts.model, facts.firmware) == ("YokogawaWT310E", "1.10.0-8d3a1d2c-20220127")
    assert heard[:4] == ["Identify", "SR,V,300", "SR,A,0.5", "Go,1000,0,trial-1"]
    assert heard[-1] == "Stop"
    assert isinstance(reading, MeterReading)
    assert (reading.power_w, reading.voltage_v, reading.current_a) == (10.0, 228.57, 0.20643)


async def test_somebody_elses_measurement_is_not_touched() -> None:
    async with PtdaemonServer() as server:
        server.is_in_use = True
        meter = PtdaemonMeter(spec_of(server.port), PtdaemonOptions(), None)
        with pytest.raises(MeterError, match="does another run use it"):
            await meter.open()
        assert "Stop" not in server.heard


async def test_no_new_sample_is_a_gap() -> None:
    async with PtdaemonServer() as server:
        meter = PtdaemonMeter(spec_of(server.port), PtdaemonOptions(), None)
        await meter.open()
        server.samples = 0
        got = await meter.read()
        server.samples = 1
        again = await meter.read()
        await meter.close()
    assert isinstance(got, MeterMiss)
    assert got.kind is MissKind.NO_DATA
    assert isinstance(again, MeterReading)
