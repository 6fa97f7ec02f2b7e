"""Results as JSON (a promise, docs/results-format.md), CSV, and a table for pandas or Parquet."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import TypeAdapter

from farm.model.record import Scalar
from farm.model.result import TrialResult
from farm.store.durable import write_whole
from farm.store.failures import file_errors

if TYPE_CHECKING:
    import pandas as pd

Value = Scalar | None

_RESULTS = TypeAdapter(list[TrialResult])
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""Text that begins so is run by spreadsheets: https://owasp.org/www-community/attacks/CSV_Injection."""


def results_json(results: Sequence[TrialResult]) -> str:
    """A list with one object a trial; unknown and what is no finite number is null."""
    return _RESULTS.dump_json(list(results), by_alias=True, indent=2).decode()


def results_rows(results: Sequence[TrialResult]) -> tuple[list[str], list[dict[str, Value]]]:
    """Columns and rows, flattened: ``parameter.NAME``, ``metric.NAME``, ``power.mean_w``, ...

    Columns of parameters and metrics are in the order of their names. Times are text in UTC.
    """
    rows = [_row(result) for result in results]
    given = {name for row in rows for name in row}
    columns = []
    for name in (*_FIXED, *_LATE):
        group = name.removesuffix("*")
        if group == name:
            columns.append(name)
        else:
            columns += sorted(column for column in given if column.startswith(group))
    return columns, rows


def results_csv(results: Sequence[TrialResult]) -> str:
    """Comma-separated values with one header line; text is made harmless for spreadsheets."""
    columns, rows = results_rows(results)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([_harmless(column) for column in columns])
    for row in rows:
        writer.writerow([_harmless(row.get(column)) for column in columns])
    return out.getvalue()


def results_frame(results: Sequence[TrialResult]) -> "pd.DataFrame":
    """The rows as a table; ``started`` and ``ended`` are times in UTC."""
    import pandas as pd  # noqa: PLC0415  (costs a second: only this export pays it)

    columns, rows = results_rows(results)
    table = pd.DataFrame(
        {name: _one_type([row.get(name) for row in rows]) for name in columns}, columns=columns
    )
    for name in ("started", "ended"):
        table[name] = pd.to_datetime(table[name], utc=True, format="ISO8601")
    return table


def write_csv(path: Path, results: Sequence[TrialResult]) -> None:
    """Write the CSV, whole or not at all. Raises StoreError."""
    data = results_csv(results).encode("utf-8", "replace")
    with file_errors(path):
        write_whole(path, lambda target: _write(target, data))


def write_parquet(path: Path, results: Sequence[TrialResult]) -> None:
    """Write the table as Parquet, whole or not at all. Raises StoreError."""
    table = results_frame(results)
    with file_errors(path):
        write_whole(path, lambda target: table.to_parquet(target, index=False))


_FIXED = (
    "schema",
    "run",
    "trial",
    "board",
    "profile",
    "level",
    "payload",
    "parameter.*",
    "power_mode.asked",
    "power_mode.name",
    "power_mode.id",
    "power_mode.budget_w",
    "power_mode.clocks",
    "repeat",
    "state",
    "attempts",
    "outcome",
    "reason",
    "source",
    "metric.*",
)
_POWER = (
    "meter",
    "mean_w",
    "idle_w",
    "window_s",
    "energy_j",
    "integral_j",
    "counter_j",
    "energy_per_inference_j",
    "net_energy_per_inference_j",
    "uncertainty_w",
    "fresh_updates",
    "coverage",
)
_LATE = (
    *(f"power.{name}" for name in _POWER),
    "verdict.status",
    "verdict.reasons",
    "started",
    "ended",
    "moved_from*",
)


def _row(result: TrialResult) -> dict[str, Value]:
    row: dict[str, Value] = {
        "schema": result.schema_version,
        "run": result.run,
        "trial": result.trial,
        "board": result.board,
        "profile": result.profile,
        "level": result.level,
        "payload": result.payload,
        "power_mode.asked": result.power_mode.asked,
        "power_mode.name": result.power_mode.name,
        "power_mode.id": result.power_mode.id,
        "power_mode.budget_w": result.power_mode.budget_w,
        "power_mode.clocks": result.power_mode.clocks,
        "repeat": result.repeat,
        "state": result.state.value,
        "attempts": result.attempts,
        "outcome": result.outcome.value if result.outcome else None,
        "reason": result.reason,
        "source": result.source.value if result.source else None,
        "started": result.started.isoformat() if result.started else None,
        "ended": result.ended.isoformat() if result.ended else None,
    }
    if result.moved_from is not None:
        row["moved_from"] = result.moved_from
    for name, value in result.parameters.items():
        row[f"parameter.{name}"] = value
    for name, metric in result.metrics.items():
        row[f"metric.{name}"] = metric.value
        row[f"metric.{name}.unit"] = metric.unit
    if result.power is not None:
        found = result.power.model_dump()
        row |= {f"power.{name}": found[name] for name in _POWER}
    if result.verdict is not None:
        row["verdict.status"] = result.verdict.status.value
        row["verdict.reasons"] = ";".join(reason.code for reason in result.verdict.reasons)
    return row


def _one_type(values: list[Value]) -> list[Value]:
    """As they are, or all as text when text and numbers meet: a column has one type."""
    kinds = {type(value) for value in values if value is not None}
    if len(kinds) <= 1 or kinds == {int, float}:
        return values
    return [None if value is None else str(value) for value in values]


def _harmless(value: Value) -> Value:
    if not isinstance(value, str):
        return value
    guarded = f"'{value}" if value.startswith(_FORMULA) else value
    # Python's csv does not quote a lone carriage return, and readers take it for a row's end.
    return guarded.replace("\r\n", "\n").replace("\r", "\n")


def _write(path: Path, data: bytes) -> None:
    path.write_bytes(data)
