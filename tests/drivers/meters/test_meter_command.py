"""Programs that print watts: the contract for both modes, then patterns, units and leftovers."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from farm.drivers.command_options import CommandOptions
from farm.drivers.meters.command import CommandMeter
from farm.drivers.outlets.command import CommandOutlet
from farm.errors import MeterError
from farm.interfaces.meter import Meter
from farm.model.trace import MeterMiss, MeterReading, MissKind
from farm.testing.meter_contract import Fault, MeterContract, MeterRig
from tests.servers.meter_device import SPIKES
from tests.servers.meter_rig import spec_of

PATIENCE_S = 30.0
ONESHOT = """
echo x >> "$1/requests"
mkdir "$1/busy" 2>/dev/null || echo x >> "$1/crowd"
while [ "$(cat "$1/fault")" = hang ]; do sleep 0.05; done
rmdir "$1/busy" 2>/dev/null
[ "$(cat "$1/fault")" = refuse ] && exit 3
cat "$1/line"
"""
STREAM = """
echo x >> "$1/requests"
while :; do
  case "$(cat "$1/fault")" in
    hang) ;;
    refuse) exit 3 ;;
    *) cat "$1/line" ;;
  esac
  sleep 0.01
done
"""


class ProgramRig:
    """A script that reads from a folder what to print."""

    def __init__(self, folder: Path, script: str, mode: str) -> None:
        self._folder, self._mode = folder, mode
        self._script = folder / "script"
        self._script.write_text(script)
        self._fault: Fault = "none"
        self._power_w = 10.0
        self._tell()

    def meter(self, deadline_s: float) -> Meter:
        argv = ["/bin/sh", str(self._script), str(self._folder)]
        options = CommandOptions.model_validate({"argv": argv, "mode": self._mode})
        return CommandMeter(spec_of(None, deadline_s=deadline_s), options, None)

    async def set_fault(self, fault: Fault) -> None:
        self._fault = fault
        self._tell()

    def set_power(self, power_w: float) -> None:
        self._power_w = power_w
        self._tell()

    def _tell(self) -> None:
        shown = SPIKES.get(self._fault, self._power_w)
        line = "%&/ not this" if self._fault == "garbage" else str(shown)
        for name, text in (("line", line), ("fault", self._fault)):
            new = self._folder / f"{name}.new"
            new.write_text(f"{text}\n")
            new.replace(self._folder / name)

    @property
    def requests(self) -> int:
        return len((self._folder / "requests").read_text().split())

    @property
    def most_at_once(self) -> int:
        return 2 if (self._folder / "crowd").exists() else 1


@asynccontextmanager
async def program(folder: Path, script: str, mode: str) -> AsyncIterator[MeterRig]:
    yield ProgramRig(folder, script, mode)


class TestOneshot(MeterContract):
    has_login = False

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.folder = tmp_path

    def open_rig(self) -> AbstractAsyncContextManager[MeterRig]:
        return program(self.folder, ONESHOT, "oneshot")

    async def test_one_request_in_flight(self) -> None:
        await super().test_one_request_in_flight()
        assert len((self.folder / "requests").read_text().split()) == 6


class TestStream(MeterContract):
    has_login = False
    is_pushed = True

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.folder = tmp_path

    def open_rig(self) -> AbstractAsyncContextManager[MeterRig]:
        return program(self.folder, STREAM, "stream")


async def read_once(script: str, **options: object) -> MeterReading | MeterMiss:
    argv = ["/bin/sh", "-c", script]
    settings = CommandOptions.model_validate({"argv": argv, **options})
    meter = CommandMeter(spec_of(None, deadline_s=PATIENCE_S), settings, "the-secret")
    await meter.open()
    got = await meter.read()
    await meter.close()
    return got


@pytest.mark.parametrize(
    ("printed", "options", "power_w", "energy_wh"),
    [
        ("header\\n\\n12.5\\n\\n", {}, 12.5, None),
        ("12500", {"unit": "mW"}, 12.5, None),
        ("1.234,5", {"decimal": ","}, 1234.5, None),
        ("P=+1.25e1 W", {"pattern": r"P=(\S+)"}, 12.5, None),
        (
            "E 0,5 P 7,25",
            {
                "pattern": r"E (?P<energy>\S+) P (?P<power>\S+)",
                "decimal": ",",
                "energy_unit": "kWh",
            },
            7.25,
            500.0,
        ),
        (
            '{"a": [{"w": 3}], "e": 2}',
            {"path": "a.0.w", "energy_path": "e", "energy_unit": "Wh"},
            3.0,
            2.0,
        ),
    ],
)
async def test_what_a_line_means(
    printed: str, options: dict[str, object], power_w: float, energy_wh: float | None
) -> None:
    got = await read_once(f"printf '{printed}'", **options)
    assert isinstance(got, MeterReading)
    assert got.power_w == pytest.approx(power_w)
    if energy_wh is not None:
        assert got.energy_wh == pytest.approx(energy_wh)


async def test_the_secret_is_in_its_environment_and_nowhere_else() -> None:
    got = await read_once('[ "$FARM_SECRET" = the-secret ] && echo 5')
    assert isinstance(got, MeterReading)
    assert got.power_w == 5.0


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("exit 4", "exit status 4"),
        ("kill -9 $$", "signal 9"),
        ("true", "prints nothing"),
        ("yes", "over 65536 bytes"),
        ("echo true", "no number"),
    ],
)
async def test_what_goes_wrong_is_told_at_open(script: str, says: str) -> None:
    with pytest.raises(MeterError, match=says):
        await read_once(script)


async def test_a_program_that_is_not_there_is_told() -> None:
    meter = CommandMeter(spec_of(None), CommandOptions(argv=("/nonexistent/meter",)), None)
    with pytest.raises(MeterError, match="refused"):
        await meter.open()


@pytest.mark.parametrize("mode", ["oneshot", "stream"])
async def test_nothing_is_left_of_a_program_that_hangs(mode: str, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    first = "[ -e $0 ] || { : > $0; echo 5; [ MODE = stream ] || exit 0; }\n".replace("MODE", mode)
    script = f"{first} sleep 600 & echo $$ $! > {pids}.new; mv {pids}.new {pids}; wait"
    argv = ("/bin/sh", "-c", script, str(tmp_path / "opened"))
    options = CommandOptions.model_validate({"argv": argv, "mode": mode})
    meter = CommandMeter(spec_of(None, deadline_s=PATIENCE_S), options, None)
    await meter.open()
    reading = asyncio.create_task(meter.read())
    async with asyncio.timeout(PATIENCE_S):
        while not pids.exists():  # noqa: ASYNC110 - another process writes it
            await asyncio.sleep(0.01)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    await meter.close()
    async with asyncio.timeout(PATIENCE_S):
        for pid in pids.read_text().split():
            while is_alive(int(pid)):  # noqa: ASYNC110 - the kernel ends it
                await asyncio.sleep(0.01)


async def test_nothing_is_left_of_a_program_that_was_just_starting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pids, starting = tmp_path / "pids", asyncio.Event()
    create = asyncio.create_subprocess_exec

    async def slowly(*argv: str, **options: Any) -> asyncio.subprocess.Process:
        process = await create(*argv, **options)
        async with asyncio.timeout(PATIENCE_S):
            while not pids.exists():  # noqa: ASYNC110 - another process writes it
                await asyncio.sleep(0.01)
        starting.set()
        await asyncio.sleep(0.05)
        return process

    monkeypatch.setattr(asyncio, "create_subprocess_exec", slowly)
    script = f"sleep 600 & echo $$ $! > {pids}.new; mv {pids}.new {pids}; wait"
    argv = ("/bin/sh", "-c", script)
    meter = CommandMeter(spec_of(None, deadline_s=PATIENCE_S), CommandOptions(argv=argv), None)
    opening = asyncio.create_task(meter.open())
    await starting.wait()
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    async with asyncio.timeout(PATIENCE_S):
        for pid in pids.read_text().split():
            while is_alive(int(pid)):  # noqa: ASYNC110 - the kernel ends it
                await asyncio.sleep(0.01)
    await meter.close()


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except OSError:
        return False


async def test_a_stream_that_ends_is_begun_anew() -> None:
    options = CommandOptions(argv=("/bin/sh", "-c", "echo $$; sleep 0.01"), mode="stream")
    spec = spec_of(None, deadline_s=PATIENCE_S).model_copy(update={"max_w": 1e9})
    meter = CommandMeter(spec, options, None)
    await meter.open()
    got: list[MeterReading | MeterMiss] = []
    while sum(isinstance(g, MeterReading) for g in got) < 2 and len(got) < 100:
        got.append(await meter.read())
    await meter.close()
    seen = [g.power_w for g in got if isinstance(g, MeterReading)]
    assert len(set(seen)) == 2
    assert all(g.kind is MissKind.REFUSED for g in got if isinstance(g, MeterMiss))


async def test_a_line_is_read_once_and_at_its_arrival() -> None:
    now_s = [1000.0]
    options = CommandOptions(argv=("/bin/sh", "-c", "echo 7; exec sleep 600"), mode="stream")
    meter = CommandMeter(spec_of(None, deadline_s=0.5), options, None, monotonic=lambda: now_s[0])
    for _ in range(20):  # a busy machine may be slow to start it
        try:
            await meter.open()
            break
        except MeterError:
            continue
    now_s[0] = 2000.0
    got = await meter.read()  # open took the only line, or the stream was begun anew
    await meter.close()
    assert isinstance(got, MeterMiss)
    assert got.kind is MissKind.TIMEOUT


async def test_the_outlet_switches_and_reads_back(tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.write_text("on\n")
    options = CommandOptions(
        argv=("/bin/true",),
        on_argv=("/bin/sh", "-c", f"echo on > {state}"),
        off_argv=("/bin/sh", "-c", f"echo 0 > {state}"),
        state_argv=("/bin/cat", str(state)),
    )
    outlet = CommandOutlet(spec_of(None, deadline_s=PATIENCE_S), options, None)
    assert await outlet.is_on() is True
    assert await outlet.switch(to_on=False) is False
    assert await outlet.switch(to_on=True) is True
    state.write_text("perhaps\n")
    with pytest.raises(MeterError, match="neither on nor off"):
        await outlet.is_on()


async def test_a_meter_alone_is_no_outlet() -> None:
    outlet = CommandOutlet(spec_of(None), CommandOptions(argv=("/bin/true",)), None)
    with pytest.raises(MeterError, match=r"options\.off_argv is not given"):
        await outlet.switch(to_on=False)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"argv": []},
        {"argv": [""]},
        {"argv": ["a\0b"]},
        {"argv": ["a"], "pattern": "("},
        {"argv": ["a"], "pattern": "no group"},
        {"argv": ["a"], "pattern": "(x)", "path": "y"},
        {"argv": ["a"], "unit": "VA"},
    ],
)
def test_options_that_cannot_work_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        CommandOptions.model_validate(options)
