"""One sweep in the words maxn and maxq over a board of every Jetson family.

What the plan announces must be what the boards then see: the mode that each word is taken for,
the watts it promises, and every reboot, no more.
"""

import json
import re
from pathlib import Path
from typing import NamedTuple

import pytest
from typer.testing import CliRunner

from farm.cli.main import app
from farm.simulation.board_root import BOOTS_FILE
from tests.servers.sim_workspace import (
    COUNTING_RUN,
    COUNTING_YAML,
    SimWorkspace,
    private_network,
    sim_lab,
)
from tests.simulation.board_shell import SHIPPED, BoardShell

pytestmark = [pytest.mark.slow, pytest.mark.timeout(360)]

ONLY_TX2 = "MAXP_CORE_ARM"
SWEEP = f"""\
name: mixed
power_modes: [maxn, maxq, {ONLY_TX2}]
payloads:
  - payload: counting
    axes: {{cell: [1], seconds: 0.3}}
repeats: 1
measure: {{window_s: 0.2, warmup_s: 0, idle_s: 0, power: "off"}}
limits: {{time_s: 60, reboot: true}}
"""


class Pick(NamedTuple):
    """A board's own mode: name, id, promised watts."""

    name: str
    mode_id: int
    budget_w: float | None


class Family(NamedTuple):
    """A profile, what the words mean there, and how often its GPU's masks make it reboot."""

    profile: str
    maxn: Pick
    maxq: Pick
    reboots: int


FAMILIES = {
    "nano": Family("jetson-nano", Pick("MAXN", 0, 10), Pick("5W", 1, 5), 0),
    "tx2": Family("jetson-tx2", Pick("MAXN", 0, None), Pick("MAXQ", 1, 7.5), 0),
    "xavier-nx": Family(
        "jetson-xavier-nx",
        Pick("MODE_15W_6CORE", 2, 15),
        Pick("MODE_10W_DESKTOP", 5, 10),
        0,
    ),
    "agx-xavier": Family("jetson-agx-xavier", Pick("MAXN", 0, None), Pick("MODE_10W", 1, 10), 2),
    "orin-nano": Family(
        "jetson-orin-nano-super", Pick("MAXN_SUPER", 2, None), Pick("7W", 3, 7), 2
    ),
    "orin-nx": Family("jetson-orin-nx-16gb", Pick("MAXN", 0, None), Pick("10W", 1, 10), 2),
    "agx-orin": Family("jetson-agx-orin-64gb", Pick("MAXN", 0, None), Pick("MODE_15W", 1, 15), 3),
    "thor": Family("jetson-thor-t5000", Pick("MAXN", 0, None), Pick("70W", 3, 70), 2),
}
LOCKED = "nano"
"""Somebody locked its clocks before the sweep."""


def jetsons(root: Path) -> SimWorkspace:
    """A workspace with a board of each family."""
    net = private_network()
    lines = [
        "defaults: {user: farm, port: 2222, identity_file: .farm/sim/client_key, "
        "known_hosts: .farm/sim/known_hosts, simulation: {}}",
        "boards:",
    ]
    for number, (name, family) in enumerate(FAMILIES.items(), start=1):
        lines.append(f"  {name}: {{profile: {family.profile}, host: {net}.{number}}}")
    (root / "inventory.yaml").write_text("\n".join(lines) + "\n")
    workspace = SimWorkspace(root, tuple(FAMILIES))
    workspace.write_payload("counting", {"payload.yaml": COUNTING_YAML, "run.py": COUNTING_RUN})
    workspace.write_sweep("mixed", SWEEP)
    return workspace


def boots(workspace: SimWorkspace) -> dict[str, int]:
    """How often each board has booted so far, by its own count."""
    files = {name: workspace.board_root(name) / BOOTS_FILE.lstrip("/") for name in FAMILIES}
    return {name: len(file.read_text().split()) for name, file in files.items()}


def check_plan(workspace: SimWorkspace) -> None:
    words = ["plan", "mixed", "-w", str(workspace.root)]
    plan = json.loads(CliRunner().invoke(app, [*words, "--json"]).stdout)
    assert {lane["board"]: lane["reboots"] for lane in plan["lanes"]} == {
        name: family.reboots for name, family in FAMILIES.items()
    }
    picks = {
        (pick["profile"], pick["asked"]): (pick["name"], pick["id"], pick["budget_w"])
        for pick in plan["power_modes"]
    }
    for family in FAMILIES.values():
        assert picks[family.profile, "maxn"] == family.maxn
        assert picks[family.profile, "maxq"] == family.maxq
    shown = CliRunner().invoke(app, words).stdout
    assert f"{sum(family.reboots for family in FAMILIES.values())} reboots" in shown
    assert "MAXN_SUPER (2)" in shown
    assert "unsupported; it has MAXN, 5W" in shown


def check_journal(printed: str) -> None:
    """The lines of the run name each pick as it is set."""
    for name, family in FAMILIES.items():
        for word, pick in (("maxn", family.maxn), ("maxq", family.maxq)):
            what = f"{pick.name} ({pick.mode_id})"
            what = what if word == pick.name.lower() else f"{word} is {what}"
            what += f", {pick.budget_w:g} W" if pick.budget_w else ""
            line = rf"^\S+ +{name} +power mode +{re.escape(what)}$"
            assert re.search(line, printed, re.MULTILINE), (line, printed)


def check_results(workspace: SimWorkspace) -> None:
    found = {}
    for one in workspace.results():
        mode = one["power_mode"]
        assert isinstance(mode, dict)
        found[one["board"], mode["asked"]] = one
        if one["state"] == "done":
            pick = (mode["name"], mode["id"], mode["budget_w"])
            assert one["verdict"] == {"status": "valid", "reasons": []}, one
            if mode["asked"] != ONLY_TX2:
                assert pick == getattr(FAMILIES[str(one["board"])], mode["asked"])
    assert len(found) == 3 * len(FAMILIES)
    for (board, asked), one in found.items():
        if asked != ONLY_TX2 or board == "tx2":
            assert one["state"] == "done", one
        else:
            assert one["state"] == "unsupported"
            assert f"the board has no '{ONLY_TX2}'; it has " in str(one["reason"])
    for board, offered in {"nano": "MAXN, 5W", "thor": "MAXN, 120W, 90W, 70W"}.items():
        assert str(found[board, ONLY_TX2]["reason"]).endswith(f"it has {offered}")


def test_each_board_in_its_own_modes_rebooted_as_planned_and_restored(tmp_path: Path) -> None:
    workspace = jetsons(tmp_path)
    check_plan(workspace)
    with sim_lab(workspace):
        shell = BoardShell(workspace.board_root(LOCKED))
        assert shell("sudo -n jetson_clocks --store && sudo -n jetson_clocks") == ""
        booted = boots(workspace)
        printed = workspace.farm("run", "mixed", "--plain", timeout_s=300)
        check_journal(printed)
        check_results(workspace)
        assert {name: count - booted[name] for name, count in boots(workspace).items()} == {
            name: family.reboots for name, family in FAMILIES.items()
        }
        after = {
            one["board"]: one for one in json.loads(workspace.farm("modes", "show", "--json"))
        }
        assert {name: one["current"]["name"] for name, one in after.items()} == {
            name: SHIPPED[family.profile].default_power_mode for name, family in FAMILIES.items()
        }
        assert [name for name, one in after.items() if one["current"]["is_locked"]] == [LOCKED]
