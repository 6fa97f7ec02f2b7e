"""Numbers as text for people: a fixed number of significant digits, the unit beside it."""

from math import floor, log10

from farm.analysis.cells import CellSummary, MetricSummary
from farm.analysis.statistics import Summary

MAIN_METRICS = ("throughput", "gflops", "images_per_s")
UNKNOWN = "-"
SIGNIFICANT = 4
SMALLEST_FIXED, LARGEST_FIXED = 1e-3, 1e12


def number(value: float | None, digits: int = 4) -> str:
    """`value` with `digits` significant digits; only tiny values are in exponent form."""
    if value is None:
        return UNKNOWN
    text = f"{value:.{digits}g}"
    return text if "e" not in text or abs(value) < 1 else f"{value:.0f}"


def mean_and_spread(summary: Summary | None, factor: float = 1.0) -> str:
    """``12.57 ± 0.03``: mean and sample standard deviation, both times `factor`.

    The deviation has the places of the mean; one that is smaller yet says so: ``± <0.01``.
    """
    if summary is None:
        return UNKNOWN
    mean = summary.mean * factor
    if summary.sd is None:
        return number(mean)
    spread, places = summary.sd * factor, _places(mean)
    if places is None or spread >= abs(mean):
        return f"{number(mean)} ± {number(spread, 2)}"
    last = 10.0**-places
    smaller = f"<{last:.{places}f}"
    shown = f"{spread:.{places}f}" if spread == 0 or spread >= last / 2 else smaller
    return f"{mean:.{places}f} ± {shown}"


def _places(value: float) -> int | None:
    """Decimal places that show four significant digits; None for zero and unusual sizes."""
    if not SMALLEST_FIXED <= abs(value) < LARGEST_FIXED:
        return None
    return max(0, SIGNIFICANT - 1 - floor(log10(abs(value))))


def main_metric(cell: CellSummary) -> MetricSummary | None:
    """The metric that stands for a cell's speed, or the first there is."""
    for name in MAIN_METRICS:
        if name in cell.metrics:
            return cell.metrics[name]
    return next(iter(cell.metrics.values()), None)


def percent(ratio: float | None) -> str:
    """A ratio to a reference as a difference: ``+0.3 %``."""
    return UNKNOWN if ratio is None else f"{100 * (ratio - 1):+.2f} %"
