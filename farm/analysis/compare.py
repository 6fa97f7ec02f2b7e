"""A run against printed figures, and against another run. Sources are never mixed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import hypot
from typing import Literal

from farm.analysis.cells import CellSummary, summarise_cells
from farm.analysis.statistics import Summary, difference_ci95_half
from farm.model.parameters import canonical_json
from farm.model.published import PublishedCell
from farm.model.record import Source
from farm.model.result import TrialResult

THROUGHPUT = "throughput"
IMAGE_RATES = ("images/s", "inferences/s", "frames/s", "1/s")
"""Units in which a metric named `throughput` counts images."""

_PAPER_MODES = ("maxn", "maxp", "maxq")
_COVERAGE = 2.0  # standard deviations for about 95 %, as JCGM 100 (GUM) 6.3.3 has it


@dataclass(frozen=True, slots=True)
class Comparison:
    """One cell of a run beside the printed row. A ratio is measured / printed.

    Images per second, watts at the socket, joules per image (gross). None is unknown.
    """

    published: PublishedCell
    cell: CellSummary
    images_per_s: Summary | None
    images_per_s_ratio: float | None
    watts: Summary | None
    watts_ratio: float | None
    energy_per_image_j: Summary | None
    energy_per_image_ratio: float | None

    @property
    def printed_energy_per_image_j(self) -> float | None:
        """Printed watts over printed images per second."""
        return _ratio(self.published.power_w, self.published.images_per_s)

    @property
    def source(self) -> Source | None:
        """Where the run's figures come from; the printed ones are recorded."""
        return self.cell.source


@dataclass(frozen=True, slots=True)
class Difference:
    """One quantity in two runs: `difference` is b - a, in `unit`; `relative` is over a.

    The true difference lies within `ci95_half` with 95 %: repeatability by Welch, and where
    the runs used other meters also what the meters may be wrong by. None: it cannot be told
    (single trials, or other meters without a known accuracy); nor can `is_significant`.
    """

    name: str
    unit: str
    a: Summary
    b: Summary
    difference: float
    relative: float | None
    ci95_half: float | None
    is_significant: bool | None


@dataclass(frozen=True, slots=True)
class RunComparison:
    """One cell in two runs; None where a run has no such cell, and then no differences."""

    a: CellSummary | None
    b: CellSummary | None
    differences: tuple[Difference, ...]


def compare_published(
    results: Sequence[TrialResult], published: Sequence[PublishedCell]
) -> list[Comparison]:
    """Each cell with valid trials beside each printed row that fits, in the rows' order.

    A row fits by profile, payload, each of its parameters (the cell may have more), and
    power mode: the paper's MaxN, MaxP, MaxQ fit modes whose proven names begin so
    (MAXP_CORE_ALL); a row without a mode fits boards that ran in one mode only.
    """
    cells = [cell for cell in summarise_cells(results) if cell.n_valid]
    modes: dict[str | None, set[str]] = {}
    by_name: dict[tuple[str, str], list[CellSummary]] = {}
    for cell in cells:
        modes.setdefault(cell.board, set()).add(cell.power_mode.lower())
        by_name.setdefault((cell.profile, cell.payload), []).append(cell)
    return [
        _beside(row, cell)
        for row in published
        for cell in by_name.get((row.profile, row.payload), [])
        if _has_parameters(cell, row) and _has_mode(cell, row, len(modes[cell.board]))
    ]


def compare_runs(
    a: Sequence[TrialResult],
    b: Sequence[TrialResult],
    by: Literal["board", "profile"] = "board",
) -> list[RunComparison]:
    """Each cell of either run, in the order of `a` and then of `b`.

    Cells are the same if board (or profile), payload, parameters, power mode, clocks and
    source are.
    """
    cells_a = {_identity(cell): cell for cell in summarise_cells(a, by)}
    cells_b = {_identity(cell): cell for cell in summarise_cells(b, by)}
    return [_pair(cells_a.get(key), cells_b.get(key)) for key in {**cells_a, **cells_b}]


def _has_parameters(cell: CellSummary, row: PublishedCell) -> bool:
    return all(
        canonical_json(cell.parameters.get(name)) == canonical_json(value)
        for name, value in row.parameters.items()
    )


