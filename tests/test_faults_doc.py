"""docs/faults.md against the tests and the simulated lab: it cannot drift."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from farm.model.record import Record
from farm.pipeline.lab import open_lab
from farm.pipeline.sim_faults import load_scenario
from farm.simulation.fault_kinds import FaultKind

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "faults.md").read_text("utf-8")
SCENARIOS = sorted((ROOT / "examples").glob("*/*night*.yaml"))


class Row(Record):
    """A row of a table: the fault, what farm does, what the user sees, and the tests."""

    fault: str
    does: str
    sees: str
    tests: tuple[str, ...]


def rows() -> Iterator[Row]:
    for line in PAGE.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and not set(line) <= set("|-") and cells[0] != "fault":
            fault, does, sees, tests = cells
            yield Row(fault=fault, does=does, sees=sees, tests=tuple(re.findall("`(.*?)`", tests)))


def names_in(file: Path) -> set[str]:
    tree = ast.parse(file.read_text("utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in ast.walk(tree) if isinstance(node, kinds)}


@pytest.mark.parametrize("row", list(rows()), ids=lambda row: row.fault.strip("`"))
def test_every_row_is_proven_by_tests_that_exist(row: Row) -> None:
    assert row.does
    assert row.sees
    assert row.tests
    for test in row.tests:
        path, _, name = test.partition("::")
        assert name.startswith("test_"), test
        assert (ROOT / path).is_file(), test
        assert name in names_in(ROOT / path), test


def test_every_fault_of_the_simulated_lab_has_one_row() -> None:
    named = [row.fault.strip("`") for row in rows() if row.fault.startswith("`")]
    assert sorted(named) == sorted(str(kind) for kind in FaultKind)


def test_every_fault_of_the_simulated_lab_is_tried_in_a_run_or_at_its_layer() -> None:
    folder = ROOT / "tests" / "simulation"
    seen = (folder / "rehearsal.py").read_text("utf-8")
    effects = (folder / "test_fault_effects.py").read_text("utf-8")
    for kind in FaultKind:
        assert f'"{kind}"' in seen or f"FaultKind.{kind.name}" in effects, kind


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.name)
def test_scenarios_of_the_examples_are_right(path: Path) -> None:
    assert load_scenario(open_lab(path.parent), path)


def test_the_scenario_on_the_page_is_right(tmp_path: Path) -> None:
    found = re.search(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    (tmp_path / "s.yaml").write_text(found[1], "utf-8")
    faults = load_scenario(open_lab(ROOT / "examples" / "all-jetsons"), tmp_path / "s.yaml")
    assert len([fault for fault in faults if fault.kind is FaultKind.PACKET_LOSS]) > 5
    assert len(faults) > 20
