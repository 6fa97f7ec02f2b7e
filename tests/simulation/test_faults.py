"""Faults as they are told: kinds, parameters, scenarios, and faults drawn by a seed."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from farm.errors import ConfigError, FarmError
from farm.model.board import Board, BoardSimulation, Inventory, MeterSimulation, MeterSpec
from farm.pipeline.lab import Lab, open_lab
from farm.pipeline.sim_faults import load_scenario, start_fault
from farm.simulation.fault_kinds import PARAMETERS, FaultKind, fault_words
from farm.simulation.faults import (
    Fault,
    RandomFaults,
    draw_faults,
    kind_named,
    parameters_of,
    why_not,
)

INVENTORY_YAML = """\
defaults: {user: u, port: 2222, profile: generic-linux}
boards:
  pc: {host: 127.9.9.1, simulation: {}, meter: plug, tags: [sim]}
  bare: {host: 127.9.9.2, simulation: {}, tags: [sim]}
  real: {host: 127.9.9.3}
meters:
  plug: {kind: shelly, host: 127.9.9.1, port: 8080, simulation: {}}
"""


def board(name: str, meter: str | None = None, *, is_simulated: bool = True) -> Board:
    simulation = BoardSimulation() if is_simulated else None
    return Board(
        name=name, profile="p", host="127.0.0.1", user="u", meter=meter, simulation=simulation
    )


INVENTORY = Inventory(
    boards=(board("a", "plug"), board("b"), board("c", is_simulated=False), board("d", "real")),
    meters=(
        MeterSpec(name="plug", kind="shelly", simulation=MeterSimulation()),
        MeterSpec(name="real", kind="shelly"),
    ),
)


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    (tmp_path / "inventory.yaml").write_text(INVENTORY_YAML)
    return open_lab(tmp_path)


def refused(lab: Lab, folder: Path, text: str) -> str:
    path = folder / "s.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as error:
        load_scenario(lab, path)
    return str(error.value).replace(str(path), "FILE")


def test_a_kind_by_either_dash_and_a_wrong_one_with_the_nearest() -> None:
    assert kind_named("Half-Open") is FaultKind.HALF_OPEN
    with pytest.raises(ConfigError, match='did you mean "power_loss"'):
        kind_named("powerloss")


def test_parameters_have_bounds_and_belong_to_their_kind() -> None:
    assert parameters_of(FaultKind.LATENCY, ["delay-ms=20"]) == {"delay_ms": 20.0}
    with pytest.raises(ConfigError, match='did you mean "delay_ms"'):
        parameters_of(FaultKind.LATENCY, ["delay=20"])
    with pytest.raises(ConfigError, match="delay_ms=NUMBER"):
        parameters_of(FaultKind.LATENCY, ["delay_ms=soon"])
    with pytest.raises(ConfigError, match="has no parameters"):
        parameters_of(FaultKind.HANG, ["share=1"])
    with pytest.raises(ValidationError, match="loss_pct should be 0 to 90"):
        Fault(board="a", kind=FaultKind.PACKET_LOSS, parameters={"loss_pct": 100})
    with pytest.raises(ValidationError, match="happens once"):
        Fault(board="a", kind=FaultKind.REBOOT, for_s=3)


def test_every_kind_says_what_happens_and_its_defaults_are_allowed() -> None:
    assert [words.kind for words in fault_words()] == [str(kind) for kind in FaultKind]
    assert all(words.what for words in fault_words())
    for known in PARAMETERS.values():
        assert all(one.least <= one.default <= one.most for one in known.values())


@pytest.mark.parametrize(
    ("name", "kind", "reason"),
    [
        ("a", "meter_gone", ""),
        ("b", "hang", ""),
        ("b", "meter_gone", "b has no meter"),
        ("c", "hang", "c is a real board"),
        ("d", "meter_zero", "real of d is not a simulated one"),
        ("bb", "hang", 'did you mean "b"'),
    ],
)
def test_what_a_lab_cannot_have(name: str, kind: str, reason: str) -> None:
    said = why_not(Fault(board=name, kind=FaultKind(kind)), INVENTORY)
    assert reason in said
    assert bool(said) == bool(reason)


def test_a_seed_gives_the_same_faults_and_only_possible_ones() -> None:
    wish = RandomFaults(seed=7, count=50, over_s=100)
    drawn = draw_faults(wish, INVENTORY, ["a", "b", "c"])
    assert drawn == draw_faults(wish, INVENTORY, ["a", "b", "c"])
    assert drawn != draw_faults(wish.model_copy(update={"seed": 8}), INVENTORY, ["a", "b", "c"])
    assert len(drawn) == 50
    assert not any(why_not(fault, INVENTORY) for fault in drawn)
    times = [fault.after_s for fault in drawn]
    assert times == sorted(times)
    assert 0 <= times[0] <= times[-1] <= 100
    with pytest.raises(ConfigError, match="none of these boards"):
        draw_faults(wish, INVENTORY, ["c"])


def test_a_scenario_names_boards_by_selectors(lab: Lab, tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(
        "faults:\n  - {board: 'tag:sim', kind: hang, after_s: 9, for_s: 2}\n"
        "  - {board: pc, kind: meter_slow, parameters: {delay_s: 1}}\n"
        "random: {seed: 1, count: 3, over_s: 5, kinds: [link_drop], boards: [all]}\n"
    )
    faults = load_scenario(lab, path)
    assert [fault.after_s for fault in faults] == sorted(fault.after_s for fault in faults)
    assert [fault.board for fault in faults if fault.kind is FaultKind.HANG] == ["pc", "bare"]
    assert sum(fault.kind is FaultKind.LINK_DROP for fault in faults) == 3
    assert not any(fault.board == "real" for fault in faults)


def test_a_wrong_scenario_is_told_by_line_and_column(lab: Lab, tmp_path: Path) -> None:
    text = refused(
        lab,
        tmp_path,
        "faults:\n"
        "  - {board: pc, kind: hagn}\n"
        "  - {board: pc, kind: latency, parameters: {dely_ms: 1}}\n"
        "  - {board: pc, kind: slow_board, parameters: {share: 7}}\n"
        "random: {seed: 1, count: 1, over_s: 1, kinds: [zero]}\n",
    )
    assert 'FILE:2:23: unknown fault "hagn"; did you mean "hang"?' in text
    assert 'FILE:3:45: unknown parameter of latency "dely_ms"; did you mean "delay_ms"?' in text
    assert "FILE:4:55: share should be 0.05 to 1" in text
    assert 'FILE:5:48: unknown fault "zero"' in text


def test_boards_that_cannot_have_it_are_told_where_they_stand(lab: Lab, tmp_path: Path) -> None:
    text = refused(
        lab,
        tmp_path,
        "faults:\n  - {board: real, kind: hang}\n  - {board: bare, kind: meter_gone}\n"
        "  - {board: nobody, kind: hang}\n",
    )
    assert "FILE:2:13: real is a real board" in text
    assert "FILE:3:13: bare has no meter" in text
    assert "FILE:4:13: no board matches 'nobody'" in text
    assert "no faults" in refused(lab, tmp_path, "name: nothing\n")
    assert 'unknown key "after"' in refused(
        lab, tmp_path, "faults: [{board: pc, kind: hang, after: 1}]\n"
    )


def test_a_lab_that_is_not_up_says_how_to_start_it(lab: Lab) -> None:
    with pytest.raises(FarmError, match="farm sim up"):
        start_fault(lab, "pc", "hang", {})
    with pytest.raises(ConfigError, match="for_s"):
        start_fault(lab, "pc", "hang", {"for_s": -1})
