"""Hand-made results and reports for the tests of reporting."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from farm.analysis.cells import summarise_cells
from farm.analysis.compare import compare_published
from farm.config.published import load_published
from farm.interfaces.sinks import RunEvent
from farm.model.attempt import AttemptRecord, Outcome, TrialState
from farm.model.measurement import IdlePower, Measurement, PowerResult, Reason, Verdict
from farm.model.measurement import VerdictStatus as Status
from farm.model.record import Scalar, Source
from farm.model.result import PowerModeAnswer, TrialResult
from farm.model.trace import MeterReading, PowerTrace
from farm.reporting.data import ReportData, TraceExample

NOW = datetime(2026, 11, 30, 22, 15, 3, tzinfo=UTC)


def a_power(watts: float, energy_j: float = 0.147, net_j: float = 0.094) -> PowerResult:
    return PowerResult(
        meter="plug-1",
        mean_w=watts,
        idle_w=5.0,
        window_s=60.0,
        energy_per_inference_j=energy_j,
        net_energy_per_inference_j=net_j,
        fresh_updates=60,
        coverage=1.0,
    )


def a_result(
    speed: float | None = 94.3,
    watts: float | None = 13.9,
    *,
    board: str = "tx2-01",
    profile: str = "jetson-tx2",
    payload: str = "replay-cnn",
    parameters: Mapping[str, Scalar] | None = None,
    mode: str | None = "MAXN",
    repeat: int = 1,
    state: TrialState = TrialState.DONE,
    status: Status | None = Status.VALID,
    source: Source | None = Source.MEASURED,
    reason: str = "",
    reasons: Sequence[Reason] = (),
    metric: str = "throughput",
    unit: str = "images/s",
    attempts: int = 1,
) -> TrialResult:
    metrics = {} if speed is None else {metric: Measurement(value=speed, unit=unit)}
    return TrialResult(
        run="20261130-2215-night-3f2a",
        trial=f"{board}-r{repeat:02}",
        board=board,
        profile=profile,
        level=3,
        payload=payload,
        parameters={"model": "ResNet50"} if parameters is None else dict(parameters),
        power_mode=PowerModeAnswer(asked="maxn", name=mode),
        repeat=repeat,
        state=state,
        attempts=attempts,
        reason=reason,
        source=source,
        metrics=metrics,
        power=None if watts is None else a_power(watts),
        verdict=None if status is None else Verdict(status=status, reasons=tuple(reasons)),
    )


def a_failure(reason: str = "exit status 1", **more: object) -> TrialResult:
    return a_result(
        None,
        None,
        state=TrialState.FAILED,
        status=Status.INVALID,
        reason=reason,
        **more,  # type: ignore[arg-type]  # keywords of `a_result`
    )


def a_trace(board: str = "tx2-01", meter: str = "plug-1", samples: int = 50) -> TraceExample:
    trace = PowerTrace(meter)
    for index in range(samples):
        sent_s = 100.0 + index * 0.1
        trace.append(MeterReading(sent_s, sent_s + 0.01, 5.0 + (index % 7)))
    record = AttemptRecord(
        attempt_id="t-r01-a1",
        trial_id="t-r01",
        run_id="run",
        board=board,
        number=1,
        outcome=Outcome.OK,
        source=Source.MEASURED,
        started=NOW,
        ended=NOW,
        payload="replay-cnn",
        payload_digest="ab" * 32,
        parameters={},
        idle=IdlePower(before_w=5.0),
        power=a_power(9.0),
        verdict=Verdict(status=Status.VALID),
    )
    return TraceExample(record, trace, 101.0, 104.0)


def a_report(
    results: Sequence[TrialResult],
    *,
    events: Sequence[RunEvent] = (),
    trace: TraceExample | None = None,
    sweep: str = "night",
    state: str = "finished",
) -> ReportData:
    return ReportData(
        run_id="20261130-2215-night-3f2a",
        sweep=sweep,
        created=NOW,
        state=state,
        tool_version="0.1",
        results=results,
        cells=summarise_cells(results),
        comparisons=compare_published(results, load_published()),
        events=events,
        trace=trace,
    )
