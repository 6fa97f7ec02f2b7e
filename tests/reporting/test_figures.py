from math import nan

import pytest

from farm.analysis.statistics import summarise
from farm.reporting.figures import mean_and_spread, number, percent


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (0.0, "0"),
        (94.327, "94.33"),
        (123456.7, "123457"),
        (0.5, "0.5"),
        (0.0000213, "2.13e-05"),
        (-0.00001, "-1e-05"),
        (nan, "nan"),
    ],
)
def test_numbers_have_four_digits_and_small_ones_do_not_become_zero(
    value: float | None, text: str
) -> None:
    assert number(value) == text


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ((94.31, 94.33), "94.32 ± 0.01"),
        ((162.5601, 162.5602), "162.6 ± <0.1"),
        ((123.0, 123.0), "123.0 ± 0.0"),
        ((0.189, 0.165), "0.1770 ± 0.0170"),
        ((5.0,), "5"),
        ((12345.0, 12350.0), "12348 ± 4"),
        ((1.0, -1.0), "0 ± 1.4"),
        ((1e-6, 2e-6), "1.5e-06 ± 7.1e-07"),
    ],
)
def test_the_spread_has_the_places_of_its_mean(values: tuple[float, ...], text: str) -> None:
    assert mean_and_spread(summarise(values)) == text


def test_unknown_is_a_dash_and_the_factor_changes_the_unit() -> None:
    assert mean_and_spread(None) == "-"
    assert mean_and_spread(summarise([0.1475, 0.1476]), 1000.0) == "147.6 ± 0.1"
    assert percent(None) == "-"
    assert percent(1.003) == "+0.30 %"
    assert percent(0.5) == "-50.00 %"