def _has_mode(cell: CellSummary, row: PublishedCell, mode_count: int) -> bool:
    if row.power_mode is None:
        return mode_count == 1
    wanted = row.power_mode.lower()
    if not cell.is_mode_proven:
        return False
    name = cell.power_mode.lower()
    return name.startswith(wanted) if wanted in _PAPER_MODES else name == wanted


def _beside(row: PublishedCell, cell: CellSummary) -> Comparison:
    images = _images_per_s(cell)
    energy = cell.energy_per_inference_j
    printed_j = _ratio(row.power_w, row.images_per_s)
    return Comparison(
        published=row,
        cell=cell,
        images_per_s=images,
        images_per_s_ratio=_mean_ratio(images, row.images_per_s),
        watts=cell.watts,
        watts_ratio=_mean_ratio(cell.watts, row.power_w),
        energy_per_image_j=energy,
        energy_per_image_ratio=_mean_ratio(energy, printed_j),
    )


def _images_per_s(cell: CellSummary) -> Summary | None:
    """The cell's throughput if it counts images and covers the system, as the printed one."""
    metric = cell.metrics.get(THROUGHPUT)
    if metric is None or metric.unit not in IMAGE_RATES or metric.scope == "compute":
        return None
    return metric.summary


def _mean_ratio(summary: Summary | None, printed: float | None) -> float | None:
    return None if summary is None or printed is None else _ratio(summary.mean, printed)


def _ratio(value: float, printed: float) -> float | None:
    return value / printed if printed else None


def _identity(cell: CellSummary) -> tuple[str, ...]:
    return (
        cell.board or "",
        cell.profile,
        str(cell.level),
        cell.payload,
        canonical_json(cell.parameters),
        cell.power_mode.lower(),
        cell.clocks,
        cell.source or "",
    )


def _pair(a: CellSummary | None, b: CellSummary | None) -> RunComparison:
    if a is None or b is None:
        return RunComparison(a, b, ())
    return RunComparison(a, b, tuple(_differences(a, b)))


def _differences(a: CellSummary, b: CellSummary) -> Iterator[Difference]:
    for label, metric in a.metrics.items():
        other = b.metrics.get(label)
        if other is None or (other.unit, other.scope) != (metric.unit, metric.scope):
            continue
        yield from _difference(label, metric.unit, metric.summary, other.summary, 0.0)
    meters_w = _meters_w(a, b)
    yield from _difference("watts", "W", a.watts, b.watts, meters_w)
    meters_j = _meters_j(a, b, meters_w)
    for name, one, two in (
        ("energy_per_inference_j", a.energy_per_inference_j, b.energy_per_inference_j),
        ("net_energy_per_inference_j", a.net_energy_per_inference_j, b.net_energy_per_inference_j),
    ):
        yield from _difference(name, "J", one, two, meters_j)


def _difference(
    name: str, unit: str, a: Summary | None, b: Summary | None, meters: float | None
) -> Iterator[Difference]:
    if a is None or b is None:
        return
    change = b.mean - a.mean
    repeat = difference_ci95_half(a, b)
    half = None if repeat is None or meters is None else hypot(repeat, meters)
    is_significant = None if half is None else abs(change) > half
    relative = change / a.mean if a.mean else None
    yield Difference(name, unit, a, b, change, relative, half, is_significant)


def _meters_w(a: CellSummary, b: CellSummary) -> float | None:
    """What the meters may add to a difference in watts (95 %); None if that is unknown.

    On one meter an error of its gain is in both runs alike and cancels.
    """
    if a.meters == b.meters and len(a.meters) == 1:
        return 0.0
    if a.uncertainty_w is None or b.uncertainty_w is None:
        return None
    return _COVERAGE * hypot(a.uncertainty_w, b.uncertainty_w)


def _meters_j(a: CellSummary, b: CellSummary, meters_w: float | None) -> float | None:
    """The same in joules per inference: each meter's watts times the time of an inference."""
    if not meters_w:
        return meters_w
    parts = []
    for cell in (a, b):
        energy, watts = cell.energy_per_inference_j, cell.watts
        if energy is None or watts is None or not watts.mean or cell.uncertainty_w is None:
            return None
        parts.append(cell.uncertainty_w * energy.mean / watts.mean)
    return _COVERAGE * hypot(*parts)
