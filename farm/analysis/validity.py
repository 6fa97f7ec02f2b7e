"""The verdict on one attempt: valid, suspect or invalid, with codes and numbers.

`judge` weighs what the attempt left behind: the payload's events, the clocks, the power mode
before and after, and, where a meter measured, its trace over the window. What is not there is
never taken for good. docs/energy.md explains the codes.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from farm.analysis.events import PayloadEvents, needs_window
from farm.analysis.power_checks import Finding, PowerEvidence, check_power
from farm.analysis.reasons import SUSPECT_PROBLEMS, ReasonCode, reason
from farm.analysis.telemetry_checks import TelemetryEvidence, check_telemetry
from farm.model.board import MeterSpec
from farm.model.measurement import (
    IdlePower,
    PowerResult,
    Reason,
    Verdict,
    VerdictStatus,
    Window,
)
from farm.model.payload import PayloadManifest
from farm.model.power_mode import AppliedPowerMode, PowerModeState
from farm.model.sweep import MeasureRules
from farm.model.trace import PowerTrace

WINDOW_SLACK = 0.99
"""A payload ends its window after a whole number of inferences: 1 % short is as asked."""

UPDATES_PER_WINDOW = 30


@dataclass(frozen=True, slots=True)
class Evidence:
    """Everything that is known of an attempt. None is unknown.

    `window` is on the host's monotonic axis (from `events.window` by the clock map).
    `expects_meter`: a meter was to measure this attempt (it exists, and power is not off).
    `trace` reaches beyond the window on both sides, see `farm.analysis.windows.margin_s`.
    `telemetry` is on the board's time axis, as `events.window` is.
    """

    manifest: PayloadManifest
    events: PayloadEvents
    is_exit_ok: bool
    exit_text: str = ""
    are_boot_ids_equal: bool = True
    clock_problems: tuple[Reason, ...] = ()
    clock_bound_s: float = 0.0
    window: Window | None = None
    mode: AppliedPowerMode | None = None
    mode_after: PowerModeState | None = None
    expects_meter: bool = False
    is_meter_shared: bool = False
    spec: MeterSpec | None = None
    trace: PowerTrace | None = None
    power: PowerResult | None = None
    idle: IdlePower | None = None
    telemetry: TelemetryEvidence | None = None


def judge(evidence: Evidence, rules: MeasureRules) -> Verdict:
    """Weigh the evidence. Each code appears once; what makes it invalid comes first."""
    findings = [
        *_run(evidence),
        *_clocks(evidence),
        *_mode(evidence),
        *_window(evidence, rules),
        *_power(evidence, rules),
        *(check_telemetry(evidence.telemetry) if evidence.telemetry is not None else ()),
    ]
    unique: dict[str, Finding] = {}
    for finding in findings:
        known = unique.get(finding.reason.code)
        if known is None:
            unique[finding.reason.code] = finding
        elif finding.reason.text not in known.reason.text:
            unique[finding.reason.code] = _merged(known, finding)
    ordered = sorted(unique.values(), key=lambda finding: not finding.is_invalid)
    status = VerdictStatus.VALID
    if ordered:
        status = VerdictStatus.INVALID if ordered[0].is_invalid else VerdictStatus.SUSPECT
    return Verdict(status=status, reasons=tuple(finding.reason for finding in ordered))


def least_window_s(rules: MeasureRules, spec: MeterSpec | None) -> float:
    """The shortest window that is not suspect: what was asked for, and 30 refreshes."""
    asked_s = rules.window_s * WINDOW_SLACK
    return asked_s if spec is None else max(asked_s, UPDATES_PER_WINDOW * spec.update_s)


def _run(evidence: Evidence) -> Iterator[Finding]:
    if not evidence.is_exit_ok:
        text = evidence.exit_text or "the payload did not end well"
        yield Finding(reason(ReasonCode.EXIT_FAILED, text), is_invalid=True)
    for problem in evidence.events.problems:
        yield Finding(problem, is_invalid=problem.code not in SUSPECT_PROBLEMS)


def _clocks(evidence: Evidence) -> Iterator[Finding]:
    if not evidence.are_boot_ids_equal:
        text = "the board booted during the attempt"
        yield Finding(reason(ReasonCode.BOOT_CHANGED, text), is_invalid=True)
    for problem in evidence.clock_problems:
        yield Finding(problem, is_invalid=True)


def _mode(evidence: Evidence) -> Iterator[Finding]:
    mode, after = evidence.mode, evidence.mode_after
    if mode is None:
        text = "no power mode was proven before the run"
        yield Finding(reason(ReasonCode.MODE_UNPROVEN, text), is_invalid=True)
        return
    if (mode.read_back.name, mode.read_back.id) != (mode.name, mode.id):
        text = f"{mode.name} was set, {mode.read_back.name} was read back"
        yield Finding(reason(ReasonCode.MODE_UNPROVEN, text), is_invalid=True)
    if after is None:
        text = f"{mode.name} was not read again after the run"
        yield Finding(reason(ReasonCode.MODE_NOT_REREAD, text), is_invalid=False)
        return
    if (after.name, after.id) != (mode.name, mode.id):
        text = f"{mode.name} before the run, {after.name} after it"
        yield Finding(reason(ReasonCode.MODE_CHANGED, text), is_invalid=True)
    if mode.clocks == "locked" and not after.is_locked:
        text = "the clocks were locked before the run and free after it"
        yield Finding(reason(ReasonCode.CLOCKS_UNLOCKED, text), is_invalid=True)


def _window(evidence: Evidence, rules: MeasureRules) -> Iterator[Finding]:
    window = evidence.events.window
    if window is None:
        return  # the events' problems tell why, if the payload owes one
    spec = evidence.spec if evidence.expects_meter else None
    least_s, length_s = least_window_s(rules, spec), window.end_s - window.begin_s
    if length_s < least_s:
        text = f"{length_s:.2f} s measured, {least_s:.2f} s wanted"
        yield Finding(reason(ReasonCode.WINDOW_SHORT, text), is_invalid=False)


def _power(evidence: Evidence, rules: MeasureRules) -> Iterator[Finding]:
    if rules.power == "off":
        return
    is_owed = evidence.expects_meter and (
        needs_window(evidence.manifest) or evidence.events.window is not None
    )
    if rules.power == "required" or is_owed:
        yield from _power_missing(evidence)
    window, trace, spec, power = evidence.window, evidence.trace, evidence.spec, evidence.power
    if window is None or trace is None or spec is None or power is None:
        return
    yield from check_power(
        PowerEvidence(
            window=window,
            trace=trace,
            spec=spec,
            power=power,
            idle=evidence.idle,
            clock_bound_s=evidence.clock_bound_s,
            is_meter_shared=evidence.is_meter_shared,
        )
    )


def _power_missing(evidence: Evidence) -> Iterator[Finding]:
    if evidence.power is not None and evidence.power.mean_w is not None:
        return
    if not evidence.expects_meter:
        text = "the sweep requires power and no meter measures this board"
    elif evidence.window is None:
        text = "there is no window on the host's clock to measure over"
    else:
        text = "the meter gave no fresh update in the window"
    yield Finding(reason(ReasonCode.POWER_MISSING, text), is_invalid=True)


def _merged(known: Finding, other: Finding) -> Finding:
    text = f"{known.reason.text}; {other.reason.text}"
    merged = known.reason.model_copy(update={"text": text[:2000]})
    return replace(known, reason=merged, is_invalid=known.is_invalid or other.is_invalid)
