"""Workspaces that farm makes: the demo's and the user's."""

import re
from pathlib import Path

import pytest

from farm.errors import ConfigError
from farm.pipeline.demo import DEMO_SWEEP, make_demo_workspace
from farm.pipeline.lab import open_lab
from farm.pipeline.runs import plan_sweep
from farm.pipeline.workspace import make_workspace


def test_a_demo_workspace_is_whole_and_simulated(tmp_path: Path) -> None:
    make_demo_workspace(tmp_path)
    lab = open_lab(tmp_path)
    assert len(lab.inventory.boards) > 3
    assert all(board.simulation for board in lab.inventory.boards)
    assert plan_sweep(lab, DEMO_SWEEP).trials


def test_a_demo_keeps_to_loopback_and_its_boards_and_meters_do_not_meet(tmp_path: Path) -> None:
    for number in range(20):
        make_demo_workspace(tmp_path / str(number))
        inventory = open_lab(tmp_path / str(number)).inventory
        hosts: list[str | None] = [board.host for board in inventory.boards]
        hosts += [meter.host for meter in inventory.meters]
        assert len(set(hosts)) == len(hosts)
        for host in hosts:
            assert host
            assert re.fullmatch(r"127(\.\d+){3}", host)
            assert all(int(part) < 256 for part in host.split("."))


def test_a_demo_changes_nothing_that_is_there(tmp_path: Path) -> None:
    make_demo_workspace(tmp_path)
    files = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert len(files) == 2
    (tmp_path / "sweeps" / "demo.yaml").write_text("name: mine\n")
    make_demo_workspace(tmp_path)
    assert (tmp_path / "sweeps" / "demo.yaml").read_text() == "name: mine\n"
    assert (tmp_path / "inventory.yaml").read_bytes() == files[tmp_path / "inventory.yaml"]


def test_a_new_workspace_is_understood_and_never_overwritten(tmp_path: Path) -> None:
    written = make_workspace(tmp_path / "lab")
    assert all(path.is_file() for path in written)
    assert [board.name for board in open_lab(tmp_path / "lab").inventory.boards] == ["tx2-01"]
    (tmp_path / "lab" / "inventory.yaml").write_text("boards: {}\n")
    with pytest.raises(ConfigError, match="already"):
        make_workspace(tmp_path / "lab")
    assert (tmp_path / "lab" / "inventory.yaml").read_text() == "boards: {}\n"


def test_the_commented_lines_of_a_new_inventory_work_too(tmp_path: Path) -> None:
    make_workspace(tmp_path)
    file = tmp_path / "inventory.yaml"
    text = file.read_text()
    file.write_text(
        text.replace("  # tx2-[", "  tx2-[")
        .replace("# meters:", "meters:")
        .replace("#   plug-", "  plug-")
    )
    inventory = open_lab(tmp_path).inventory
    assert len(inventory.boards) == 40
    assert len(inventory.meters) == 39
    assert inventory.board("tx2-40").meter == "plug-40"
