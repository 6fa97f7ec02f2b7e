"""From what an attempt left behind to its outcome, verdict and record."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from farm.analysis.clock import clock_problems, fit_clock_map
from farm.analysis.energy import power_over_window
from farm.analysis.events import PayloadEvents, inferences, parse_events
from farm.analysis.reasons import DISTURBANCES
from farm.analysis.telemetry_checks import TelemetryEvidence
from farm.analysis.validity import Evidence as Case
from farm.analysis.validity import judge
from farm.errors import AnalysisError
from farm.execution.equipment import BoardEquipment, RunServices
from farm.interfaces.agent import AttemptExit, AttemptStatus
from farm.interfaces.sinks import TraceSink
from farm.model.attempt import AttemptRecord, BoardFingerprint, FileRecord, Outcome, StepTime
from farm.model.measurement import (
    ClockExchange,
    ClockMap,
    IdlePower,
    Measurement,
    PowerResult,
    Reason,
    Verdict,
    VerdictStatus,
    Window,
)
from farm.model.plan import Trial
from farm.model.power_mode import AppliedPowerMode, PowerModeState
from farm.model.record import Source
from farm.model.telemetry import TelemetryTrace
from farm.model.trace import PowerTrace

UNSUPPORTED_STATUS = 77
EVENTS_FILE = "events.jsonl"
EVENTS_LIMIT = 16 * 1024 * 1024
"""A payload's event file beyond this is cut: a board must not fill the host's memory."""


@dataclass(slots=True)
class Evidence:
    """What one attempt has gathered so far. `begin_s` is host monotonic."""

    trial: Trial
    attempt_id: str
    number: int
    started: datetime
    folder: Path
    begin_s: float = 0.0
    is_adopted: bool = False
    mode: AppliedPowerMode | None = None
    idle: IdlePower | None = None
    boot_id: str = ""
    clock_before: list[ClockExchange] = field(default_factory=list)
    clock_after: list[ClockExchange] = field(default_factory=list)
    status: AttemptStatus | None = None
    files: tuple[FileRecord, ...] = ()
    state_after: PowerModeState | None = None
    trace: PowerTrace | None = None
    telemetry: TelemetryTrace | None = None
    sink: TraceSink | None = None
    steps: list[StepTime] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Judged:
    """What follows from the evidence."""

    outcome: Outcome
    reason: str
    verdict: Verdict
    source: Source
    window: Window | None = None
    clock_map: ClockMap | None = None
    metrics: Mapping[str, Measurement] = field(default_factory=dict)
    power: PowerResult | None = None
    notes: tuple[str, ...] = ()

    @property
    def is_disturbed(self) -> bool:
        """It holds, but the board was too hot, throttled, or busy with something else."""
        is_suspect = self.verdict.status is VerdictStatus.SUSPECT
        return is_suspect and any(one.code in DISTURBANCES for one in self.verdict.reasons)

    def record(
        self, evidence: Evidence, services: RunServices, fingerprint: BoardFingerprint | None
    ) -> AttemptRecord:
        """The attempt's record, as it is stored."""
        ended = evidence.status.exit if evidence.status is not None else None
        cell = evidence.trial.cell
        return AttemptRecord(
            attempt_id=evidence.attempt_id,
            trial_id=evidence.trial.trial_id,
            run_id=services.run_id,
            board=evidence.trial.board,
            number=evidence.number,
            outcome=self.outcome,
            reason=self.reason,
            source=self.source,
            started=evidence.started,
            ended=services.clock.now(),
            payload=cell.payload,
            payload_digest=cell.payload_digest,
            parameters=cell.parameters,
            power_mode=evidence.mode,
            fingerprint=fingerprint,
            exit_status=ended.exit_status if ended else None,
            exit_signal=ended.signal if ended else None,
            window=self.window,
            clock_map=self.clock_map,
            metrics=self.metrics,
            idle=evidence.idle,
            power=self.power,
            verdict=self.verdict,
            steps=tuple(evidence.steps),
            files=evidence.files,
            notes=self.notes,
            tool_version=services.tool_version,
        )


def judge_attempt(
    evidence: Evidence,
    events: PayloadEvents,
    services: RunServices,
    equipment: BoardEquipment,
    fingerprint: BoardFingerprint,
) -> Judged:
    """Weigh an attempt whose end is known. Pure but for reading nothing: all is handed in."""
    source = source_of(fingerprint, equipment)
    outcome, reason = _outcome(evidence.status, events)
    if outcome is not Outcome.OK:
        verdict = _no_result(outcome, reason)
        return Judged(outcome, reason, verdict, source, metrics=events.metrics, notes=events.notes)
    manifest = services.payloads[evidence.trial.cell.payload].manifest
    clock_map, problems = _clock(evidence)
    feed, window, power = equipment.feed, None, None
    if events.window is not None and clock_map is not None:
        window = Window(
            begin_s=clock_map.to_host_s(events.window.begin_s),
            end_s=clock_map.to_host_s(events.window.end_s),
        )
        if feed is not None and evidence.trace is not None:
            power = power_over_window(
                evidence.trace,
                window.begin_s,
                window.end_s,
                feed.spec,
                idle=evidence.idle,
                clock_bound_s=clock_map.bound_s,
                inferences=inferences(events, manifest),
            )
    is_off = services.rules.power == "off"
    case = Case(
        manifest=manifest,
        events=events,
        is_exit_ok=True,
        are_boot_ids_equal=_has_same_boot(evidence, fingerprint),
        clock_problems=problems,
        clock_bound_s=clock_map.bound_s if clock_map else 0.0,
        window=window,
        mode=evidence.mode,
        mode_after=evidence.state_after,
        expects_meter=not is_off and feed is not None,
        is_meter_shared=feed is not None and feed.is_shared,
        spec=feed.spec if feed is not None else None,
        trace=evidence.trace,
        power=power,
        idle=evidence.idle,
        telemetry=_telemetry(evidence, events.window, equipment, fingerprint),
    )
    verdict = judge(case, services.rules)
    if verdict.status is VerdictStatus.INVALID:
        outcome, reason = Outcome.INVALID, "; ".join(one.text for one in verdict.reasons)
    return Judged(
        outcome, reason, verdict, source, events.window, clock_map, events.metrics, power,
        events.notes,
    )  # fmt: skip


