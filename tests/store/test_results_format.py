"""docs/results-format.md names every key and code that it promises."""

import re
from pathlib import Path

import pytest

from farm.analysis.reasons import ReasonCode
from farm.errors import FarmError, InterruptedRunError, NoBoardReachedError, RunHeldError
from farm.model.attempt import Outcome, TrialState
from farm.model.measurement import PowerResult, VerdictStatus
from farm.model.result import SCHEMA, PowerModeAnswer, TrialResult
from farm.model.trace import MissKind

TEXT = (Path(__file__).parents[2] / "docs" / "results-format.md").read_text("utf-8")
NAMED = set(re.findall(r"`([a-z0-9_]+)`", TEXT))
FIELDS = [name for name in TrialResult.model_fields if name != "schema_version"]


@pytest.mark.parametrize(
    "names",
    [
        FIELDS,
        list(PowerResult.model_fields),
        list(PowerModeAnswer.model_fields),
        [*ReasonCode],
        [f"attempt_{outcome}" for outcome in Outcome if outcome not in ("ok", "invalid")],
        [*TrialState],
        [*Outcome],
        [*VerdictStatus],
        [*MissKind],
    ],
    ids=lambda names: str(names[0]),
)
def test_everything_is_named(names: list[str]) -> None:
    assert {str(name) for name in names} - NAMED == set()


def test_the_schemas_number() -> None:
    assert f"carries `schema`, now **{SCHEMA}**" in TEXT
    assert f'"schema": {SCHEMA}' in TEXT


def test_exit_codes() -> None:
    codes = [error.exit_code for error in (FarmError, RunHeldError, NoBoardReachedError,
                                           InterruptedRunError)]  # fmt: skip
    table = TEXT.split("## Exit codes")[1].split("## Files")[0]
    assert re.findall(r"^\| (\d+) \|", table, re.MULTILINE) == ["0", *map(str, codes)]
