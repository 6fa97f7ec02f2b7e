"""The simulated lab as a process: started once, found again, never mistaken, stopped."""

import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from farm.errors import FarmError
from farm.pipeline.lab import Lab, open_lab
from farm.pipeline.sim import lab_is_up, lab_root, start_lab, stop_lab

INVENTORY = """\
boards:
  pc: {{profile: generic-linux, host: "{network}.1", port: 2222, user: u, simulation: {{}}}}
"""


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    network = f"127.{20 + secrets.randbelow(200)}.{secrets.randbelow(250)}"
    (tmp_path / "inventory.yaml").write_text(INVENTORY.format(network=network))
    opened = open_lab(tmp_path)
    yield opened
    stop_lab(opened)


def test_a_lab_is_started_once_and_stopped(lab: Lab) -> None:
    assert not lab_is_up(lab)
    assert stop_lab(lab) is False
    pid = start_lab(lab)
    assert lab_is_up(lab)
    assert start_lab(lab) == pid
    assert stop_lab(lab) is True
    assert not lab_is_up(lab)
    assert not Path(f"/proc/{pid}").exists()


def test_a_pid_of_another_life_is_left_alone(lab: Lab) -> None:
    other = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        lab_root(lab).mkdir(parents=True)
        (lab_root(lab) / "pid").write_text(str(other.pid))
        (lab_root(lab) / "ready").touch()
        assert not lab_is_up(lab)
        assert stop_lab(lab) is False
        assert other.poll() is None
    finally:
        other.communicate()


@pytest.mark.parametrize("text", ["", "x", "-1", "999999999"])
def test_a_damaged_pid_file_is_no_lab(lab: Lab, text: str) -> None:
    lab_root(lab).mkdir(parents=True)
    (lab_root(lab) / "pid").write_text(text)
    assert not lab_is_up(lab)


def test_without_simulated_boards_nothing_is_started(tmp_path: Path) -> None:
    (tmp_path / "inventory.yaml").write_text(
        "boards: {a: {profile: generic-linux, host: 127.0.4.1, user: u}}\n"
    )
    with pytest.raises(FarmError, match="simulation"):
        start_lab(open_lab(tmp_path))


def test_a_lab_that_cannot_start_says_why(lab: Lab) -> None:
    root = lab.workspace.root
    text = (root / "inventory.yaml").read_text()
    pid = start_lab(lab)
    second = root / "second"
    second.mkdir()
    (second / "inventory.yaml").write_text(text)  # the same address, taken
    with pytest.raises(FarmError, match="did not start"):
        start_lab(open_lab(second))
    assert lab_is_up(lab)
    os.kill(pid, 0)
