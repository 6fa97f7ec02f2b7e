"""A CSV file that grows: the contract, then headers, old lines, half lines and new files."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from farm.drivers.meters.csv import CsvMeter, CsvOptions
from farm.errors import MeterError
from farm.interfaces.meter import Meter
from farm.model.trace import MeterMiss, MeterReading, MissKind
from farm.testing.meter_contract import Fault, MeterContract, MeterRig
from tests.servers.meter_device import SPIKES
from tests.servers.meter_rig import spec_of


class WriterRig:
    """Appends a line every few milliseconds."""

    requests, most_at_once = 1, 1

    def __init__(self, file: Path) -> None:
        self.file = file
        self._fault: Fault = "none"
        self._power_w = 10.0
        file.write_text("time;P [W]\n")

    def meter(self, deadline_s: float) -> Meter:
        options = CsvOptions(file=self.file, power="P [W]", delimiter=";")
        return CsvMeter(spec_of(None, deadline_s=deadline_s), options, None)

    async def set_fault(self, fault: Fault) -> None:
        if fault == "refuse":
            self.file.unlink()
        elif self._fault == "refuse":
            self.file.write_text("time;P [W]\n")
        self._fault = fault

    def set_power(self, power_w: float) -> None:
        self._power_w = power_w

    async def write(self) -> None:
        while True:
            if self._fault not in ("hang", "refuse"):
                shown = SPIKES.get(self._fault, self._power_w)
                text = "%&/" if self._fault == "garbage" else str(shown)
                with self.file.open("a") as file:
                    file.write(f"03:00:00;{text}\n")
            await asyncio.sleep(0.005)


@asynccontextmanager
async def written(file: Path) -> AsyncIterator[MeterRig]:
    rig = WriterRig(file)
    writer = asyncio.create_task(rig.write())
    try:
        yield rig
    finally:
        writer.cancel()


class TestCsv(MeterContract):
    has_login = False
    is_pushed = True

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.file = tmp_path / "watts.csv"

    def open_rig(self) -> AbstractAsyncContextManager[MeterRig]:
        return written(self.file)


async def opened(file: Path, line: str = "1,10,5\n", **options: object) -> CsvMeter:
    """Open needs a line that comes; it is written until one was seen."""
    settings = CsvOptions.model_validate({"file": file, **options})
    meter = CsvMeter(spec_of(None, deadline_s=30.0), settings, None)
    opening = asyncio.create_task(meter.open())
    while not opening.done():
        await asyncio.sleep(0.01)
        with file.open("a") as out:
            out.write(line)
    await opening
    meter._spec = meter._dialogue._spec = spec_of(None, deadline_s=0.2)
    meter._newest_line()  # what was written in excess
    return meter


async def test_what_the_file_held_before_is_no_reading(tmp_path: Path) -> None:
    file = tmp_path / "w.csv"
    file.write_text("1,99,5\n")
    meter = await opened(file, power=1)
    quiet = await meter.read()
    with file.open("a") as out:
        out.write("2,11,5\n3,12,6\n4,1")
    newest = await meter.read()
    half = await meter.read()
    with file.open("a") as out:
        out.write("3,7\n")
    whole = await meter.read()
    await meter.close()
    for got, power_w in ((newest, 12.0), (whole, 13.0)):
        assert isinstance(got, MeterReading)
        assert got.power_w == power_w
    for got in (quiet, half):
        assert isinstance(got, MeterMiss)
        assert got.kind is MissKind.TIMEOUT


async def test_names_decimal_commas_and_counters(tmp_path: Path) -> None:
    file = tmp_path / "w.csv"
    file.write_text("\ufefft;P;E\n")
    names = {"power": "P", "energy": "E", "delimiter": ";", "decimal": ",", "energy_unit": "kWh"}
    meter = await opened(file, line="1;10;5\n", **names)
    with file.open("a") as out:
        out.write('2;"12,5";0,25\n')
    got = await meter.read()
    await meter.close()
    assert isinstance(got, MeterReading)
    assert (got.power_w, got.energy_wh) == (12.5, 250.0)


@pytest.mark.parametrize("way", ["replaced", "cut"])
async def test_a_file_that_is_begun_anew_is_followed(tmp_path: Path, way: str) -> None:
    file = tmp_path / "w.csv"
    file.write_text("a,P\n")
    meter = await opened(file, line="1,10\n", power="P")
    if way == "replaced":
        (tmp_path / "new").write_text("P,b\n7,0\n")
        (tmp_path / "new").replace(file)
    else:
        file.write_text("P,b\n7,0\n")
    got = await meter.read()
    await meter.close()
    assert isinstance(got, MeterReading)
    assert got.power_w == 7.0


@pytest.mark.parametrize(
    ("line", "options", "says"),
    [
        ("1,2\n", {"power": "P"}, "no column 'P'; there are t, W"),
        ("1,2\n", {"power": 7}, "a line of 2 columns"),
        ("1,\n", {"power": 1}, "no number"),
    ],
)
async def test_a_column_that_is_not_there_is_told(
    tmp_path: Path, line: str, options: dict[str, object], says: str
) -> None:
    file = tmp_path / "w.csv"
    file.write_text("t,W\n")
    with pytest.raises(MeterError, match=says):
        await opened(file, line=line, **options)


@pytest.mark.parametrize("name", ["absent.csv", "."])
async def test_what_is_no_file_is_told(tmp_path: Path, name: str) -> None:
    meter = CsvMeter(spec_of(None), CsvOptions(file=tmp_path / name), None)
    with pytest.raises(MeterError, match="refused"):
        await meter.open()
