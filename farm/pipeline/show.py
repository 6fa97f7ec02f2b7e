"""From the store to what people read: exports, comparisons, the report."""

from collections.abc import Sequence
from pathlib import Path

from farm import __version__
from farm.analysis.cells import summarise_cells
from farm.analysis.compare import compare_published, compare_runs
from farm.config.published import load_published
from farm.errors import ConfigError
from farm.model.attempt import AttemptRecord
from farm.model.measurement import VerdictStatus
from farm.model.result import TrialResult
from farm.reporting.comparisons import published_data, run_data
from farm.reporting.data import ReportData, TraceExample
from farm.reporting.html import render_report
from farm.reporting.tables import DECIDED, published_rows, run_rows
from farm.store.database import Store
from farm.store.export import results_csv, results_json, write_csv, write_parquet
from farm.store.failures import file_errors
from farm.store.runs import RunInfo

PUBLISHED = "published"
LOG_FILES = {False: "stdout.log", True: "stderr.log"}


def run_json(info: RunInfo) -> dict[str, object]:
    """A run as the commands' --json prints it."""
    return {
        "run": info.run_id,
        "sweep": info.sweep,
        "created": info.created.isoformat(),
        "state": info.state,
        "trials": {state.value: count for state, count in info.counts.items()},
    }


def unfinished(store: Store, run_id: str) -> list[TrialResult]:
    """Trials that are not done, with their reasons."""
    return [one for one in store.results(run_id) if one.state not in DECIDED]


def export(results: Sequence[TrialResult], kind: str, output: Path | None) -> str | None:
    """Results as json or csv text, or written to `output` (None is returned then)."""
    if kind == "parquet":
        if output is None:
            raise ConfigError("parquet is no text: name a file with --output")
        write_parquet(output, results)
        return None
    if kind == "csv" and output is not None:
        write_csv(output, results)
        return None
    text = results_json(results) if kind == "json" else results_csv(results)
    if output is None:
        return text if text.endswith("\n") else text + "\n"
    with file_errors(output):
        output.write_text(text, "utf-8")
    return None


def comparison(
    store: Store, run_id: str, other: str
) -> tuple[str, list[str], list[list[object]], list[dict[str, object]]]:
    """A run against `published` or another run: title, columns, rows, and the figures as data."""
    results = store.results(run_id)
    if other == PUBLISHED:
        pairs = compare_published(results, load_published())
        columns, rows = published_rows(pairs)
        data = published_data(pairs)
        title = f"run {run_id} against published figures (source of each row is shown)"
    else:
        other_id = store.find_run(other)
        both = compare_runs(results, store.results(other_id))
        columns, rows = run_rows(both)
        data = run_data(both)
        title = f"run {run_id} against run {other_id}"
    return title, columns, rows, data


def write_report(store: Store, run_id: str, output: Path | None) -> Path:
    """Write the report of a run; returns its path. Raises StoreError."""
    results = store.results(run_id)
    info = store.run(run_id)
    data = ReportData(
        run_id=run_id,
        sweep=info.sweep,
        created=info.created,
        state=info.state,
        tool_version=__version__,
        results=results,
        cells=summarise_cells(results),
        comparisons=compare_published(results, load_published()),
        events=store.events(run_id),
        trace=_trace_example(store, run_id),
    )
    path = output or store.run_folder(run_id) / "report.html"
    text = render_report(data)
    with file_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8", errors="replace")
    return path


def _trace_example(store: Store, run_id: str) -> TraceExample | None:
    """The power trace of the first valid attempt that has one."""
    for record in store.attempts(run_id):
        if not _has_window(record) or record.clock_map is None or record.window is None:
            continue
        trace = store.read_trace(run_id, record.attempt_id)
        if trace is not None and len(trace):
            return TraceExample(
                record=record,
                trace=trace,
                begin_s=record.clock_map.to_host_s(record.window.begin_s),
                end_s=record.clock_map.to_host_s(record.window.end_s),
            )
    return None


def _has_window(record: AttemptRecord) -> bool:
    return record.verdict.status is not VerdictStatus.INVALID and record.power is not None


def attempt_logs(
    store: Store, run_id: str, trial: str | None, *, is_stderr: bool
) -> list[tuple[str, Path]]:
    """(attempt id, log file) of a run's attempts, or of those that begin with `trial`."""
    found = []
    for record in store.attempts(run_id):
        if trial is not None and not record.attempt_id.startswith(trial):
            continue
        path = store.attempt_folder(run_id, record.attempt_id) / LOG_FILES[is_stderr]
        if path.exists():
            found.append((record.attempt_id, path))
    return found
