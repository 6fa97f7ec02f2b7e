"""The host is killed and does not come back: the board puts mode, clocks and fan back itself."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.servers.sim_workspace import (
    COUNTING_YAML,
    SimWorkspace,
    private_network,
    sim_lab,
)

INVENTORY = """\
defaults: {{user: farm, identity_file: .farm/sim/client_key,
  known_hosts: .farm/sim/known_hosts, profile: jetson-tx2, simulation: {{}}}}
limits: {{keepalive_s: 1, keepalive_count: 2}}
boards:
  tx2: {{host: {net}.1, port: 2222}}
"""
SWEEP = """\
name: gone
power_modes: [MAXQ]
clocks: locked
fan: max
payloads:
  - payload: counting
    axes: {seconds: [0.1]}
repeats: 2
measure: {window_s: 0.1, warmup_s: 0, idle_s: 0, power: "off"}
limits: {time_s: 60, lease_s: 600}
"""
# The gate is a FIFO: its reader waits for us.
PAYLOAD = """\
import os
import farm_payload as farm

gate = os.environ["FARM_ROOT"] + "/var/gate"
with farm.window("measured"):
    if os.path.exists(gate):
        open(os.environ["FARM_ROOT"] + "/var/waits", "w").close()
        open(gate).read()
farm.metric("throughput", 10.0, "ops/s")
farm.metric("count", 10, "ops")
"""
FAN = "sys/devices/pwm-fan"


def until(is_so: Callable[[], object], what: str) -> None:
    """Wait for something on the board."""
    give_up = time.monotonic() + 90
    while not is_so():
        assert time.monotonic() < give_up, f"did not happen: {what}"
        time.sleep(0.05)


def read(path: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads(path.read_bytes())
    return found


def let_lease_run_out(work: Path) -> None:
    """As if its ten minutes had passed: the process on the board looks at it."""
    lease = work / "lease.json"
    lease.write_text(json.dumps({**read(lease), "expires_s": 0.0}))
    os.kill(int(str(read(work / "watchdog.lock")["pid"])), signal.SIGUSR1)


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_the_board_puts_itself_back_and_a_late_host_goes_on(tmp_path: Path) -> None:
    workspace = SimWorkspace(tmp_path, ("tx2",))
    (tmp_path / "inventory.yaml").write_text(INVENTORY.format(net=private_network()))
    workspace.write_payload("counting", {"payload.yaml": COUNTING_YAML, "run.py": PAYLOAD})
    workspace.write_sweep("gone", SWEEP)
    with sim_lab(workspace):
        root = workspace.board_root("tx2")
        status, work = root / "var/lib/nvpmodel/status", root / "home/.farm"
        found = status.read_text() if status.exists() else ""
        (root / "var").mkdir(exist_ok=True)
        os.mkfifo(root / "var/gate")
        process = subprocess.Popen(
            workspace.command("run", "gone", "--plain"),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        until((root / "var/waits").exists, "the payload runs")
        process.kill()
        process.communicate(timeout=60)
        changed = status.read_text()
        assert (root / FAN / "target_pwm").read_text().strip() == "255"
        let_lease_run_out(work)
        (root / "var/gate").write_text("")  # the payload ends
        (root / "var/gate").unlink()
        until(lambda: read(work / "restore.json")["done"], "the board puts itself back")
        assert (root / FAN / "temp_control").read_text().strip() == "1"
        assert status.read_text() != changed
        assert not found or status.read_text() == found
        text = workspace.farm("resume", "last", "--plain")
        assert "by the board's own watchdog" in text
        assert status.read_text() != changed
        assert (root / FAN / "temp_control").read_text().strip() == "1"
        assert not (work / "restore.json").exists()
