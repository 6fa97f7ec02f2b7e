"""Names to drivers: the tables, the folders, entry points, and what is said when it fails."""

import sys
from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

import farm.drivers
from farm.drivers import registry
from farm.drivers.meters.shelly import ShellyMeter
from farm.drivers.outlets.shelly import ShellyOutlet
from farm.drivers.power_modes.cpufreq import CpufreqPowerController
from farm.drivers.power_modes.fixed import FixedPowerController
from farm.drivers.power_modes.nvidia_smi import NvidiaSmiPowerController
from farm.drivers.power_modes.nvpmodel import NvpmodelPowerController
from farm.errors import DriverError

FOLDER = Path(farm.drivers.__file__).parent
TABLES = {
    "transports": registry.TRANSPORTS,
    "power_modes": registry.POWER_CONTROLLERS,
    "meters": registry.METERS,
    "outlets": registry.OUTLETS,
    "notifiers": registry.NOTIFIERS,
    "telemetry": registry.TELEMETRY,
}
SUFFIX = {
    "transports": "Transport",
    "power_modes": "PowerController",
    "meters": "Meter",
    "outlets": "Outlet",
    "notifiers": "Notifier",
    "telemetry": "Telemetry",
}


@pytest.mark.parametrize("room", TABLES)
def test_table_and_folder_are_equal(room: str) -> None:
    """Every file with a driver's class is in the table, and every line has its file."""
    table = TABLES[room]
    files = {path.stem for path in (FOLDER / room).glob("*.py") if path.stem != "__init__"}
    drivers = {name for name in files if f"class {driver_name(name, room)}(" in source(room, name)}
    assert {name.replace("-", "_") for name in table} == drivers
    for key, target in table.items():
        name = key.replace("-", "_")  # a file cannot have the tool's own hyphen
        assert target == f"farm.drivers.{room}.{name}:{driver_name(name, room)}"


def driver_name(name: str, room: str) -> str:
    return "".join(word.capitalize() for word in name.split("_")) + SUFFIX[room]


def source(room: str, name: str) -> str:
    return (FOLDER / room / f"{name}.py").read_text()


@pytest.mark.parametrize(
    "target", sorted({t for table in TABLES.values() for t in table.values()})
)
def test_every_line_loads(target: str) -> None:
    module, _, name = target.partition(":")
    assert getattr(import_module(module), name).__name__ == name


def test_names_give_classes() -> None:
    assert registry.meter_class("shelly") is ShellyMeter
    assert registry.outlet_class("shelly") is ShellyOutlet
    assert registry.power_controller_class("cpufreq") is CpufreqPowerController
    assert registry.power_controller_class("fixed") is FixedPowerController
    assert registry.power_controller_class("nvidia-smi") is NvidiaSmiPowerController
    assert registry.power_controller_class("nvpmodel") is NvpmodelPowerController
    assert callable(registry.transport_class("asyncssh"))


def test_an_unknown_name_lists_the_known_and_the_nearest() -> None:
    with pytest.raises(DriverError) as caught:
        registry.meter_class("shely")
    known = ", ".join(sorted(registry.METERS))
    assert str(caught.value) == f"no meter 'shely'; known: {known}. Did you mean 'shelly'?"


def test_entry_points_join_the_table() -> None:
    point = EntryPoint("my-plug", "my_package.plug:MyPlugMeter", "farm.meters")
    names = registry.merged("farm.meters", registry.METERS, [point])
    assert names["my-plug"] == "my_package.plug:MyPlugMeter"
    assert names["shelly"] == registry.METERS["shelly"]


def test_two_drivers_of_one_name_are_an_error() -> None:
    point = EntryPoint("shelly", "other.shelly:Other", "farm.meters")
    with pytest.raises(DriverError, match=r"two drivers .*'shelly'.*other\.shelly:Other"):
        registry.merged("farm.meters", registry.METERS, [point])


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ({"x": "no_such_library_for_farm:X"}, "there is no module"),
        ({"x": "farm.drivers.registry:NoSuchClass"}, "does not load"),
        ({"x": "farm.drivers.no_such_module:X"}, "no module"),
    ],
)
def test_what_does_not_load_says_why(
    monkeypatch: pytest.MonkeyPatch, table: Mapping[str, str], says: str
) -> None:
    monkeypatch.setattr(registry, "METERS", table)
    with pytest.raises(DriverError, match=says):
        registry.meter_class("x")


def test_a_missing_library_names_its_install_command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "needs_absent.py").write_text("import absent_library_for_farm.part\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(registry, "METERS", {"x": "needs_absent:X"})
    monkeypatch.setitem(registry.INSTALL, "absent_library_for_farm", "pip install jetfarm[x]")
    with pytest.raises(DriverError, match=r"run `pip install jetfarm\[x\]`"):
        registry.meter_class("x")


@pytest.mark.parametrize(
    ("kind", "library", "extra", "modules"),
    [
        ("mqtt-json", "aiomqtt", "mqtt", ["mqtt_session", "meters.mqtt_json"]),
        ("modbus", "pymodbus", "modbus", ["meters.modbus"]),
        ("kasa", "kasa", "kasa", ["kasa_session", "kasa_plug", "meters.kasa"]),
        ("tapo", "kasa", "kasa", ["kasa_session", "meters.tapo"]),
        ("snmp", "pysnmp", "snmp", ["snmp_session", "meters.snmp"]),
    ],
)
def test_a_meter_without_its_library_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, kind: str, library: str, extra: str, modules: list[str]
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == library]:
        monkeypatch.delitem(sys.modules, name)
    for name in modules:
        monkeypatch.delitem(sys.modules, f"farm.drivers.{name}", raising=False)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(DriverError, match=rf"run `pip install 'jetfarm\[{extra}\]'`"):
        registry.meter_class(kind)
