"""A sweep over power modes that need reboots, on simulated boards that ask as Jetsons do."""

import signal
import subprocess
from pathlib import Path

import pytest

from tests.servers.printed import lines_until
from tests.servers.sim_workspace import SimWorkspace, make_sim_workspace, sim_lab

pytestmark = [pytest.mark.slow, pytest.mark.timeout(360)]

SWEEP = """\
name: %s
power_modes: [30W, maxn]
payloads:
  - payload: counting
    axes: {cell: [1], seconds: 0.3}
repeats: 1
measure: {window_s: 0.2, warmup_s: 0, idle_s: 0, power: "off"}
limits: {time_s: 30%s}
"""
DEFAULT, TOP = "MODE_30W", "MAXN"


def orins(root: Path, **quirks: str) -> SimWorkspace:
    """AGX Orins in their default mode, MODE_30W: board name -> quirk."""
    workspace = make_sim_workspace(root, boards=len(quirks))
    text = (root / "inventory.yaml").read_text().replace("generic-linux", "jetson-agx-orin-64gb")
    for number, (name, quirk) in enumerate(quirks.items(), start=1):
        settings = f"  {name}: {{simulation: {{quirks: [{quirk}]}}, "
        text = text.replace(f"  sim-{number}: {{", settings)
    (root / "inventory.yaml").write_text(text)
    workspace.boards = tuple(quirks)
    workspace.write_sweep("modes", SWEEP % ("modes", ", reboot: true"))
    workspace.write_sweep("careful", SWEEP % ("careful", ""))
    return workspace


def states(workspace: SimWorkspace) -> dict[tuple[object, object], object]:
    return {(one["board"], asked(one)): one["state"] for one in workspace.results()}


def reason(workspace: SimWorkspace, board: str, mode: str) -> str:
    found = [one for one in workspace.results() if (one["board"], asked(one)) == (board, mode)]
    return str(found[0]["reason"])


def asked(result: dict[str, object]) -> object:
    mode = result["power_mode"]
    assert isinstance(mode, dict)
    return mode["asked"]


def stored_mode(workspace: SimWorkspace, board: str) -> str:
    return (workspace.board_root(board) / "var/lib/nvpmodel/status").read_text().split()[0]


def boot_of(workspace: SimWorkspace, board: str) -> str:
    return (workspace.board_root(board) / "proc/sys/kernel/random/boot_id").read_text()


def test_boards_are_rebooted_into_modes_and_back(tmp_path: Path) -> None:
    workspace = orins(
        tmp_path,
        good="",
        sticky="sticky_mask",
        forgetful="status_lost_at_reboot",
        mute="no_sudo",
    )
    with sim_lab(workspace):
        boots = {board: boot_of(workspace, board) for board in workspace.boards}
        workspace.farm("run", "modes", "--plain", status=1, timeout_s=300)
        assert states(workspace) == {
            **{(board, "30W"): "done" for board in workspace.boards},
            ("good", "maxn"): "done",
            ("sticky", "maxn"): "done",
            ("forgetful", "maxn"): "failed",
            ("mute", "maxn"): "failed",
        }
        assert f"is in {DEFAULT}, not in {TOP}" in reason(workspace, "forgetful", "maxn")
        assert "farm boards sudoers" in reason(workspace, "mute", "maxn")
        for board in workspace.boards:
            if board != "forgetful":
                assert stored_mode(workspace, board) == "pmode:0002"
            assert (boot_of(workspace, board) == boots[board]) == (board == "mute")


def test_without_leave_no_board_is_rebooted(tmp_path: Path) -> None:
    workspace = orins(tmp_path, good="")
    with sim_lab(workspace):
        boot = boot_of(workspace, "good")
        workspace.farm("run", "careful", "--plain", status=1)
        assert states(workspace) == {("good", "30W"): "done", ("good", "maxn"): "failed"}
        assert "limits: {reboot: true}" in reason(workspace, "good", "maxn")
        assert boot_of(workspace, "good") == boot


def test_a_host_killed_while_the_board_reboots_goes_on_and_puts_it_back(tmp_path: Path) -> None:
    workspace = orins(tmp_path, good="")
    with sim_lab(workspace):
        process = subprocess.Popen(
            workspace.command("run", "modes", "--plain"),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        lines_until(process, f"into {TOP}")
        process.send_signal(signal.SIGKILL)
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait(timeout=30) == -signal.SIGKILL
        workspace.farm("resume", "last", "--plain", timeout_s=200)
        assert states(workspace) == {("good", "30W"): "done", ("good", "maxn"): "done"}
        assert stored_mode(workspace, "good") == "pmode:0002"
