"""The kernel's lists of CPUs."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farm.drivers.power_modes.cpu_list import parse_cpu_list


@pytest.mark.parametrize(
    ("text", "cores"),
    [("0,3-5\n", {0, 3, 4, 5}), ("0-1", {0, 1}), ("2", {2}), ("", set()), ("none", set())],
)
def test_cpu_list(text: str, cores: set[int]) -> None:
    assert parse_cpu_list(text) == cores


@settings(deadline=None)
@given(st.text("0123456789,- \n²", max_size=40))
def test_nothing_raises(text: str) -> None:
    assert all(number >= 0 for number in parse_cpu_list(text))
