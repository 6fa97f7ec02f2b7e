"""A workspace with a simulated lab of its own on loopback addresses nobody else uses."""

import contextlib
import json
import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

COUNTING_RUN = """\
import os, time
import farm_payload as farm

with open(os.environ["FARM_ROOT"] + "/var/counter", "a") as counter:
    counter.write(os.environ["FARM_ATTEMPT"] + "\\n")
    counter.flush()
    os.fsync(counter.fileno())
with farm.window("measured"):
    time.sleep(float(farm.params()["seconds"]))
farm.metric("throughput", 10.0, "ops/s")
farm.metric("count", 10, "ops")
"""
COUNTING_YAML = """\
name: counting
level: 1
summary: Counts its own starts on the board.
command: [python3, run.py]
parameters:
  seconds: {type: float, default: 0.2}
  cell: {type: int, default: 0}
metrics:
  throughput: {unit: ops/s, better: higher}
  count: {unit: ops}
inferences: count
"""


@dataclass
class SimWorkspace:
    """A folder with inventory, payload and sweep; `farm` runs the command in it."""

    root: Path
    boards: tuple[str, ...]

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "farm", *words, "-w", str(self.root)]

    def farm(self, *words: str, status: int | None = 0, timeout_s: float = 100) -> str:
        """stdout and stderr together; the exit status is checked unless `status` is None."""
        done = subprocess.run(
            self.command(*words),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
            env={**os.environ, "COLUMNS": "200"},
        )
        text = done.stdout + done.stderr
        if status is not None:
            assert done.returncode == status, text
        return text

    def results(self, run: str = "last") -> list[dict[str, object]]:
        done = subprocess.run(
            self.command("results", run, "--json"), capture_output=True, check=True, timeout=60
        )
        found: list[dict[str, object]] = json.loads(done.stdout)
        return found

    def show(self, run: str = "last") -> dict[str, object]:
        """`farm runs show --json`."""
        done = subprocess.run(
            self.command("runs", "show", run, "--json"),
            capture_output=True,
            check=True,
            timeout=60,
        )
        found: dict[str, object] = json.loads(done.stdout)
        return found

    def counted(self) -> list[str]:
        """Every start that the boards counted: ``<run>.<attempt>``."""
        lines: list[str] = []
        for board in self.boards:
            path = self.board_root(board) / "var" / "counter"
            if path.exists():
                lines += path.read_text().split()
        return lines

    def board_root(self, board: str) -> Path:
        return self.root / ".farm" / "sim" / "boards" / board

    def write_sweep(self, name: str, text: str) -> None:
        path = self.root / "sweeps" / f"{name}.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

    def write_payload(self, name: str, files: dict[str, str]) -> None:
        folder = self.root / "payloads" / name
        folder.mkdir(parents=True, exist_ok=True)
        for file, text in files.items():
            (folder / file).write_text(text)


def private_network() -> str:
    """The first three numbers of loopback addresses that nobody else is likely to use."""
    return f"127.{10 + secrets.randbelow(240)}.{secrets.randbelow(250)}"


def make_sim_workspace(root: Path, boards: int = 3, *, metered: bool = False) -> SimWorkspace:
    """Boards `sim-1` ... of generic-linux, the payload `counting`."""
    net = private_network()
    names = tuple(f"sim-{number}" for number in range(1, boards + 1))
    lines = [
        "defaults: {user: farm, identity_file: .farm/sim/client_key, "
        "known_hosts: .farm/sim/known_hosts, profile: generic-linux, simulation: {}}",
        "limits: {keepalive_s: 1, keepalive_count: 2, starts_per_s: 200}",
        "boards:",
    ]
    for number, name in enumerate(names, start=1):
        meter = f", meter: plug-{name}" if metered else ""
        lines.append(f"  {name}: {{host: {net}.{number}, port: 2222{meter}}}")
    if metered:
        lines.append("meters:")
        for number, name in enumerate(names, start=1):
            lines.append(
                f"  plug-{name}: {{kind: shelly, host: {net}.{number}, port: 8080, poll_hz: 20, "
                "update_s: 0.05, averaging_s: 0.05, lag_s: 0.025, simulation: {refresh_s: 0.05}}"
            )
    root.mkdir(parents=True, exist_ok=True)
    (root / "inventory.yaml").write_text("\n".join(lines) + "\n")
    workspace = SimWorkspace(root, names)
    workspace.write_payload("counting", {"payload.yaml": COUNTING_YAML, "run.py": COUNTING_RUN})
    return workspace


@contextlib.contextmanager
def sim_lab(workspace: SimWorkspace) -> Iterator[SimWorkspace]:
    """The workspace with its lab up."""
    workspace.farm("sim", "up")
    try:
        yield workspace
    finally:
        workspace.farm("sim", "down")
