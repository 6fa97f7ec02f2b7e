"""Simulated socket meters over HTTP, alone and in a lab."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from farm.errors import ConfigError, FarmError
from farm.model.board import Board, MeterAccuracy, MeterSpec
from farm.simulation.lab import SimulatedLab
from farm.simulation.shelly import SimulatedShelly
from tests.simulation.lab_client import PROFILES, inventory, output, until

STATUS = "rpc/Switch.GetStatus?id=0"

REPLAY = """
cd "$FARM_ROOT/run/farm-sim"
echo $$ > ~/work.pid
echo "{\\"watts\\": 13.92, \\"pid\\": $$}" > load.new
mv load.new load.json
exec sleep 1000
"""


class Heater:
    """A board that draws what it is told, at the clock's pace."""

    def __init__(self) -> None:
        self.energy_j = 0.0
        self.power_w = 10.0
        self.now_s = 0.0

    def now(self) -> float:
        return self.now_s

    def step(self, now_s: float) -> None:
        """The energy is put in by `pass_time`."""

    def pass_time(self, seconds: float) -> None:
        self.now_s += seconds
        self.energy_j += self.power_w * seconds


def url(spec: MeterSpec, path: str) -> str:
    return f"http://{spec.host}:{spec.port}/{path}"


async def get(spec: MeterSpec, path: str, **options: Any) -> tuple[int, Any]:
    async with (
        aiohttp.ClientSession(**options) as session,
        session.get(url(spec, path)) as response,
    ):
        text = await response.text()
        return response.status, json.loads(text) if text.startswith("{") else text


@asynccontextmanager
async def serving(spec: MeterSpec) -> AsyncIterator[SimulatedShelly]:
    heater = Heater()
    meter = SimulatedShelly(spec, [heater], heater.now, lambda: None)
    await meter.start()
    try:
        yield meter
    finally:
        await meter.stop()


def test_value_is_the_mean_since_the_last_refresh_and_held(
    make_meter: Callable[..., MeterSpec],
) -> None:
    heater = Heater()
    meter = SimulatedShelly(make_meter("m"), [heater], heater.now, lambda: None)
    meter.refresh(heater.now_s)
    heater.pass_time(0.5)
    heater.power_w = 20.0
    heater.pass_time(0.5)
    assert meter.status()["apower"] == 0.0
    meter.refresh(heater.now_s)
    assert meter.status()["apower"] == 15.0
    heater.pass_time(1.0)
    assert meter.status()["apower"] == 15.0
    meter.refresh(heater.now_s)
    assert meter.status()["apower"] == 20.0


def test_energy_counts_watt_hours_and_never_falls(make_meter: Callable[..., MeterSpec]) -> None:
    heater = Heater()
    meter = SimulatedShelly(make_meter("m"), [heater], heater.now, lambda: None)
    totals = []
    for power_w in (36.0, 0.0, 72.0):
        heater.power_w = power_w
        heater.pass_time(100.0)
        meter.refresh(heater.now_s)
        energy = meter.status()["aenergy"]
        assert isinstance(energy, dict)
        totals.append(energy["total"])
    assert totals == [1.0, 1.0, 3.0]


@pytest.mark.parametrize(
    ("resolution_w", "shown"), [(0.0, 12.35), (0.1, 12.3), (0.5, 12.5), (1.0, 12.0)]
)
def test_resolution(
    make_meter: Callable[..., MeterSpec], resolution_w: float, shown: float
) -> None:
    heater = Heater()
    heater.power_w = 12.346
    spec = make_meter("m", accuracy=MeterAccuracy(resolution_w=resolution_w))
    meter = SimulatedShelly(spec, [heater], heater.now, lambda: None)
    heater.pass_time(1.0)
    meter.refresh(heater.now_s)
    assert meter.status()["apower"] == shown


async def test_answers_have_the_vendors_form(make_meter: Callable[..., MeterSpec]) -> None:
    spec = make_meter("m")
    async with serving(spec):
        status, info = await get(spec, "rpc/Shelly.GetDeviceInfo")
        assert status == 200
        assert info["model"] == "SIM-PLUG"
        assert info["gen"] == 2
        assert info["simulated"] is True
        assert info["auth_en"] is False
        assert (await get(spec, "shelly"))[1] == info
        status, answer = await get(spec, STATUS)
        assert status == 200
        assert set(answer) >= {"id", "output", "apower", "voltage", "current", "aenergy"}
        assert (await get(spec, "rpc/Switch.GetStatus?id=1"))[1]["code"] == -105
        assert (await get(spec, "rpc/Switch.GetStatus"))[1]["code"] == -103
        assert (await get(spec, "rpc/PM1.GetStatus?id=0")) == (
            404,
            {"code": 404, "message": "No handler for PM1.GetStatus"},
        )


