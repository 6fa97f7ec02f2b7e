"""The host is killed at random moments; every trial is done exactly once all the same."""

import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.servers.sim_workspace import SimWorkspace, make_sim_workspace, sim_lab

KILLS = 20
SWEEP = """\
name: kill
payloads:
  - payload: counting
    axes: {cell: [1, 2, 3, 4, 5, 6, 7, 8], seconds: 0.4}
repeats: 7
measure: {window_s: 0.3, warmup_s: 0, idle_s: 0, power: "off"}
limits: {time_s: 30}
"""


def start(workspace: SimWorkspace, *words: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        workspace.command(*words),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def kill_after(process: "subprocess.Popen[str]", chance: random.Random) -> str:
    """Kill at a random moment from the first connection on; what it printed until then."""
    assert process.stdout is not None
    seen = []
    for line in process.stdout:
        seen.append(line)
        if "board ready" in line:
            break
    time.sleep(chance.uniform(0.0, 1.6))  # the random moment: this test's very subject
    process.send_signal(signal.SIGKILL)
    rest = process.stdout.read()
    process.stdout.close()
    process.wait(timeout=30)
    return "".join(seen) + rest


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_twenty_kills_lose_and_repeat_nothing(tmp_path: Path) -> None:
    seed = int(os.environ.get("FARM_TEST_SEED", "20261130"))
    chance = random.Random(seed)
    workspace = make_sim_workspace(tmp_path, boards=3)
    workspace.write_sweep("kill", SWEEP)
    killed = 0
    with sim_lab(workspace):
        process = start(workspace, "run", "kill", "--plain")
        for _ in range(KILLS):
            text = kill_after(process, chance)
            assert "internal error" not in text, text
            killed += process.returncode == -signal.SIGKILL
            process = start(workspace, "resume", "last", "--plain")
        text, _ = process.communicate(timeout=200)
        assert process.returncode == 0, text
        results = workspace.results()
        counted = workspace.counted()
    assert killed >= KILLS - 2, f"seed {seed}: the run was over before it was killed"
    assert len(results) == 3 * 8 * 7
    assert {one["state"] for one in results} == {"done"}
    assert {one["attempts"] for one in results} == {1}
    started = sorted(line.split(".", 1)[1] for line in counted)
    assert started == sorted(f"{one['trial']}-a1" for one in results), f"seed {seed}"


@pytest.mark.slow
def test_ctrl_c_stops_restores_and_can_be_resumed(tmp_path: Path) -> None:
    workspace = make_sim_workspace(tmp_path, boards=2)
    workspace.write_sweep("kill", SWEEP.replace("repeats: 7", "repeats: 2"))
    with sim_lab(workspace):
        process = start(workspace, "run", "kill", "--plain")
        assert process.stdout is not None
        for line in process.stdout:
            if "[3/" in line:
                break
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
