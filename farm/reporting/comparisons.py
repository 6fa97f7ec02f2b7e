"""Comparisons as data for programs: full figures in SI units; None is unknown."""

from collections.abc import Sequence

from farm.analysis.cells import CellSummary
from farm.analysis.compare import Comparison, RunComparison
from farm.analysis.statistics import Summary

Data = list[dict[str, object]]


def published_data(comparisons: Sequence[Comparison]) -> Data:
    """A row a cell that a publication has, too. `ratio` is the run's mean over the printed."""
    return [
        {
            **_cell(pair.cell),
            "publication": pair.published.publication,
            "table": pair.published.table,
            "n": pair.cell.n_valid,
            "images_per_s": _beside(
                pair.images_per_s, pair.published.images_per_s, pair.images_per_s_ratio
            ),
            "watts": _beside(pair.watts, pair.published.power_w, pair.watts_ratio),
            "energy_per_image_j": _beside(
                pair.energy_per_image_j,
                pair.printed_energy_per_image_j,
                pair.energy_per_image_ratio,
            ),
        }
        for pair in comparisons
    ]


def run_data(comparisons: Sequence[RunComparison]) -> Data:
    """A row a cell of either run; `only_in` is None when both have it.

    In `differences`, `difference` is second - first and `relative` is over the first.
    """
    rows: Data = []
    for pair in comparisons:
        cell = pair.a or pair.b
        if cell is None:
            continue
        only_in = None if pair.a and pair.b else "first" if pair.a else "second"
        differences = [
            {
                "name": one.name,
                "unit": one.unit,
                "first": one.a.mean,
                "second": one.b.mean,
                "difference": one.difference,
                "relative": one.relative,
                "ci95_half": one.ci95_half,
                "is_significant": one.is_significant,
            }
            for one in pair.differences
        ]
        rows.append({**_cell(cell), "only_in": only_in, "differences": differences})
    return rows


def _cell(cell: CellSummary) -> dict[str, object]:
    return {
        "board": cell.board,
        "profile": cell.profile,
        "payload": cell.payload,
        "parameters": dict(cell.parameters),
        "power_mode": cell.power_mode,
        "clocks": cell.clocks,
        "source": cell.source.value if cell.source else None,
    }


def _beside(
    summary: Summary | None, printed: float | None, ratio: float | None
) -> dict[str, object]:
    return {"mean": summary.mean if summary else None, "printed": printed, "ratio": ratio}
