"""Numbers as text for people: a fixed number of significant digits, the unit beside it."""

from farm.analysis.cells import CellSummary, MetricSummary
from farm.analysis.statistics import Summary

MAIN_METRICS = ("throughput", "gflops", "images_per_s")
UNKNOWN = "-"


def number(value: float | None, digits: int = 4) -> str:
    """`value` with `digits` significant digits, never in exponent form for usual sizes."""
    if value is None:
        return UNKNOWN
    text = f"{value:.{digits}g}"
    return text if "e" not in text else f"{value:.0f}"


def mean_and_spread(summary: Summary | None, factor: float = 1.0) -> str:
    """``12.57 ± 0.03``: mean and sample standard deviation, both times `factor`."""
    if summary is None:
        return UNKNOWN
    mean = number(summary.mean * factor)
    if summary.sd is None:
        return mean
    return f"{mean} ± {number(summary.sd * factor, 2)}"


def main_metric(cell: CellSummary) -> MetricSummary | None:
    """The metric that stands for a cell's speed, or the first there is."""
    for name in MAIN_METRICS:
        if name in cell.metrics:
            return cell.metrics[name]
    return next(iter(cell.metrics.values()), None)


def percent(ratio: float | None) -> str:
    """A ratio to a reference as a difference: ``+0.3 %``."""
    return UNKNOWN if ratio is None else f"{100 * (ratio - 1):+.2f} %"
