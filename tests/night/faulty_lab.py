"""A simulated lab in which nearly every board has a fault of its own, and one sweep over it."""

import contextlib
import os
import re
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import asyncssh

from tests.servers.sim_workspace import SimWorkspace, make_sim_workspace, private_network, sim_lab

OUTPUT_MB, FLOOD_MB = 1, 100
MEMORY_MB = 150
RUN_LIMIT_S = 160.0

BOARDS = {
    "good": "simulation: {}",
    "off": "",
    "unknown-key": "simulation: {}, known_hosts: .farm/sim/hosts_unknown",
    "changed-key": "simulation: {}, known_hosts: .farm/sim/hosts_changed",
    "no-python": "simulation: {}, python: python9",
    "no-login": "simulation: {}, identity_file: .farm/sim/other_key",
    "meter-refuses": "simulation: {}, meter: plug-refuses",
    "meter-mute": "simulation: {}, meter: plug-mute",
    "exits": "simulation: {}",
    "floods": "simulation: {}",
    "hangs": "simulation: {}",
    "eats": "simulation: {}",
}
UNREACHED = ("off", "unknown-key", "changed-key", "no-python", "no-login")
UNMETERED = ("meter-refuses", "meter-mute")
HEALTHY = ("good", "exits", "floods", "hangs", "eats")

TROUBLE_YAML = f"""\
name: trouble
level: 1
summary: Does what its parameter says, none of it good.
command: [python3, run.py]
parameters:
  kind: {{type: str, choices: [exits, floods, hangs, eats]}}
metrics:
  throughput: {{unit: ops/s, better: higher}}
memory_limit_mb: {MEMORY_MB}
"""
TROUBLE_RUN = f"""\
import os, signal, sys, time
import farm_payload as farm

def exits():
    print("cannot find the frobnicator", file=sys.stderr)
    sys.exit(1)

def floods():
    with farm.window("measured"):
        line = b"x" * 1023 + b"\\n"
        sys.stdout.buffer.write(b"the first line\\n")
        for _ in range({FLOOD_MB} * 1024):
            sys.stdout.buffer.write(line)
        sys.stdout.buffer.write(b"the last line\\n")
        sys.stdout.buffer.flush()
        time.sleep(0.4)
    farm.metric("throughput", 10.0, "ops/s")

def hangs():
    for _ in range(3):
        if os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            os.setsid()
            if os.fork() == 0:
                os.setsid()
            break
    with open(os.environ["FARM_ROOT"] + "/var/hanging", "a") as pids:
        pids.write("%d\\n" % os.getpid())
    while True:
        time.sleep(3600)

def eats():
    eaten = []
    while len(eaten) < 200:
        eaten.append(bytearray(os.urandom(1 << 20)) * 10)
        time.sleep(0.03)

globals()[farm.params()["kind"]]()
"""
SWEEP = """\
name: faults
payloads:
  - {payload: trouble, boards: [exits], axes: {kind: exits}, priority: 1}
  - {payload: trouble, boards: [floods], axes: {kind: floods}, priority: 1}
  - {payload: trouble, boards: [hangs], axes: {kind: hangs}, priority: 1}
  - {payload: trouble, boards: [eats], axes: {kind: eats}, priority: 1}
  - {payload: counting, axes: {cell: [1, 2], seconds: 0.3}}
repeats: 1
measure: {window_s: 0.2, warmup_s: 0, idle_s: 0, telemetry: "off"}
limits: {time_s: 6, retries: 2, connect_retries: 1, output_mb: %d}
"""


@dataclass(frozen=True)
class FaultyRun:
    """The lab, still up, and how the sweep over it went."""

    workspace: SimWorkspace
    status: int
    text: str
    peak_mb: float
    results: list[dict[str, object]]

    def of(self, board: str, payload: str = "counting") -> list[dict[str, object]]:
        """The results of one board's trials of a payload."""
        mine = (one for one in self.results if one["board"] == board)
        return [one for one in mine if one["payload"] == payload]

    def message(self, board: str) -> str:
        """What the run says at its end of a board that it gave up."""
        lines = [line for line in self.text.splitlines() if line.startswith(f"  {board}: ")]
        assert len(lines) == 1, self.text
        return lines[0].strip()


