"""Trials -> cells: one summary for all repeats of the same thing, for tables and reports.

Figures come from done trials with a valid verdict only. Sources are never mixed.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from farm.analysis.statistics import Summary, is_usable, summarise
from farm.model.attempt import TrialState
from farm.model.measurement import VerdictStatus
from farm.model.parameters import canonical_json
from farm.model.record import Scalar, Source
from farm.model.result import TrialResult

Key = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MetricSummary:
    """One metric of a cell. `unusable` values (NaN, infinity) are counted and left out."""

    name: str
    unit: str
    scope: str
    summary: Summary | None
    unusable: int = 0


@dataclass(frozen=True, slots=True)
class CellSummary:
    """All trials of one cell on one board (or on all boards of a profile: `board` is None).

    `power_mode` is the name read back (`is_mode_proven`), else what was asked. `source` is
    None while nothing ran. `watts` at the socket; energies in joules per inference, gross
    and above idle. `uncertainty_w` is the meter's, the largest of the valid trials, one
    standard deviation, not reduced by repeats. `metrics` are by name; two metrics of one
    name that differ in unit or scope are ``name [unit, scope]``.
    """

    board: str | None
    profile: str
    level: int
    payload: str
    parameters: Mapping[str, Scalar]
    power_mode: str
    is_mode_proven: bool
    clocks: str
    source: Source | None
    n_total: int
    n_valid: int
    metrics: Mapping[str, MetricSummary]
    watts: Summary | None
    energy_per_inference_j: Summary | None
    net_energy_per_inference_j: Summary | None
    uncertainty_w: float | None
    meters: tuple[str, ...]
    verdicts: Mapping[VerdictStatus, int]
    states: Mapping[TrialState, int]


def summarise_cells(
    results: Sequence[TrialResult], by: Literal["board", "profile"] = "board"
) -> list[CellSummary]:
    """One summary per board (or profile), payload, parameters, power mode, clocks and source.

    In the order of their first trials. A trial that has not run knows neither its mode's
    name nor its source: it counts with the cell that was asked in the same words, if there
    is exactly one.
    """
    known: dict[Key, list[TrialResult]] = {}
    asked: dict[Key, dict[Key, None]] = {}
    for result in results:
        if result.power_mode.name is not None and result.source is not None:
            key = _key(result, by, result.power_mode.name)
            known.setdefault(key, []).append(result)
            asked.setdefault(_asked_key(result, by), {})[key] = None
    order: dict[Key, list[TrialResult]] = {}
    for result in results:
        order.setdefault(_home(result, by, asked), []).append(result)
    return [_summarise(group, by) for group in order.values()]


def is_valid(result: TrialResult) -> bool:
    """Whether the trial's figures count: done, and judged valid."""
    is_done = result.state is TrialState.DONE
    return is_done and result.verdict is not None and result.verdict.status is VerdictStatus.VALID


def _home(result: TrialResult, by: str, asked: Mapping[Key, Mapping[Key, None]]) -> Key:
    """The key of the cell that the trial belongs to."""
    name, source = result.power_mode.name, result.source
    if name is not None and source is not None:
        return _key(result, by, name)
    candidates = [
        key
        for key in asked.get(_asked_key(result, by), {})
        if (name is None or key[-2] == name.lower()) and source in (None, key[-1])
    ]
    return candidates[0] if len(candidates) == 1 else _key(result, by, name)


def _key(result: TrialResult, by: str, name: str | None) -> Key:
    """Ends in mode and source. A mode that is only asked for is marked, so it differs."""
    mode = f"asked {result.power_mode.asked}" if name is None else name
    return (*_base_key(result, by), mode.lower(), result.source or "")


def _asked_key(result: TrialResult, by: str) -> Key:
    return (*_base_key(result, by), result.power_mode.asked.lower())


def _base_key(result: TrialResult, by: str) -> Key:
    return (
        result.board if by == "board" else "",
        result.profile,
        str(result.level),
        result.payload,
        canonical_json(result.parameters),
        result.power_mode.clocks,
    )


def _summarise(group: Sequence[TrialResult], by: str) -> CellSummary:
    first = group[0]
    valid = [result for result in group if is_valid(result)]
    powers = [result.power for result in valid if result.power is not None]
    names = [result.power_mode.name for result in group if result.power_mode.name is not None]
    sources = [result.source for result in group if result.source is not None]
    uncertainties = [power.uncertainty_w for power in powers if power.uncertainty_w is not None]
    return CellSummary(
        board=first.board if by == "board" else None,
        profile=first.profile,
        level=first.level,
        payload=first.payload,
        parameters=first.parameters,
        power_mode=names[0] if names else first.power_mode.asked,
        is_mode_proven=bool(names),
        clocks=first.power_mode.clocks,
        source=sources[0] if sources else None,
        n_total=len(group),
        n_valid=len(valid),
        metrics=_metrics(valid),
        watts=_known(power.mean_w for power in powers),
        energy_per_inference_j=_known(power.energy_per_inference_j for power in powers),
        net_energy_per_inference_j=_known(power.net_energy_per_inference_j for power in powers),
        uncertainty_w=max(uncertainties, default=None),
        meters=tuple(sorted({power.meter for power in powers})),
        verdicts=Counter(r.verdict.status for r in group if r.verdict is not None),
        states=Counter(result.state for result in group),
    )


def _metrics(valid: Iterable[TrialResult]) -> dict[str, MetricSummary]:
    values: dict[tuple[str, str, str], list[float]] = {}
    for result in valid:
        for name, measured in result.metrics.items():
            values.setdefault((name, measured.unit, measured.scope), []).append(measured.value)
    kinds = Counter(name for name, _, _ in values)
    found: dict[str, MetricSummary] = {}
    for (name, unit, scope), numbers in sorted(values.items()):
        label = name if kinds[name] == 1 else f"{name} [{unit}, {scope}]"
        summary, unusable = _summary(numbers)
        found[label] = MetricSummary(name, unit, scope, summary, unusable)
    return found


def _known(values: Iterable[float | None]) -> Summary | None:
    return _summary([value for value in values if value is not None])[0]


def _summary(values: Sequence[float]) -> tuple[Summary | None, int]:
    usable = [value for value in values if is_usable(value)]
    return (summarise(usable) if usable else None), len(values) - len(usable)
