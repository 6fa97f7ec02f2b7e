"""Disks that fill up in the middle of a run: the board's, and the host's."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.servers.printed import lines_until
from tests.servers.sim_workspace import SimWorkspace, make_sim_workspace, sim_lab

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(400),
    pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small tmpfs needs root"),
]

WRITER_YAML = """\
name: writer
level: 1
summary: Leaves so many megabytes, and says so.
command: [python3, run.py]
parameters:
  megabytes: {type: int}
  cell: {type: int, default: 0}
metrics:
  throughput: {unit: ops/s, better: higher}
"""
WRITER_RUN = """\
import os
import time
from pathlib import Path

import farm_payload as farm

var = Path(os.environ["FARM_ROOT"], "var")
with open(var / "counter", "a") as counter:
    counter.write(os.environ["FARM_ATTEMPT"] + "\\n")
started = len((var / "counter").read_text().split())
while (var / "hold").exists() and started > 2 and not (var / "go").exists():
    time.sleep(0.05)
with farm.window("measured"):
    with open(farm.out_path("data.bin"), "wb") as file:
        for _ in range(farm.params()["megabytes"]):
            file.write(os.urandom(1 << 20))
            file.flush()
farm.metric("throughput", 10.0, "ops/s")
"""
SWEEP = """\
name: disks
payloads:
  - payload: writer
    axes: {megabytes: %s, cell: [1, 2, 3, 4]}
measure: {window_s: 0.0001, warmup_s: 0, idle_s: 0, power: "off"}
repeats: 1
limits: {time_s: 120, retries: 1, connect_retries: 1, store_wait_s: %s}
"""


@contextmanager
def small_disk(path: Path, size: str) -> Iterator[None]:
    path.mkdir(parents=True, exist_ok=True)
    mount("-t", "tmpfs", "-o", f"size={size},mode=755", "farm-test", str(path))
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)


def mount(*words: str) -> None:
    subprocess.run(["mount", *words], check=True)


def writing_workspace(
    root: Path, boards: int, megabytes: str, wait_s: float = 3600.0
) -> SimWorkspace:
    workspace = make_sim_workspace(root, boards=boards)
    yaml = WRITER_YAML + "artifacts: ['**']\n"
    workspace.write_payload("writer", {"payload.yaml": yaml, "run.py": WRITER_RUN})
    workspace.write_sweep("disks", SWEEP % (megabytes, wait_s))
    return workspace


def test_the_disk_of_one_board_is_full(tmp_path: Path) -> None:
    workspace = writing_workspace(tmp_path, 2, "3")
    with small_disk(workspace.board_root("sim-1"), "2m"), sim_lab(workspace):
        text = workspace.farm("run", "disks", "--plain", status=1)
        results = workspace.results()
    by_board = {board: [r for r in results if r["board"] == board] for board in workspace.boards}
    assert {one["state"] for one in by_board["sim-2"]} == {"done"}
    full = by_board["sim-1"]
    assert {one["state"] for one in full} <= {"failed", "pending"}
    for one in full:
        assert "disk" in str(one["reason"])
        assert "full" in str(one["reason"])
    assert "full" in text
    assert "internal error" not in text


@contextmanager
def run_into_a_full_disk(workspace: SimWorkspace) -> Iterator["subprocess.Popen[str]"]:
    """A run whose host's disk is full once each board has done two of its four trials."""
    with run_until_held(workspace) as process:
        fill(workspace.root / "results" / "ballast")
        let_go(workspace)
        yield process


@contextmanager
def run_until_held(workspace: SimWorkspace) -> Iterator["subprocess.Popen[str]"]:
    """A run whose boards have done two of their four trials, and wait with the third."""
    for board in workspace.boards:
        (workspace.board_root(board) / "var").mkdir(parents=True, exist_ok=True)
        (workspace.board_root(board) / "var" / "hold").touch()
    with subprocess.Popen(
        workspace.command("run", "disks", "--plain"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        lines_until(process, "[4/8]")
        yield process


def let_go(workspace: SimWorkspace) -> None:
    for board in workspace.boards:
        (workspace.board_root(board) / "var" / "go").touch()


def fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file:
        for size in (1 << 20, 4096, 1):
            with contextlib.suppress(OSError):
                while True:
                    file.write(b"x" * size)


def check_all_done_once(workspace: SimWorkspace) -> None:
    results = {one["trial"]: one for one in workspace.results()}
    assert {one["state"] for one in results.values()} == {"done"}
    assert {one["attempts"] for one in results.values()} == {1}
    started = sorted(line.split(".", 1)[1] for line in workspace.counted())
    assert started == sorted(f"{trial}-a1" for trial in results)
    for trial in results:
        folder = next((workspace.root / "results").glob(f"runs/*/attempts/{trial}-a1"))
        assert (folder / "artifacts" / "data.bin").stat().st_size == 1 << 20


def test_a_full_disk_of_the_host_is_waited_for(tmp_path: Path) -> None:
    workspace = writing_workspace(tmp_path, 2, "1")
    results_dir = workspace.root / "results"
    with small_disk(results_dir, "96m"), sim_lab(workspace):
        with run_into_a_full_disk(workspace) as process:
            text = lines_until(process, "store waits")
            assert "MB are missing" in text
            assert str(results_dir) in text
            (results_dir / "ballast").unlink()
            assert process.stdout is not None
            text = process.stdout.read()
            assert process.wait(timeout=60) == 0, text
        assert "store back" in text
        assert "store waits" not in text
        assert "internal error" not in text
        check_all_done_once(workspace)


def test_a_run_that_waits_for_room_can_be_stopped(tmp_path: Path) -> None:
    workspace = writing_workspace(tmp_path, 2, "1")
    results_dir = workspace.root / "results"
    with small_disk(results_dir, "96m"), sim_lab(workspace):
        with run_into_a_full_disk(workspace) as process:
            lines_until(process, "store waits")
            process.send_signal(signal.SIGINT)
            assert process.stdout is not None
            text = process.stdout.read()
            assert process.wait(timeout=60) == 130, text
        assert text.count(" restored") == 2, text
        assert "internal error" not in text
        (results_dir / "ballast").unlink()
        before = {one["trial"]: one for one in workspace.results() if one["state"] == "done"}
        assert 4 <= len(before) < 8
        workspace.farm("resume", "last", "--plain", timeout_s=200)
        after = {one["trial"]: one for one in workspace.results()}
    assert {one["state"] for one in after.values()} == {"done"}
    assert {trial: after[trial] for trial in before} == before


def test_the_wait_for_room_ends(tmp_path: Path) -> None:
    workspace = writing_workspace(tmp_path, 2, "1", wait_s=1.0)
    results_dir = workspace.root / "results"
    with (
        small_disk(results_dir, "96m"),
        sim_lab(workspace),
        run_into_a_full_disk(workspace) as process,
    ):
        assert process.stdout is not None
        text = process.stdout.read()
        assert process.wait(timeout=60) == 1, text
    assert "internal error" not in text
    assert str(results_dir) in text
    assert "store_wait_s" in text
    assert "farm resume" in text
