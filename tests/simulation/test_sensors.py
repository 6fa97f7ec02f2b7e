"""A simulated Jetson's rails and temperatures in sysfs follow the physics."""

from collections.abc import Callable
from pathlib import Path

import pytest

from farm.model.board import Board
from farm.simulation.board_commands.board_files import LiveState
from farm.simulation.jetsons import JETSONS
from farm.simulation.lab import SimulatedLab
from farm.simulation.sensors import sensor_labels, sensor_values
from tests.simulation.board_shell import JETSONS as JETSON_PROFILES
from tests.simulation.board_shell import SHIPPED
from tests.simulation.lab_client import inventory, until

BUSY = LiveState(20.0, 51.3, 2.0, is_loaded=True)


def rails(kind: str, boot: str = "boot-1") -> dict[str, float]:
    """Milliwatts by rail, found by names as a reader of sysfs would."""
    facts = JETSONS[kind].facts
    labels, values = sensor_labels(facts, boot), sensor_values(facts, boot, BUSY)
    found = {}
    for path, name in labels.items():
        folder, _, file = path.rpartition("/")
        if file.startswith("rail_name_"):
            found[name] = float(values[f"{folder}/in_power{file[-1]}_input"])
        elif file.endswith("_label") and file != "in7_label":
            milliwatts = int(values[f"{folder}/{file[:3]}_input"]) / 1000
            found[name] = milliwatts * int(values[f"{folder}/curr{file[2]}_input"])
        elif name == "ina238":
            found["VIN"] = int(values[f"{folder}/power1_input"]) / 1000
    return found


@pytest.mark.parametrize("name", JETSON_PROFILES)
def test_rails_are_those_of_the_profile_and_less_than_the_socket(name: str) -> None:
    profile = SHIPPED[name]
    assert profile.simulation is not None
    found = rails(profile.simulation.nvpmodel_conf or "")
    assert profile.rails is not None
    wanted = {rail for chip in profile.rails.chips for rail in chip.rails}
    assert wanted - set(found) <= {"VDDQ_VDD2_1V8AO"}
    for total in profile.rails.totals:
        assert 0.5 * 20_000 < sum(found[rail] for rail in total.rails) < 20_000


def test_paths_of_both_drivers() -> None:
    old = sensor_values(JETSONS["nano"].facts, "boot-1", BUSY)
    assert "/sys/bus/i2c/drivers/ina3221x/6-0040/iio:device0/in_power0_input" in old
    new = {boot: sensor_labels(JETSONS["orin-nx-super"].facts, boot) for boot in "abcdef"}
    folders = {path.rpartition("/")[0] for paths in new.values() for path in paths}
    hwmons = [
        f for f in folders if f.startswith("/sys/bus/i2c/drivers/ina3221/1-0040/hwmon/hwmon")
    ]
    assert len(hwmons) > 1  # the number changes with the boot
    assert all(f"{hwmons[0]}/in{n}_label" in str(new) for n in (1, 2, 3, 7))


def test_zones_have_the_names_of_the_release() -> None:
    def zones(kind: str) -> dict[str, int]:
        facts = JETSONS[kind].facts
        values = sensor_values(facts, "b", BUSY)
        return {
            name: int(values[path.replace("/type", "/temp")])
            for path, name in sensor_labels(facts, "b").items()
            if path.endswith("/type")
        }

    assert zones("agx-xavier")["CPU-therm"] == 51_500
    assert zones("agx-xavier")["PMIC-Die"] == 50_000
    assert set(zones("thor")) == {
        *("cpu-thermal", "gpu-thermal", "soc012-thermal", "soc345-thermal", "tj-thermal")
    }
    assert abs(zones("orin-nano-super")["tj-thermal"] - 51_550) < 32
    assert zones("tx2") == {"CPU-therm": 51_500}


async def test_lab_feeds_the_sensors(make_board: Callable[..., Board], tmp_path: Path) -> None:
    entry = make_board("b", "jetson-orin-nano-super")
    root = tmp_path / "lab/boards/b"
    async with SimulatedLab(inventory([entry]), SHIPPED, tmp_path / "lab") as lab:

        def milliwatts() -> float:
            (folder,) = root.glob("sys/bus/i2c/drivers/ina3221/1-0040/hwmon/hwmon*")
            volts, milliamperes = (
                int((folder / name).read_text() or 0) for name in ("in1_input", "curr1_input")
            )
            return volts * milliamperes / 1000

        # idle at 5.5 W in 25W; the module takes 85 % of it, 4.67 W
        await until(lambda: 4600 < milliwatts() < 4750)
        assert lab.boards["b"].power_w * 1000 > milliwatts()
        zone = root / "sys/class/thermal/thermal_zone0"
        assert (zone / "type").read_text() == "cpu-thermal\n"
        await until(lambda: int((zone / "temp").read_text() or 0) >= 25_000)
