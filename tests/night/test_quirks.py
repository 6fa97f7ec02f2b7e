"""Boards with bad manners in one sweep: each ends with its own clear word, and stops no other."""

import re
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from farm.drivers.power_modes.nvpmodel import QUERY_TIMEOUT_S
from farm.simulation.board_commands.nvpmodel import SLOW_QUERY_S
from farm.simulation.board_root import BOOTS_FILE
from tests.servers.sim_workspace import (
    COUNTING_RUN,
    COUNTING_YAML,
    SimWorkspace,
    private_network,
    sim_lab,
)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(360)]

SWEEP = """\
name: quirks
power_modes: [maxp, maxq]
payloads:
  - payload: counting
    axes: {cell: [1], seconds: 0.3}
repeats: 1
measure: {window_s: 0.2, warmup_s: 0, idle_s: 0, power: "off"}
limits: {time_s: 60}
"""
CONF, STATUS = "etc/nvpmodel.conf", "var/lib/nvpmodel/status"
NANO, ORIN = "jetson-nano", "jetson-orin-nano-4gb"
BOARDS = {
    "good": (NANO, ""),
    "asks": (NANO, "prompt_for_current"),
    "refuses": (NANO, "refuse_mode"),
    "hides": (NANO, "refuse_mode, exit_zero_with_errors"),
    "stays": (NANO, "refuse_return"),
    "warns": (ORIN, "fan_warning"),
    "unset": (ORIN, "boot_service_failed"),
    "no-conf": (NANO, ""),
    "no-store": (NANO, ""),
}
"""Name -> profile, quirks. The last two are spoilt once they are up."""


class Night(NamedTuple):
    """The lab, still up, how the run ended, and what it printed."""

    workspace: SimWorkspace
    printed: str
    results: dict[tuple[object, object], dict[str, object]]

    def state(self, board: str) -> tuple[object, object]:
        """The states of the trials in the default mode and in the thriftiest."""
        return self.results[board, "maxp"]["state"], self.results[board, "maxq"]["state"]

    def reason(self, board: str) -> str:
        """Why the trial in the thriftiest mode did not run."""
        return str(self.results[board, "maxq"]["reason"])


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Night]:
    root = tmp_path_factory.mktemp("quirks")
    net = private_network()
    lines = [
        "defaults: {user: farm, port: 2222, identity_file: .farm/sim/client_key, "
        "known_hosts: .farm/sim/known_hosts}",
        "boards:",
    ]
    for number, (name, (profile, quirks)) in enumerate(BOARDS.items(), start=1):
        simulation = f"simulation: {{quirks: [{quirks}]}}"
        lines.append(f"  {name}: {{profile: {profile}, host: {net}.{number}, {simulation}}}")
    (root / "inventory.yaml").write_text("\n".join(lines) + "\n")
    workspace = SimWorkspace(root, tuple(BOARDS))
    workspace.write_payload("counting", {"payload.yaml": COUNTING_YAML, "run.py": COUNTING_RUN})
    workspace.write_sweep("quirks", SWEEP)
    with sim_lab(workspace):
        # Root reads and writes any file, so that permissions would spoil nothing here.
        for board, path in (("no-conf", CONF), ("no-store", STATUS)):
            file = workspace.board_root(board) / path
            file.unlink()
            file.mkdir()
        printed = workspace.farm("run", "quirks", "--plain", status=1, timeout_s=300)
        results = {}
        for one in workspace.results():
            mode = one["power_mode"]
            assert isinstance(mode, dict)
            results[one["board"], mode["asked"]] = one
        yield Night(workspace, printed, results)


@pytest.mark.parametrize("board", ["good", "asks", "warns"])
def test_manners_that_harm_nothing(night: Night, board: str) -> None:
    """Also the question for the mode that is set: a mode in force is not set again."""
    assert night.state(board) == ("done", "done")
    boots = night.workspace.board_root(board) / BOOTS_FILE.lstrip("/")
    assert len(boots.read_text().split()) == 1
    assert re.search(rf"{board} +restored", night.printed)


@pytest.mark.parametrize("board", ["refuses", "hides"])
def test_a_refused_mode_is_told_whatever_the_exit_status_says(night: Night, board: str) -> None:
    assert night.state(board) == ("done", "failed")
    seen = "set power mode 5W: read back MAXN (0) in place of (1): the kernel knows no such device"
    assert seen in night.reason(board)
    assert "Error writing 1 to /sys/devices/system/cpu/cpu0/online: 19" in night.reason(board)


def test_a_board_that_cannot_go_back_is_named(night: Night) -> None:
    assert night.state("stays") == ("done", "done")
    assert "stays was not put back to MAXN: set power mode MAXN: read back 5W" in night.printed


def test_a_mask_that_a_failed_boot_left_wants_a_reboot(night: Night) -> None:
    assert night.state("unset") == ("failed", "failed")
    assert "needs a reboot, which the sweep does not allow" in night.reason("unset")
    assert "limits: {reboot: true}" in night.reason("unset")


def test_a_conf_that_cannot_be_read_is_named(night: Night) -> None:
    assert night.state("no-conf") == ("pending", "pending")
    assert "/etc/nvpmodel.conf is not there or cannot be read" in night.printed


def test_a_status_file_that_cannot_be_written_is_named(night: Night) -> None:
    assert night.state("no-store") == ("done", "failed")
    assert "/var/lib/nvpmodel/status cannot be written" in night.reason("no-store")
    assert "read-only or volatile" in night.reason("no-store")


def test_a_query_may_hang_as_long_as_it_was_seen_to() -> None:
    assert QUERY_TIMEOUT_S > 2 * SLOW_QUERY_S
