"""Answers of nvidia-smi's queries."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farm.drivers.board_facts.nvidia_smi_query import parse_query, smi_number
from tests.recording_cases import cases, meant, printed


@pytest.mark.parametrize("path", cases("nvidia_smi"))
def test_recording(path: Path) -> None:
    expected = meant(path)
    answer = parse_query(printed(path), expected["fields"])
    assert [list(row.values()) for row in answer.rows] == expected["rows"]
    assert all(list(row) == expected["fields"] for row in answer.rows)
    assert answer.problem == expected["problem"]


@pytest.mark.parametrize(
    ("cell", "number"),
    [
        ("11.17 W", 11.17),
        ("0 %", 0.0),
        ("35", 35.0),
        ("1965 MHz", 1965.0),
        ("P2", None),
        ("90.04.23.00.5F", None),
        ("nan", None),
        ("9" * 400, None),
        ("", None),
        (None, None),
    ],
)
def test_number(cell: str | None, number: float | None) -> None:
    assert smi_number(cell) == number


@pytest.mark.parametrize(
    "cell", ["[N/A]", "N/A", "[Not Supported]", "[Unknown Error]", "[GPU requires reset]", ""]
)
def test_what_a_gpu_does_not_tell_is_none(cell: str) -> None:
    (row,) = parse_query(f"0, {cell}\n", ["index", "power.draw"]).rows
    assert row == {"index": "0", "power.draw": None}


@pytest.mark.parametrize(
    "sentence",
    [
        "No devices were found",
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure "
        "that the latest NVIDIA driver is installed and running.",
        'Field "power.drow" is not a valid field to query.',
    ],
)
@pytest.mark.parametrize("fields", [["power.draw"], ["index", "power.draw"], ["a", "b", "c"]])
def test_a_sentence_is_a_problem_and_no_row(sentence: str, fields: list[str]) -> None:
    answer = parse_query(sentence + "\n", fields)
    assert answer.rows == ()
    assert answer.problem == sentence


def test_several_gpus_and_one_that_is_gone() -> None:
    text = "index, power.draw [W]\n0, 20.00 W\nUnable to determine the device handle.\n2, 30 W\n"
    answer = parse_query(text, ["index", "power.draw"])
    assert [smi_number(row["power.draw"]) for row in answer.rows] == [20.0, 30.0]
    assert answer.problem == "Unable to determine the device handle."


@settings(deadline=None)
@given(st.text("0,.[]N/A W%\n²x", max_size=200) | st.text(max_size=200))
def test_nothing_raises_for_its_content(text: str) -> None:
    for row in parse_query(text, ["a", "b"]).rows:
        assert all(value is None or smi_number(value) != float("inf") for value in row.values())
