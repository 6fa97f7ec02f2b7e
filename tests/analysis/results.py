"""Trial results for the analysis tests."""

from collections.abc import Mapping

from farm.model.attempt import TrialState
from farm.model.measurement import Measurement, PowerResult, Verdict, VerdictStatus
from farm.model.record import Scalar, Source
from farm.model.result import PowerModeAnswer, TrialResult


def result(
    throughput: float | None = None,
    *,
    board: str = "t1",
    profile: str = "tx2",
    payload: str = "cnn",
    parameters: Mapping[str, Scalar] | None = None,
    asked: str = "maxn",
    mode: str | None = "MAXN",
    clocks: str = "default",
    repeat: int = 1,
    state: TrialState = TrialState.DONE,
    status: VerdictStatus | None = VerdictStatus.VALID,
    source: Source | None = Source.MEASURED,
    metrics: Mapping[str, Measurement] | None = None,
    watts: float | None = None,
    energy_j: float | None = None,
    meter: str = "m1",
    uncertainty_w: float | None = 0.1,
) -> TrialResult:
    found = dict(metrics or {})
    if throughput is not None:
        found["throughput"] = Measurement(value=throughput, unit="images/s")
    power = PowerResult(
        meter=meter,
        mean_w=watts,
        window_s=60.0,
        energy_per_inference_j=energy_j,
        net_energy_per_inference_j=None if energy_j is None else energy_j / 2,
        uncertainty_w=uncertainty_w,
        fresh_updates=60,
        coverage=1.0,
    )
    return TrialResult(
        run="r",
        trial=f"x-r{repeat:02d}",
        board=board,
        profile=profile,
        level=3,
        payload=payload,
        parameters={"batch": 1} if parameters is None else dict(parameters),
        power_mode=PowerModeAnswer(asked=asked, name=mode, clocks=clocks),
        repeat=repeat,
        state=state,
        attempts=1,
        source=source,
        metrics=found,
        power=None if watts is None else power,
        verdict=None if status is None else Verdict(status=status),
    )


def pending(*, board: str = "t1", repeat: int = 1, source: Source | None = None) -> TrialResult:
    return result(
        board=board,
        repeat=repeat,
        source=source,
        mode=None,
        status=None,
        state=TrialState.PENDING,
    )
