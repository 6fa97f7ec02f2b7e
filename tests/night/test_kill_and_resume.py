"""The host is killed at random moments; every trial is done exactly once all the same."""

import os
import random
import signal
from pathlib import Path

import pytest

from tests.night.host_kills import SWEEP, check_each_once, run_with_kills, start
from tests.servers.printed import lines_until
from tests.servers.sim_workspace import make_sim_workspace, sim_lab

KILLS = 20


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_twenty_kills_lose_and_repeat_nothing(tmp_path: Path) -> None:
    seed = int(os.environ.get("FARM_TEST_SEED", "20261130"))
    chance = random.Random(seed)
    workspace = make_sim_workspace(tmp_path, boards=3)
    workspace.write_sweep("kill", SWEEP)
    with sim_lab(workspace):
        killed = run_with_kills(workspace, KILLS, chance, timeout_s=200)
        assert killed >= KILLS - 2, f"seed {seed}: the run was over before it was killed"
        check_each_once(workspace, 3 * 8 * 7)


@pytest.mark.slow
def test_ctrl_c_stops_restores_and_can_be_resumed(tmp_path: Path) -> None:
    workspace = make_sim_workspace(tmp_path, boards=2)
    workspace.write_sweep("kill", SWEEP.replace("repeats: 7", "repeats: 2"))
    with sim_lab(workspace):
        process = start(workspace, "run", "kill", "--plain")
        lines_until(process, "[3/")
        assert process.stdout is not None
        process.send_signal(signal.SIGINT)
        text = process.stdout.read()
        process.stdout.close()
        assert process.wait(timeout=60) == 130
        assert "farm resume" in text
        assert text.count("restored") == 2
        states = [one["state"] for one in workspace.results()]
        assert "running" not in states
        assert states.count("pending") >= 1
        text = workspace.farm("resume", "last", "--plain")
        assert {one["state"] for one in workspace.results()} == {"done"}


@pytest.mark.slow
def test_a_second_process_is_told_who_holds_the_run_and_the_board(tmp_path: Path) -> None:
    workspace = make_sim_workspace(tmp_path, boards=1)
    workspace.write_sweep("kill", SWEEP.replace("seconds: 0.4", "seconds: 30"))
    with sim_lab(workspace):
        first = start(workspace, "run", "kill", "--plain")
        assert first.stdout is not None
        for line in first.stdout:
            if "board ready" in line:
                break
        text = workspace.farm("resume", "last", "--plain", status=2)
        assert f"process {first.pid} on" in text
        text = workspace.farm("run", "kill", "--plain", status=None)
        assert f"pid {first.pid}" in text
        assert "lease" in text
        first.send_signal(signal.SIGINT)
        first.stdout.read()
        first.stdout.close()
        assert first.wait(timeout=60) == 130
