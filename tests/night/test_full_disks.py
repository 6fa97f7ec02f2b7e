"""Disks that fill up in the middle of a run: the board's, and the host's."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.servers.sim_workspace import SimWorkspace, make_sim_workspace, sim_lab

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(240),
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
import farm_payload as farm

with open(os.environ["FARM_ROOT"] + "/var/counter", "a") as counter:
    counter.write(os.environ["FARM_ATTEMPT"] + "\\n")
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
limits: {time_s: 30, retries: 1, connect_retries: 1}
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


def writing_workspace(root: Path, boards: int, megabytes: str) -> SimWorkspace:
    workspace = make_sim_workspace(root, boards=boards)
    yaml = WRITER_YAML + "artifacts: ['**']\n"
    workspace.write_payload("writer", {"payload.yaml": yaml, "run.py": WRITER_RUN})
    workspace.write_sweep("disks", SWEEP % megabytes)
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


def test_the_disk_of_the_host_is_full(tmp_path: Path) -> None:
    workspace = writing_workspace(tmp_path, 2, "1")
    results_dir = workspace.root / "results"
    with small_disk(results_dir, "4m"), sim_lab(workspace):
        text = workspace.farm("run", "disks", "--plain", status=1)
        assert "internal error" not in text
        assert str(results_dir) in text
        assert "No space left" in text or "disk is full" in text
        assert "farm resume" in text
        before = {one["trial"]: one for one in workspace.results() if one["state"] == "done"}
        assert 0 < len(before) < 8
        mount("-o", "remount,size=64m", str(results_dir))
        workspace.farm("resume", "last", "--plain")
        after = {one["trial"]: one for one in workspace.results()}
        counted = workspace.counted()
        for one in after.values():
            folder = next(results_dir.glob(f"runs/*/attempts/{one['trial']}-a1"))
            assert (folder / "artifacts" / "data.bin").stat().st_size == 1 << 20
    assert {one["state"] for one in after.values()} == {"done"}
    assert {trial: after[trial] for trial in before} == before
    assert {one["attempts"] for one in after.values()} == {1}
    started = sorted(line.split(".", 1)[1] for line in counted)
    assert started == sorted(f"{trial}-a1" for trial in after)