def wait_for(process: "subprocess.Popen[bytes]", limit_s: float) -> tuple[int, float]:
    """Exit status and peak resident MB. The process is killed at the limit.

    The peak is the kernel's VmHWM, read while it runs: ru_maxrss also holds what this very
    process had when it forked.
    """
    end, peak_mb = time.monotonic() + limit_s, 0.0
    while process.poll() is None:
        peak_mb = max(peak_mb, peak_of(process.pid))
        if time.monotonic() > end:
            process.kill()
        threading.Event().wait(0.05)
    return process.returncode, peak_mb


def peak_of(pid: int) -> float:
    """Peak resident MB of a live process that has begun its own program; else 0."""
    try:
        if b"farm" not in Path(f"/proc/{pid}/cmdline").read_bytes():
            return 0.0
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0.0
    found = re.search(r"VmHWM:\s+(\d+) kB", text)
    return int(found.group(1)) / 1024 if found else 0.0


def run_measured(workspace: SimWorkspace, log: Path, *words: str) -> tuple[int, str, float]:
    """`farm WORDS`: exit status, what it printed, and its peak resident MB."""
    with log.open("wb") as out:
        process = subprocess.Popen(
            workspace.command(*words),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            env={**os.environ, "COLUMNS": "200"},
        )
        status, peak_mb = wait_for(process, RUN_LIMIT_S)
    return status, log.read_text("utf-8", "replace"), peak_mb


@contextlib.contextmanager
def faulty_run(root: Path) -> Iterator[FaultyRun]:
    """The whole sweep, run once."""
    workspace = make_sim_workspace(root, boards=1)
    workspace.boards = tuple(BOARDS)
    workspace.write_payload("trouble", {"payload.yaml": TROUBLE_YAML, "run.py": TROUBLE_RUN})
    workspace.write_sweep("faults", SWEEP % OUTPUT_MB)
    net = private_network()
    with mute_server(f"{net}.250") as mute_port:
        (root / "inventory.yaml").write_text(inventory(net, mute_port))
        with sim_lab(workspace):
            spoil_keys(root, net)
            words = ("run", "faults", "--plain")
            status, text, peak_mb = run_measured(workspace, root / "log", *words)
            yield FaultyRun(workspace, status, text, peak_mb, workspace.results())


def inventory(net: str, mute_port: int) -> str:
    """The inventory's text; `off` has an address at which nobody listens."""
    lines = [
        "defaults: {user: farm, identity_file: .farm/sim/client_key, "
        "known_hosts: .farm/sim/known_hosts, profile: generic-linux}",
        "limits: {keepalive_s: 1, keepalive_count: 2, starts_per_s: 200}",
        "boards:",
    ]
    for number, (name, more) in enumerate(BOARDS.items(), start=1):
        extra = f", {more}" if more else ""
        lines.append(f"  {name}: {{host: {net}.{number}, port: 2222{extra}}}")
    lines += [
        "meters:",
        f"  plug-refuses: {{kind: shelly, host: {net}.249, port: 8080, deadline_s: 0.5}}",
        f"  plug-mute: {{kind: shelly, host: {net}.250, port: {mute_port}, deadline_s: 0.5}}",
    ]
    return "\n".join(lines) + "\n"


def spoil_keys(root: Path, net: str) -> None:
    """After the lab is up: forget one host key, change another, lose a login."""
    folder = root / ".farm" / "sim"
    (folder / "hosts_unknown").write_text("")
    number = list(BOARDS).index("changed-key") + 1
    other = asyncssh.generate_private_key("ssh-ed25519")
    line = f"[{net}.{number}]:2222 {other.export_public_key().decode()}"
    (folder / "hosts_changed").write_text(line)
    other.write_private_key(folder / "other_key")


@contextlib.contextmanager
def mute_server(host: str) -> Iterator[int]:
    """A port that takes connections and never says a word."""
    with socket.create_server((host, 0), backlog=64) as server:
        yield server.getsockname()[1]
