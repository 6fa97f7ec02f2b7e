"""A simulated lab with real faults: links that vanish together, boards that hang."""

from collections.abc import Iterator

import pytest

from tests.servers.sim_workspace import SimWorkspace, make_sim_workspace, sim_lab

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

SWEEP = """\
name: %s
spread: %s
payloads:
  - payload: counting
    axes: {cell: [%s], seconds: %s}
repeats: 1
measure: {window_s: %s, warmup_s: 0, idle_s: 0, telemetry: "off", power: %s}
limits:
  time_s: 60
  connect_retries: 1
  reboot_s: 120
  recovery: {patience_s: 0, off_s: 1, rest_s: 1, last_chance_s: 0, together_s: %s}
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimWorkspace]:
    """Three boards, each with a plug; only that of the first is said to be an outlet."""
    workspace = make_sim_workspace(tmp_path_factory.mktemp("recovery"), 3, metered=True)
    inventory = workspace.root / "inventory.yaml"
    text = inventory.read_text()
    plug = "meter: plug-sim-1"
    inventory.write_text(text.replace(f"{plug}}}", f"{plug}, outlet: plug-sim-1}}"))
    with sim_lab(workspace):
        yield workspace


def test_boards_that_vanish_together_are_waited_for(lab: SimWorkspace) -> None:
    lab.write_sweep("gone", SWEEP % ("gone", "every", "1", "1", "0.3", '"off"', "60"))
    lab.farm("sim", "fault", "all", "link_drop", "--in-payload", "--for", "2")
    shown = lab.farm("run", "gone", "--plain")
    assert "3 of 3 boards vanished together" in shown
    assert "lab fault over" in shown
    assert "quarantined" not in shown
    assert "power cycle" not in shown
    assert {(one["state"], one["attempts"]) for one in lab.results()} == {("done", 1)}


def test_a_hung_board_is_power_cycled_and_a_lost_ones_trials_go_to_a_twin(
    lab: SimWorkspace,
) -> None:
    lab.write_sweep("hung", SWEEP % ("hung", "any", "1, 2, 3", "1.8", "1.5", "optional", "1"))
    for board in ("sim-1", "sim-2"):
        lab.farm("sim", "fault", board, "hang", "--in-payload")
    shown = lab.farm("run", "hung", "--plain")
    assert "power cycle done: sim-1" in shown
    assert "the outlet is on" in shown
    assert "the inventory gives it no outlet" in shown  # of sim-2
    assert "moved from sim-2 to sim-" in shown
    results = lab.results()
    assert {one["state"] for one in results} == {"done"}
    assert "sim-2" not in {one["board"] for one in results}
    started = lab.counted()
    assert len(started) == len(set(started))  # no attempt was begun twice
