"""A simulated Jetson that throttles: the trial is judged, rests, and is run again."""

from pathlib import Path

import pytest

from farm.store.telemetry_traces import TELEMETRY, read_telemetry
from tests.servers.sim_workspace import make_sim_workspace, sim_lab

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

YAML = """\
name: hot
level: 1
summary: Throttles its board the first time.
command: [sh, run.sh]
metrics: {count: {unit: ops}}
"""
COOLING = "/sys/class/thermal/cooling_device0"
RUN = f"""\
. "$FARM_SH"
state="$FARM_ROOT{COOLING}/cur_state"
farm_window_begin measured
[ -e "$FARM_ROOT/var/ran" ] || echo 3 >"$state"
: >"$FARM_ROOT/var/ran"
sleep 1.5
echo 0 >"$state"
farm_window_end measured
farm_metric count 3 ops
"""
SWEEP = """\
name: hot
payloads: [{payload: hot}]
repeats: 1
measure:
  window_s: 1
  warmup_s: 0
  idle_s: 0
  power: "off"
  telemetry: {rate_hz: 10}
  settle: {cool_down_s: 0.1}
limits: {time_s: 60, requeues: 9}
"""


def test_a_throttled_trial_is_suspect_and_run_again(tmp_path: Path) -> None:
    workspace = make_sim_workspace(tmp_path, boards=1)
    inventory = tmp_path / "inventory.yaml"
    inventory.write_text(inventory.read_text().replace("generic-linux", "jetson-tx2"))
    workspace.write_payload("hot", {"payload.yaml": YAML, "run.sh": RUN})
    workspace.write_sweep("hot", SWEEP)
    cooling = workspace.board_root("sim-1") / COOLING.lstrip("/")
    cooling.mkdir(parents=True)
    (cooling / "type").write_text("thermal-cpufreq-0\n")
    (cooling / "cur_state").write_text("0\n")
    with sim_lab(workspace):
        text = workspace.farm("run", "hot", "--plain", timeout_s=200)
    assert "0.1 s of rest before the next" in text
    (result,) = workspace.results()
    assert result["state"] == "done"
    attempts = sorted(tmp_path.glob("results/runs/*/attempts/*"))
    assert len(attempts) == result["attempts"]
    assert len(attempts) >= 2
    assert '"throttled"' in (attempts[0] / "attempt.json").read_text()
    trace = read_telemetry(attempts[0] / TELEMETRY)
    assert 3.0 in dict(trace.known("cooling_state:thermal-cpufreq-0-0")).values()
    assert trace.source == "tegrastats"
    assert "VDD_IN" in trace.named("rail_mw")
    assert result["power"] is None  # rails are no watts of the socket
