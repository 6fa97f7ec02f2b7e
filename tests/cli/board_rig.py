"""A simulated lab with good boards and one of each fault, for the commands that reach boards."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.cli.lab_files import farm
from tests.servers.sim_workspace import SimWorkspace, private_network, sim_lab

INVENTORY = """\
defaults:
  user: farm
  identity_file: .farm/sim/client_key
  known_hosts: .farm/sim/known_hosts
limits: {{keepalive_s: 1, keepalive_count: 2, starts_per_s: 200, login_timeout_s: 20}}
boards:
  tx2-01: {{profile: jetson-tx2, host: {net}.1, port: 2222, meter: plug-01, simulation: {{}}}}
  nano-01: {{profile: jetson-nano, host: {net}.2, port: 2222, meter: mute-01, simulation: {{}}}}
  pc-01: {{profile: generic-linux, host: {net}.3, port: 2222, simulation: {{}}}}
  bare-01:
    {{profile: generic-linux, host: {net}.4, port: 2222, python: no-such-python, simulation: {{}}}}
  orin-01: {{profile: jetson-orin-nx-16gb, host: {net}.7, port: 2222, simulation: {{}}}}
  off-01: {{profile: jetson-tx2, host: {net}.5, port: 2222}}
meters:
  plug-01:
    {{kind: shelly, host: {net}.1, port: 8080, poll_hz: 20, update_s: 0.05, averaging_s: 0.05,
     lag_s: 0.025, simulation: {{refresh_s: 0.05}}}}
  mute-01: {{kind: shelly, host: {net}.6, port: 8080}}
"""


@dataclass
class BoardRig:
    """The lab, and how to break a board's sudo."""

    workspace: SimWorkspace

    def farm(self, *words: str, status: int = 0) -> str:
        """stdout, then stderr, of a command in this process; its exit code is checked."""
        place = words.index("--") if "--" in words else len(words)
        answer = farm(*words[:place], "-w", self.workspace.root, *words[place:])
        text = answer.out + answer.err
        assert answer.code == status, text
        return text

    def note(self, name: str) -> dict[str, object]:
        """A file of results/boards/."""
        path = self.workspace.root / "results" / "boards" / name
        found: dict[str, object] = json.loads(path.read_text("utf-8"))
        return found

    def put_sudo(self, board: str, script: str) -> str:
        """Replace a board's sudo; returns the script that was there, to put it back."""
        path = self.workspace.board_root(board) / "bin" / "sudo"
        before = path.read_text("utf-8")
        path.write_text(script, "utf-8")
        return before

    def file(self, board: str, on_board: str) -> Path:
        return self.workspace.board_root(board) / on_board.lstrip("/")


def board_rig(folder: Path) -> Iterator[BoardRig]:
    """The lab is up meanwhile."""
    folder.mkdir()
    (folder / "inventory.yaml").write_text(INVENTORY.format(net=private_network()))
    names = ("tx2-01", "nano-01", "pc-01", "bare-01", "orin-01", "off-01")
    with sim_lab(SimWorkspace(folder, names)) as workspace:
        yield BoardRig(workspace)
