"""The example of a mixed rack has every family, and a lab can serve it as it is."""

from pathlib import Path

from farm.config.builtin import builtin_folder
from farm.config.inventory import load_inventory
from farm.config.sweeps import load_sweep
from farm.simulation.lab import SimulatedLab
from tests.simulation.board_shell import JETSONS, SHIPPED

ROOT = Path(__file__).parents[2]


def test_every_family_is_in_the_example(tmp_path: Path) -> None:
    inventory = load_inventory(ROOT / "examples/all-jetsons/inventory.yaml", SHIPPED)
    assert sorted(board.profile for board in inventory.boards) == JETSONS
    addresses = {(board.host, board.port) for board in inventory.boards}
    addresses |= {(str(meter.host), meter.port or 80) for meter in inventory.meters}
    assert len(addresses) == len(inventory.boards) + len(inventory.meters)
    assert {board.meter for board in inventory.boards} == {m.name for m in inventory.meters}
    assert any(board.simulation and board.simulation.quirks for board in inventory.boards)
    SimulatedLab(inventory, SHIPPED, tmp_path)  # raises when it cannot serve an entry


def test_mixed_sweep_asks_for_words_not_names() -> None:
    sweep = load_sweep(builtin_folder("sweeps") / "mixed.yaml")
    assert sweep.limits.reboot
    assert [entry.payload for entry in sweep.payloads] == ["matmul"]
    assert list(sweep.power_modes or ()) == ["maxn", "maxq"]
