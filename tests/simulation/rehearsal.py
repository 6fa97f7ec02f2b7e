"""A lab in which each board has one fault of its own, and a sweep over it, run once."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from farm.pipeline.lab import open_lab
from farm.pipeline.sim_faults import load_scenario, tell_lab
from tests.servers.sim_workspace import SimWorkspace, make_sim_workspace, private_network, sim_lab

FAULTS: Mapping[str, str] = {
    "link_drop": "in_payload: true, for_s: 1.5",
    "half_open": "in_payload: true, for_s: 4",
    "latency": "parameters: {delay_ms: 40, jitter_ms: 20}",
    "packet_loss": "parameters: {loss_pct: 5}",
    "slow_board": "in_payload: true, parameters: {share: 0.5}",
    "hang": "in_payload: true, for_s: 3.5",
    "reboot": "in_payload: true",
    "reboot_loop": "in_payload: true, for_s: 3, parameters: {every_s: 0.5}",
    "power_loss": "in_payload: true, parameters: {lost_s: 3600}",
    "wrong_host_key": "",
    "clock_jump": "parameters: {jump_s: -86400}",
    "throttle": "",
    "sudo_gone": "",
    "payload_oom": "",
    "meter_frozen": "in_payload: true, for_s: 2.5",
    "meter_zero": "in_payload: true, for_s: 2.5",
    "meter_gone": "in_payload: true, for_s: 2.5",
    "meter_slow": "in_payload: true, for_s: 2.5, parameters: {delay_s: 5}",
}
"""A board of this name has this fault."""
WAITING_YAML = """\
name: waiting
level: 1
summary: Waits in its window until its board has had its fault, and a second more.
command: [python3, run.py]
metrics:
  throughput: {unit: ops/s, better: higher}
"""
WAITING_RUN = """\
import json, os, time
import farm_payload as farm

root = os.environ["FARM_ROOT"]
board = os.path.basename(root)
with open(root + "/var/counter", "a") as counter:
    counter.write(os.environ["FARM_ATTEMPT"] + "\\n")
with farm.window("measured"):
    end = time.monotonic() + 60
    while time.monotonic() < end:
        with open(root + "/../../faults.jsonl") as log:
            lines = [json.loads(line) for line in log if line.endswith("\\n")]
        if any(line["board"] == board and line["event"] == "begin" for line in lines):
            break
        time.sleep(0.05)
    time.sleep(1.2)
farm.metric("throughput", 10.0, "ops/s")
"""
SWEEP = """\
name: rehearsal
payloads:
  - {payload: waiting}
repeats: 1
measure: {window_s: 0.2, warmup_s: 0, idle_s: 0}
limits:
  time_s: 90
  retries: 8
  requeues: 0
  recovery: {quarantines_per_board: 1, rest_s: 1, last_chance_s: 0, lab_wait_s: 0}
"""


@dataclass(frozen=True)
class Rehearsal:
    """The lab, still up, and how the sweep over it went."""

    workspace: SimWorkspace
    text: str
    results: dict[str, dict[str, object]]
    marks: list[dict[str, object]]

    def of(self, board: str) -> dict[str, object]:
        """The result of the board's one trial."""
        return self.results[board]

    def starts(self, board: str) -> int:
        """How often the board began the payload."""
        return len((self.workspace.board_root(board) / "var" / "counter").read_text().split())

    def said_of(self, board: str) -> str:
        """The run's lines about a board."""
        return "\n".join(line for line in self.text.splitlines() if board in line)

    def events(self, board: str) -> list[object]:
        """What the lab's log says of the board's fault."""
        return [mark["event"] for mark in self.marks if mark["board"] == board]


@contextmanager
def rehearsed(root: Path) -> Iterator[Rehearsal]:
    """The whole sweep, run once."""
    workspace = make_sim_workspace(root, boards=1)
    boards = list(FAULTS)
    workspace.boards = tuple(boards)
    (root / "inventory.yaml").write_text(_inventory(boards))
    workspace.write_payload("waiting", {"payload.yaml": WAITING_YAML, "run.py": WAITING_RUN})
    workspace.write_sweep("rehearsal", SWEEP)
    (root / "scenario.yaml").write_text(_scenario(boards))
    with sim_lab(workspace):
        workspace.farm("boards", "probe", "power_loss")  # brings farm's agent there
        _grow_old(workspace.board_root("power_loss"))
        lab = open_lab(root)
        tell_lab(lab, load_scenario(lab, root / "scenario.yaml"))
        text = workspace.farm("run", "rehearsal", "--plain", status=None, timeout_s=200)
        lines = (root / ".farm" / "sim" / "faults.jsonl").read_text().splitlines()
        results = {str(one["board"]): one for one in workspace.results()}
        yield Rehearsal(workspace, text, results, [json.loads(line) for line in lines])


def _grow_old(root: Path) -> None:
    """Let all files of a board have been written long ago."""
    for path in root.rglob("*"):
        if path.is_file() and not path.is_symlink():
            os.utime(path, (1e9, 1e9))


def _inventory(boards: list[str]) -> str:
    net = private_network()
    lines = [
        "defaults: {user: farm, identity_file: .farm/sim/client_key, "
        "known_hosts: .farm/sim/known_hosts, profile: generic-linux, simulation: {}}",
        "limits: {keepalive_s: 1, keepalive_count: 2, starts_per_s: 200}",
        "boards:",
    ]
    metered = [name for name in boards if name.startswith("meter_")]
    for number, name in enumerate(boards, start=1):
        meter = f", meter: plug-{name}" if name in metered else ""
        lines.append(f"  {name}: {{host: {net}.{number}, port: 2222{meter}}}")
    lines.append("meters:")
    for number, name in enumerate(metered, start=1):
        lines.append(
            f"  plug-{name}: {{kind: shelly, host: {net}.{number + 100}, port: 8080, poll_hz: 20, "
            "update_s: 0.05, averaging_s: 0.05, lag_s: 0.025, min_w: 0.5, deadline_s: 1, "
            "simulation: {refresh_s: 0.05}}"
        )
    return "\n".join(lines) + "\n"


def _scenario(boards: list[str]) -> str:
    entries = []
    for kind in boards:
        more = f", {FAULTS[kind]}" if FAULTS[kind] else ""
        entries.append(f"  - {{board: {kind}, kind: {kind}{more}}}\n")
    return "name: all\nfaults:\n" + "".join(entries)