def read_events(evidence: Evidence, services: RunServices) -> PayloadEvents:
    """Read the attempt's event file from its folder on the host."""
    manifest = services.payloads[evidence.trial.cell.payload].manifest
    data = b""
    path = evidence.folder / EVENTS_FILE
    if path.is_file():
        with path.open("rb") as file:
            data = file.read(EVENTS_LIMIT)
    return parse_events(data, manifest)


def cancelled(fingerprint: BoardFingerprint, equipment: BoardEquipment) -> Judged:
    """An attempt that the user stopped."""
    reason = "stopped by the user"
    return Judged(
        Outcome.CANCELLED,
        reason,
        _no_result(Outcome.CANCELLED, reason),
        source_of(fingerprint, equipment),
    )


def lost(reason: str, fingerprint: BoardFingerprint | None, equipment: BoardEquipment) -> Judged:
    """An attempt whose board was lost and will not be asked any more."""
    is_simulated = equipment.board.simulation is not None  # a killed host may never have met it
    source = Source.SIMULATED if is_simulated else Source.MEASURED
    if fingerprint is not None:
        source = source_of(fingerprint, equipment)
    return Judged(Outcome.LOST, reason, _no_result(Outcome.LOST, reason), source)


def source_of(fingerprint: BoardFingerprint, equipment: BoardEquipment) -> Source:
    """A figure is simulated when any part of its chain is."""
    feed = equipment.feed
    is_meter_simulated = feed is not None and feed.facts is not None and feed.facts.is_simulated
    is_simulated = fingerprint.is_simulated or is_meter_simulated
    return Source.SIMULATED if is_simulated else Source.MEASURED


def _outcome(status: AttemptStatus | None, events: PayloadEvents) -> tuple[Outcome, str]:
    if status is None or status.exit is None:
        phase = status.phase if status is not None else "unknown"
        if phase == "lost":
            return Outcome.LOST, "the board rebooted or its supervisor died under the payload"
        return Outcome.LOST, f"the board did not say how it ended (it is {phase})"
    return _exit_outcome(status.exit, events)


def _exit_outcome(ended: AttemptExit, events: PayloadEvents) -> tuple[Outcome, str]:
    detail = f": {ended.message}" if ended.message else ""
    if ended.ended_by == "exit" and ended.exit_status == 0:
        return Outcome.OK, ""
    if ended.ended_by == "exit" and ended.exit_status == UNSUPPORTED_STATUS:
        return Outcome.UNSUPPORTED, events.unsupported_reason or "the payload gave no reason"
    texts = {
        "exit": f"exit status {ended.exit_status}",
        "signal": f"killed by signal {ended.signal}",
        "timeout": "over its time limit",
        "memory": "over its memory limit",
        "stop": "stopped",
        "start": "could not be started",
        "full": "the board's disk was full",
    }
    outcomes = {"timeout": Outcome.TIMED_OUT, "stop": Outcome.TIMED_OUT}
    return outcomes.get(ended.ended_by, Outcome.FAILED), texts[ended.ended_by] + detail


def _no_result(outcome: Outcome, reason: str) -> Verdict:
    """The verdict of an attempt that has no result to judge."""
    return Verdict(
        status=VerdictStatus.INVALID, reasons=(Reason(code=f"attempt_{outcome}", text=reason),)
    )


def _clock(evidence: Evidence) -> tuple[ClockMap | None, tuple[Reason, ...]]:
    problems = clock_problems(evidence.clock_before, evidence.clock_after, are_boot_ids_equal=True)
    try:
        return fit_clock_map(evidence.clock_before, evidence.clock_after), problems
    except AnalysisError:
        return None, problems


def _telemetry(
    evidence: Evidence,
    window: Window | None,
    equipment: BoardEquipment,
    fingerprint: BoardFingerprint,
) -> TelemetryEvidence | None:
    ended = evidence.status.exit if evidence.status is not None else None
    if evidence.telemetry is None or window is None or ended is None:
        return None
    profile, mode = equipment.profile, evidence.mode
    limit = profile.max_temperature_c
    return TelemetryEvidence(
        trace=evidence.telemetry,
        window=window,
        begin_s=ended.begin_s,
        limit_c=limit.value if limit is not None else None,
        mode=profile.mode(mode.name) if mode is not None else None,
        are_caps_reached=fingerprint.machine.startswith(("aarch64", "arm")),
    )


def _has_same_boot(evidence: Evidence, fingerprint: BoardFingerprint) -> bool:
    ended = evidence.status.exit if evidence.status is not None else None
    boots = {fingerprint.boot_id, evidence.boot_id or fingerprint.boot_id}
    if ended is not None:
        boots.add(ended.boot_id)
    return len(boots) == 1
