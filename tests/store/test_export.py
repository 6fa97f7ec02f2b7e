"""Exports: the JSON promise, CSV that is safe to open, tables."""

import csv
import io
import json
import math
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from farm.errors import StoreError
from farm.model.attempt import Outcome, TrialState
from farm.model.measurement import Measurement, PowerResult
from farm.model.record import Source
from farm.model.result import SCHEMA, PowerModeAnswer, TrialResult
from farm.store.export import (
    results_csv,
    results_frame,
    results_json,
    write_csv,
    write_parquet,
)
from tests.store.builders import INVALID, NOW, VALID

POWER = PowerResult(
    meter="meter-1",
    mean_w=9.5,
    idle_w=4.0,
    window_s=60.0,
    energy_j=570.0,
    energy_per_inference_j=0.1,
    net_energy_per_inference_j=0.05,
    uncertainty_w=0.2,
    fresh_updates=60,
    coverage=0.99,
)


def result(**fields: Any) -> TrialResult:
    given: dict[str, Any] = {
        "run": "20261130-2215-night-3f2a",
        "trial": "c0-r01",
        "board": "board-0",
        "profile": "jetson-tx2",
        "level": 1,
        "payload": "matmul",
        "parameters": {"batch": 8},
        "power_mode": PowerModeAnswer(asked="maxn", name="MAXN", id=0),
        "repeat": 1,
        "state": TrialState.DONE,
        "attempts": 1,
    }
    return TrialResult.model_validate(given | fields)


FULL = result(
    outcome=Outcome.OK,
    source=Source.MEASURED,
    metrics={"rate": Measurement(value=57.9, unit="images/s", window="measured")},
    power=POWER,
    verdict=VALID,
    started=NOW,
    ended=datetime(2026, 11, 30, 22, 16, tzinfo=UTC),
)


def test_json_is_the_promise() -> None:
    """docs/results-format.md: a key that changes here is a new version."""
    (one,) = json.loads(results_json([FULL]))
    assert one == {
        "schema": SCHEMA,
        "run": "20261130-2215-night-3f2a",
        "trial": "c0-r01",
        "board": "board-0",
        "profile": "jetson-tx2",
        "level": 1,
        "payload": "matmul",
        "parameters": {"batch": 8},
        "power_mode": {
            "asked": "maxn",
            "name": "MAXN",
            "id": 0,
            "budget_w": None,
            "clocks": "default",
        },
        "repeat": 1,
        "state": "done",
        "attempts": 1,
        "outcome": "ok",
        "reason": "",
        "source": "measured",
        "metrics": {
            "rate": {"value": 57.9, "unit": "images/s", "scope": "window", "window": "measured"}
        },
        "power": {
            "meter": "meter-1",
            "mean_w": 9.5,
            "idle_w": 4.0,
            "window_s": 60.0,
            "energy_j": 570.0,
            "integral_j": None,
            "counter_j": None,
            "energy_per_inference_j": 0.1,
            "net_energy_per_inference_j": 0.05,
            "uncertainty_w": 0.2,
            "fresh_updates": 60,
            "coverage": 0.99,
        },
        "verdict": {"status": "valid", "reasons": []},
        "started": "2026-11-30T22:15:03.250000Z",
        "ended": "2026-11-30T22:16:00Z",
    }


def test_json_reads_back() -> None:
    (one,) = json.loads(results_json([FULL]))
    assert TrialResult.model_validate(one) == FULL


def test_json_has_null_for_what_is_unknown_or_no_number() -> None:
    metrics = {name: Measurement(value=value, unit="s") for name, value in
               (("a", math.nan), ("b", math.inf))}  # fmt: skip
    text = results_json([result(), result(metrics=metrics)])
    assert "NaN" not in text
    assert "Infinity" not in text
    bare, broken = json.loads(text)
    assert [bare[key] for key in ("outcome", "source", "power", "verdict", "started")] == [
        None
    ] * 5
    assert broken["metrics"]["a"]["value"] is broken["metrics"]["b"]["value"] is None
    assert results_json([]) == "[]"


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_csv() -> None:
    invalid = result(verdict=INVALID, parameters={"model": 'a,b\n"c"'})
    first, second = rows(results_csv([FULL, invalid]))
    assert first["metric.rate"] == "57.9"
    assert first["metric.rate.unit"] == "images/s"
    assert first["power.mean_w"] == "9.5"
    assert first["power.integral_j"] == ""
    assert (first["parameter.batch"], first["parameter.model"]) == ("8", "")
    assert second["parameter.model"] == 'a,b\n"c"'
    assert second["verdict.reasons"] == "short_window"
    assert second["power.mean_w"] == ""
    assert list(first)[:7] == ["schema", "run", "trial", "board", "profile", "level", "payload"]


@pytest.mark.parametrize("start", "=+-@\t\r")
def test_csv_is_no_formula(start: str) -> None:
    text = f"{start}cmd|' /C calc'!A0"
    hostile = result(
        reason=text,
        parameters={"p": text, "n": -5},
        metrics={"m": Measurement(value=-1.5, unit=text)},
    )
    (row,) = rows(results_csv([hostile]))
    for column in ("reason", "parameter.p", "metric.m.unit"):
        assert row[column] == f"'{text}".replace("\r", "\n")
    assert (row["parameter.n"], row["metric.m"]) == ("-5", "-1.5")


def test_frame() -> None:
    table = results_frame([FULL, result()])
    assert table["metric.rate"].tolist()[0] == 57.9
    assert pd.isna(table["metric.rate"][1])
    assert table["started"][0] == pd.Timestamp(NOW)
    assert pd.isna(table["started"][1])
    assert table["power.energy_per_inference_j"].dtype == float
    assert results_frame([]).shape == (0, len(results_csv([]).strip().split(",")))


def test_parquet_takes_mixed_columns(tmp_path: Path) -> None:
    values: list[Any] = [8, "auto", 0.5, True]
    path = tmp_path / "results.parquet"
    write_parquet(path, [result(parameters={"batch": value}) for value in values])
    table = pd.read_parquet(path)
    assert table["parameter.batch"].tolist() == ["8", "auto", "0.5", "True"]


def test_files_are_whole_or_not_there(tmp_path: Path) -> None:
    write_csv(tmp_path / "results.csv", [FULL])
    assert (tmp_path / "results.csv").read_text("utf-8") == results_csv([FULL])
    with pytest.raises(StoreError, match="No such file"):
        write_csv(tmp_path / "none" / "results.csv", [FULL])
    assert [path.name for path in tmp_path.iterdir()] == ["results.csv"]
