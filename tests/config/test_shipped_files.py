"""Profiles, inventory, payloads and sweeps that come along fit together."""

import re
from collections.abc import Sequence

import pytest

from farm.config.builtin import builtin_file, builtin_folder
from farm.config.inventory import load_inventory
from farm.config.payloads import check_payload, load_payloads
from farm.config.profiles import load_profiles
from farm.config.published import load_published
from farm.config.sweeps import check_sweep, load_sweep_document
from farm.model.board import Inventory
from farm.model.payload import Payload
from farm.model.plan import Plan
from farm.model.profile import BoardProfile
from farm.planning.plan import make_plan


@pytest.fixture(scope="module")
def profiles() -> dict[str, BoardProfile]:
    return load_profiles([builtin_folder("device_profiles")])


@pytest.fixture(scope="module")
def payloads() -> dict[str, Payload]:
    return load_payloads([builtin_folder("payloads")])


@pytest.fixture(scope="module")
def inventory(profiles: dict[str, BoardProfile]) -> Inventory:
    return load_inventory(builtin_file("inventory.yaml"), profiles)


def plan_of(
    name: str,
    inventory: Inventory,
    profiles: dict[str, BoardProfile],
    payloads: dict[str, Payload],
) -> Plan:
    sweep, document = load_sweep_document(builtin_folder("sweeps") / f"{name}.yaml")
    check_sweep(document, sweep, payloads, profiles, inventory.boards)
    return make_plan(sweep, inventory.boards, profiles, payloads)


def test_the_lab_is_simulated_and_on_loopback(inventory: Inventory) -> None:
    entries: Sequence[object] = (*inventory.boards, *inventory.meters)
    assert len(entries) == 12
    for board in inventory.boards:
        assert board.simulation is not None
        assert board.host.startswith("127.")
        assert board.meter == board.outlet == f"plug-{board.name}"
    for meter in inventory.meters:
        assert meter.simulation is not None
        assert str(meter.host).startswith("127.")
    addresses = {(meter.host, meter.port) for meter in inventory.meters}
    assert len(addresses) == len(inventory.meters)


def test_every_board_of_the_lab_can_be_simulated(
    inventory: Inventory, profiles: dict[str, BoardProfile]
) -> None:
    for board in inventory.boards:
        model = profiles[board.profile].simulation
        assert model is not None
        assert set(model.idle_w) == {
            mode.name for mode in profiles[board.profile].power_modes
        } or set(model.idle_w) == {""}


def test_every_figure_has_a_source(profiles: dict[str, BoardProfile]) -> None:
    for profile in profiles.values():
        figures = [profile.memory_bandwidth_gbs, profile.price_usd, profile.max_temperature_c]
        sources = [figure.source for figure in figures if figure is not None]
        sources += [peak.source for peak in profile.peaks]
        sources += [mode.source for mode in profile.power_modes]
        assert all(len(source) > 5 for source in sources), profile.name


def test_peaks_follow_from_the_clocks(profiles: dict[str, BoardProfile]) -> None:
    clocks_ghz = {"MAXN": 1.3005, "MAXQ": 0.854, "MAXP_CORE_ALL": 1.122, "MAXP_CORE_ARM": 1.122}
    peaks = profiles["jetson-tx2"].peaks
    assert len(peaks) == 8
    for peak in peaks:
        rate = 4 if peak.precision == "FP16" else 2
        expected = rate * 256 * clocks_ghz[str(peak.power_mode)] / 1000
        assert peak.tops == pytest.approx(expected, rel=0.002)


def test_payloads_are_without_fault(payloads: dict[str, Payload]) -> None:
    assert {"matmul", "replay-cnn"} <= set(payloads)
    for payload in payloads.values():
        assert check_payload(payload.folder) == []


def test_the_demo_is_a_short_night(
    inventory: Inventory, profiles: dict[str, BoardProfile], payloads: dict[str, Payload]
) -> None:
    plan = plan_of("demo", inventory, profiles, payloads)
    assert {lane.board: len(lane.trials) for lane in plan.lanes} == {
        "tx2-01": 12,
        "tx2-02": 12,
        "tx2-03": 12,
        "zcu104-01": 6,
        "nano-01": 4,
        "pc-01": 4,
    }
    measure = plan.sweep.measure
    for lane in plan.lanes:
        modes = lane.mode_changes + 1
        measured_s = len(lane.trials) * (measure.window_s + measure.warmup_s)
        assert measured_s + modes * 2 * measure.idle_s <= 65
    assert [lane.reboots for lane in plan.lanes] == [0] * 6


@pytest.mark.parametrize("name", ["demo", "published-tx2"])
def test_replayed_cells_are_published_and_not_misprinted(
    name: str,
    inventory: Inventory,
    profiles: dict[str, BoardProfile],
    payloads: dict[str, Payload],
) -> None:
    published = {
        (cell.profile, (cell.power_mode or "").lower(), *cell.parameters.values())
        for cell in load_published()
    }
    misprinted = {
        ("zcu104", "", "ResNet50", "INT8", 1),
        ("zcu104", "", "GoogleNetV1", "INT8", 2),
    }
    asked = set()
    for trial in plan_of(name, inventory, profiles, payloads).trials:
        cell = trial.cell
        if cell.payload == "replay-cnn":
            mode = cell.power_mode if cell.profile == "jetson-tx2" else ""
            size = cell.parameters["batch"] or cell.parameters["threads"]
            model, precision = cell.parameters["model"], cell.parameters["precision"]
            asked.add((cell.profile, mode, model, precision, size))
    assert asked <= published - misprinted
    assert len(asked) == {"demo": 9, "published-tx2": 96}[name]


def test_the_first_sweep_runs_anywhere(
    inventory: Inventory, profiles: dict[str, BoardProfile], payloads: dict[str, Payload]
) -> None:
    plan = plan_of("first", inventory, profiles, payloads)
    assert {trial.cell.power_mode for trial in plan.trials} == {"current"}
    assert len(plan.trials) == 6 * len(inventory.boards)


def test_example_in_the_inventorys_head_is_an_inventory(
    profiles: dict[str, BoardProfile], tmp_path_factory: pytest.TempPathFactory
) -> None:
    text = builtin_file("inventory.yaml").read_text()
    example = re.findall(r"^#   (.*)$", text, re.MULTILINE)
    path = tmp_path_factory.mktemp("lab") / "inventory.yaml"
    path.write_text("\n".join(example))
    inventory = load_inventory(path, profiles)
    assert len(inventory.boards) == 41
    assert inventory.board("tx2-40").host == "192.168.2.140"
    assert inventory.board("tx2-40").meter == "plug-40"