async def test_json_rpc_over_post(make_meter: Callable[..., MeterSpec]) -> None:
    spec = make_meter("m")
    async with serving(spec) as meter, aiohttp.ClientSession() as session:

        async def post(frame: object) -> tuple[int, Any]:
            async with session.post(url(spec, "rpc"), json=frame) as response:
                return response.status, await response.json()

        frame = {"id": 7, "method": "Switch.GetStatus", "params": {"id": 0}}
        status, answer = await post(frame)
        assert (status, answer["id"], answer["result"]["output"]) == (200, 7, True)
        assert (await post({**frame, "method": "Nope"}))[1]["error"]["code"] == 404
        assert (await post([1, 2]))[0] == 400
        assert (await post({"id": 1}))[0] == 400
        switch = {"id": 8, "method": "Switch.Set", "params": {"id": 0, "on": False}}
        assert (await post(switch))[1]["result"] == {"was_on": True}
        assert meter.is_on is False
        switch["params"] = {"id": 0, "on": "no"}
        assert (await post(switch))[1]["error"]["code"] == -103


async def test_digest_authentication(make_meter: Callable[..., MeterSpec], tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("correct horse\n")
    spec = make_meter("m", secret=f"file:{tmp_path}/secret")
    right = aiohttp.DigestAuthMiddleware("admin", "correct horse")
    wrong = aiohttp.DigestAuthMiddleware("admin", "battery staple")
    async with serving(spec):
        assert (await get(spec, STATUS))[0] == 401
        assert (await get(spec, STATUS, middlewares=(wrong,)))[0] == 401
        assert (await get(spec, STATUS, middlewares=(right,)))[0] == 200
        status, info = await get(spec, "rpc/Shelly.GetDeviceInfo")
        assert (status, info["auth_en"]) == (200, True)
        made_up = {
            "Authorization": 'Digest username="admin", nonce="0", uri="/", nc=1, response="0"'
        }
        assert (await get(spec, STATUS, headers=made_up))[0] == 401


def test_secret_from_the_environment(
    make_meter: Callable[..., MeterSpec], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLUG_PASSWORD", "x")
    heater = Heater()

    def auth_of(secret: str | None) -> object:
        spec = make_meter("m", secret=secret)
        meter = SimulatedShelly(spec, [heater], heater.now, lambda: None)
        return meter.device_info()["auth_en"]

    assert auth_of("env:PLUG_PASSWORD") is True
    assert auth_of(None) is False
    with pytest.raises(ConfigError, match="env:NO_SUCH: not found"):
        auth_of("env:NO_SUCH")
    with pytest.raises(ConfigError, match="is env:NAME or file:PATH"):
        auth_of("keyring:plug")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"kind": "tapo"}, "only meters of kind shelly"),
        ({"host": None}, "needs host and port"),
        ({"host": "192.168.1.1"}, "loopback"),
    ],
)
def test_what_cannot_be_simulated(
    make_meter: Callable[..., MeterSpec], tmp_path: Path, wrong: dict[str, object], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        SimulatedLab(inventory([], [make_meter("m", **wrong)]), {}, tmp_path)


async def test_meter_follows_a_replayed_load(
    make_board: Callable[..., Board], make_meter: Callable[..., MeterSpec], tmp_path: Path
) -> None:
    spec = make_meter("m")
    entry = make_board("tx2", meter="m")
    async with SimulatedLab(inventory([entry], [spec]), PROFILES, tmp_path / "lab") as lab:

        async def power_w() -> float:
            return float((await get(spec, STATUS))[1]["apower"])

        async def is_near(wanted_w: float) -> bool:
            return abs(await power_w() - wanted_w) < 0.05 * wanted_w

        async def mean_w(count: int) -> float:
            values: list[float] = []
            while len(values) < count:
                value = await power_w()
                if not values or value != values[-1]:
                    values.append(value)
                await asyncio.sleep(0.02)
            return sum(values) / count

        await until(lambda: is_near(4.2))
        board_root = tmp_path / "lab" / "boards" / "tx2"
        (board_root / "home" / "work.sh").write_text(REPLAY)
        await output(entry, "setsid sh ~/work.sh </dev/null >/dev/null 2>&1 &")
        await until(lambda: is_near(13.92))
        await mean_w(3)
        assert await mean_w(15) == pytest.approx(13.92, rel=0.01)
        await output(entry, "kill $(cat ~/work.pid)")
        await until(lambda: is_near(4.2))
        assert lab.boards["tx2"].energy_j > 13.92


async def test_switch_cuts_and_gives_power(
    make_board: Callable[..., Board], make_meter: Callable[..., MeterSpec], tmp_path: Path
) -> None:
    spec = make_meter("m")
    entry = make_board("tx2", meter="m", outlet="m")
    lab = SimulatedLab(inventory([entry], [spec]), PROFILES, tmp_path / "lab", boot_s=0.1)
    async with lab:
        assert await output(entry, "echo up") == "up\n"
        assert (await get(spec, "rpc/Switch.Set?id=0&on=false"))[1] == {"was_on": True}
        await until(lambda: not lab.boards["tx2"].is_on)

        async def is_dark() -> bool:
            return float((await get(spec, STATUS))[1]["apower"]) == 0.0

        await until(is_dark)
        await lab.power_on("tx2")
        assert not lab.boards["tx2"].is_on
        assert (await get(spec, "rpc/Switch.Set?id=0&on=true"))[1] == {"was_on": False}
        await until(lambda: lab.boards["tx2"].is_on)
        assert await output(entry, "echo up") == "up\n"


async def test_address_in_use(make_meter: Callable[..., MeterSpec]) -> None:
    spec = make_meter("m")
    async with serving(spec):
        with pytest.raises(FarmError, match=f"meter m: cannot listen on {spec.host}"):
            async with serving(spec):
                pass
