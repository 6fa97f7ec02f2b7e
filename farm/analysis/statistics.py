"""Summaries of repeated measurements: mean, spread, confidence, outliers."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import fsum, sqrt
from statistics import median

from farm.errors import AnalysisError

# Two-sided 95 % quantiles of Student's t for 1 to 30 degrees of freedom, then for 40, 60, 120
# and above. Source: NIST/SEMATECH e-Handbook of Statistical Methods, section 1.3.6.7.2,
# column 0.975.
_STUDENT_95 = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)
_STUDENT_95_ABOVE = ((120, 1.980), (60, 2.000), (40, 2.021))
_STUDENT_95_LARGE = 1.960
_LARGE = 1000

LARGEST = 1e150
"""No quantity comes near it, and its square is still a number."""

OUTLIER_LIMIT = 3.5
"""Iglewicz and Hoaglin's limit for the modified z-score (NIST e-Handbook, 1.3.5.17)."""

_MAD_TO_SD = 1.4826  # 1 / 0.6745: a normal distribution's standard deviation over its MAD
_MEAN_DEVIATION_TO_SD = 1.2533  # the same for the mean absolute deviation


@dataclass(frozen=True, slots=True)
class Summary:
    """`n` values in their own unit.

    `sd` is the sample's (n - 1); the 95 % confidence interval of the mean is `mean` plus or
    minus `ci95_half`, by Student. Both are None for one value: it says nothing of its spread.
    """

    n: int
    mean: float
    median: float
    sd: float | None
    minimum: float
    maximum: float
    ci95_half: float | None


def summarise(values: Iterable[float]) -> Summary:
    """Raises AnalysisError for no values, and for one that is not `is_usable`."""
    numbers = _usable(values)
    n = len(numbers)
    mean = fsum(numbers) / n
    sd = sqrt(fsum((value - mean) ** 2 for value in numbers) / (n - 1)) if n > 1 else None
    half = None if sd is None else student_factor(n - 1) * sd / sqrt(n)
    return Summary(n, mean, median(numbers), sd, min(numbers), max(numbers), half)


def is_usable(value: float) -> bool:
    """False for NaN, infinity and what is beyond `LARGEST`."""
    return abs(value) <= LARGEST


def student_factor(degrees: float) -> float:
    """Student's two-sided 95 % factor; between the table's rows the larger one.

    Raises AnalysisError below one degree of freedom.
    """
    if degrees < 1:
        raise AnalysisError("a confidence interval needs at least two values")
    if degrees < len(_STUDENT_95) + 1:
        return _STUDENT_95[int(degrees) - 1]
    if degrees >= _LARGE:
        return _STUDENT_95_LARGE
    rows = (factor for row, factor in _STUDENT_95_ABOVE if degrees >= row)
    return next(rows, _STUDENT_95[-1])


def difference_ci95_half(one: Summary, other: Summary) -> float | None:
    """Half the 95 % interval of the difference of two means; None if a spread is unknown.

    By Welch, who takes no equal variances; degrees of freedom by Welch and Satterthwaite.
    """
    if one.sd is None or other.sd is None:
        return None
    parts = [(one.sd**2 / one.n, one.n), (other.sd**2 / other.n, other.n)]
    total = fsum(part for part, _ in parts)
    shares = fsum((part / total) ** 2 / (n - 1) for part, n in parts) if total else 0.0
    return student_factor(max(1.0, 1 / shares)) * sqrt(total) if shares else 0.0


def find_outliers(values: Sequence[float], limit: float = OUTLIER_LIMIT) -> list[int]:
    """Indices of values more than `limit` scaled median absolute deviations from the median.

    Where more than half the values are equal that deviation is 0 and the mean absolute
    deviation stands in. Raises AnalysisError as `summarise`.
    """
    numbers = _usable(values)
    middle = median(numbers)
    distances = [abs(value - middle) for value in numbers]
    scale = _MAD_TO_SD * median(distances)
    scale = scale or _MEAN_DEVIATION_TO_SD * fsum(distances) / len(distances)
    return [at for at, distance in enumerate(distances) if distance > limit * scale]


def _usable(values: Iterable[float]) -> list[float]:
    numbers = list(values)
    if not numbers:
        raise AnalysisError("no values to summarise")
    for value in numbers:
        if not is_usable(value):
            raise AnalysisError(f"{value} among {len(numbers)} values is no usable number")
    return numbers
