import statistics
from math import exp, inf, lgamma, nan, pi, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.analysis.statistics import (
    Summary,
    difference_ci95_half,
    find_outliers,
    is_usable,
    student_factor,
    summarise,
)
from farm.errors import AnalysisError

# Five windows of a published key-word run, inferences per second; the median is printed.
WINDOWS = [231.0, 232.26, 232.4, 233.1, 232.2]


def inside_student(half: float, degrees: float) -> float:
    """The share of Student's distribution within +-half, by Simpson's rule."""
    head = exp(lgamma((degrees + 1) / 2) - lgamma(degrees / 2)) / sqrt(degrees * pi)

    def density(t: float) -> float:
        power: float = (1 + t * t / degrees) ** (-(degrees + 1) / 2)
        return head * power

    steps = 2000
    width = half / steps
    inner = sum((4 if step % 2 else 2) * density(step * width) for step in range(1, steps))
    return 2 * (density(0) + inner + density(half)) * width / 3


@pytest.mark.parametrize("degrees", [*range(1, 31), 40, 60, 120])
def test_the_student_factor_encloses_95_percent(degrees: int) -> None:
    assert inside_student(student_factor(degrees), degrees) == pytest.approx(0.95, abs=2e-4)


def test_between_rows_the_student_factor_is_the_larger_one() -> None:
    assert student_factor(9.99) == student_factor(9) == 2.262
    assert student_factor(30.5) == student_factor(39) == 2.042
    assert student_factor(119) == 2.000
    assert student_factor(999) == 1.980
    assert student_factor(1e6) == 1.960
    with pytest.raises(AnalysisError):
        student_factor(0.5)


def test_a_summary_in_closed_form() -> None:
    made = summarise([2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0])
    assert (made.n, made.mean, made.median) == (8, 5.0, 4.5)
    assert (made.minimum, made.maximum) == (2.0, 9.0)
    assert made.sd == pytest.approx(sqrt(32 / 7))
    assert made.ci95_half == pytest.approx(2.365 * sqrt(32 / 7) / sqrt(8))


def test_the_median_of_the_published_windows() -> None:
    assert summarise(WINDOWS).median == 232.26


def test_one_value_has_no_spread() -> None:
    assert summarise([3.5]) == Summary(1, 3.5, 3.5, None, 3.5, 3.5, None)


@pytest.mark.parametrize("values", [[], [1.0, nan], [inf], [-inf, 1.0], [1e300]])
def test_what_is_no_number_is_refused(values: list[float]) -> None:
    with pytest.raises(AnalysisError):
        summarise(values)
    with pytest.raises(AnalysisError):
        find_outliers(values)


@given(st.lists(st.integers(-(10**12), 10**12).map(lambda n: n / 1000), min_size=2, max_size=40))
def test_a_summary_agrees_with_the_standard_library(values: list[float]) -> None:
    made = summarise(values)
    scale = max(map(abs, values))
    assert made.mean == pytest.approx(statistics.mean(values), abs=1e-12 * scale)
    assert made.sd == pytest.approx(statistics.stdev(values), rel=1e-6, abs=1e-9 * scale)


def test_usable_numbers() -> None:
    assert is_usable(-1e150)
    assert not any(map(is_usable, (nan, inf, -inf, 1e151)))
    assert summarise([1e150, -1e150]).sd == pytest.approx(sqrt(2) * 1e150)


@pytest.mark.parametrize(
    ("values", "outliers"),
    [
        ([10.0, 10.1, 9.9, 10.0, 10.2, 14.0], [5]),
        ([5.0, 10.0, 10.1, 9.9, 10.0, 10.2, 14.0], [0, 6]),
        ([10.0, 10.1, 9.9, 10.2], []),
        # MAD 0.1, so 3.5 scaled MADs are 0.5189: the last value lies inside and outside.
        ([9.9, 9.9, 10.0, 10.1, 10.51], []),
        ([9.9, 9.9, 10.0, 10.1, 10.53], [4]),
        # More than half equal: the mean deviation stands in.
        ([10.0] * 9 + [10.1], [9]),
        ([10.0] * 3 + [10.1, 9.9], []),
        ([10.0] * 4, []),
        ([1.0], []),
    ],
)
def test_outliers(values: list[float], outliers: list[int]) -> None:
    assert find_outliers(values) == outliers


def test_the_interval_of_a_difference_with_equal_spreads_is_the_pooled_one() -> None:
    one, other = summarise([1.0, 2.0, 3.0]), summarise([11.0, 12.0, 13.0])
    assert difference_ci95_half(one, other) == pytest.approx(2.776 * sqrt(2 / 3))  # 4 degrees


def test_the_interval_of_a_difference_leans_on_the_noisy_side() -> None:
    noisy, calm = summarise([0.0, 10.0, 20.0]), summarise([5.0, 5.0, 5.0, 5.0])
    assert difference_ci95_half(noisy, calm) == pytest.approx(4.303 * 10 / sqrt(3))  # 2 degrees


def test_the_interval_of_a_difference_without_spread() -> None:
    exact = summarise([5.0, 5.0])
    assert difference_ci95_half(exact, exact) == 0.0
    assert difference_ci95_half(exact, summarise([5.0])) is None
