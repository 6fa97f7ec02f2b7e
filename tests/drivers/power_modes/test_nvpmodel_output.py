"""Answers and complaints of nvpmodel, and what they mean."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farm.drivers.power_modes.nvpmodel_output import (
    Meaning,
    parse_query,
    parse_set_output,
    parse_values,
)
from farm.drivers.power_modes.nvpmodel_proof import difference
from farm.model.power_mode import PowerMode
from tests.recording_cases import cases, meant, printed

WORDS = [
    *["NV Power Mode: MAXN", "NV Power Mode:", "0", "NVPM ERROR:", "NVPM WARN: ", "rebooting"],
    *["bad input!", "optMask is 1, no request for power mode", "DO YOU WANT TO REBOOT NOW?", "\n"],
    *[
        "Error writing 2 to /a: 19",
        "Error opening /a: 13",
        "request for bad power mode",
        "9" * 5000,
    ],
    *["PARAM A: ARG B: PATH /c: REAL_VAL: 1 CONF_VAL: 2", "sudo: a password is required"],
]


def query_meaning(text: str) -> object:
    answer = parse_query(text)
    assert answer is not None
    values = parse_values(text)
    return {
        "name": answer.name,
        "id": answer.id,
        "fan_mode": answer.fan_mode,
        "values": len(values),
        "difference": difference(PowerMode(name=answer.name), values, (), {}),
        "meanings": [meaning.value for meaning in parse_set_output(text).meanings],
    }


def set_meaning(text: str) -> object:
    report = parse_set_output(text)
    assert report.meaning == report.meanings[0]
    return {
        "outcome": report.outcome,
        "meanings": [meaning.value for meaning in report.meanings],
        "errors": len(report.errors),
        "asked_id": report.asked_id,
        "files": [[file.action, file.value, file.path, file.number] for file in report.files],
    }


@pytest.mark.parametrize("path", cases("nvpmodel", "query"))
def test_query(path: Path) -> None:
    assert query_meaning(printed(path)) == meant(path)
    assert query_meaning(printed(path).replace("\n", "\r\n")) == meant(path)


@pytest.mark.parametrize("path", cases("nvpmodel", "set"))
def test_set(path: Path) -> None:
    assert set_meaning(printed(path)) == meant(path)
    assert set_meaning(printed(path).replace("\n", "\r\n")) == meant(path)


def test_every_meaning_that_a_board_can_print_has_a_recording_or_a_case_here() -> None:
    seen = {word for one in cases("nvpmodel", "set") for word in meant(one.values[0])["meanings"]}
    assert seen | {"sudo_refused", "failed", "read_only"} == {meaning.value for meaning in Meaning}


def test_values_are_what_is_and_what_the_conf_wants() -> None:
    text = (
        "NVPM VERB: PARAM GPU: ARG MAX_FREQ: PATH /sys/gpu/max: REAL_VAL: 114 CONF_VAL: -1\n"
        "NVPM VERB: PARAM EMC: ARG MAX_FREQ: PATH /sys/emc: REAL_VAL:  CONF_VAL: 0\n"
    )
    first, second = parse_values(text)
    assert (first.param, first.arg, first.real, first.conf) == ("GPU", "MAX_FREQ", "114", "-1")
    assert (second.real, second.conf) == ("", "0")


def test_a_warning_is_not_taken_for_the_mode() -> None:
    text = "NV Power Mode: NVPM WARN: fan mode is not set!\nNV Power Mode: MAXN\n0\n"
    answer = parse_query(text)
    assert answer is not None
    assert (answer.name, answer.id) == ("MAXN", 0)


@pytest.mark.parametrize("text", ["", "NVPM ERROR: Error opening /x: 13", "NV Power Mode: "])
def test_no_mode_is_none(text: str) -> None:
    assert parse_query(text) is None


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("sudo: a terminal is required to read the password", Meaning.SUDO_PASSWORD),
        ("sudo: no tty present and no askpass program specified", Meaning.SUDO_PASSWORD),
        ("user is not in the sudoers file.", Meaning.SUDO_REFUSED),
        ("Sorry, user bench may not run sudo on board1.", Meaning.SUDO_REFUSED),
        ("NVPM ERROR: something new", Meaning.FAILED),
        ("NVPM ERROR: Error writing 1 to /sys/x: 22", Meaning.FAILED),
        ("NVPM ERROR: Error opening /var/lib/nvpmodel/status: 30", Meaning.READ_ONLY),
        ("NVPM WARN: fan mode is not set!", Meaning.NO_COMPLAINT),
        ("NVPM ERROR: optMask is 1, no request for power mode", Meaning.FAILED),  # unasked
    ],
)
def test_a_meaning(text: str, meaning: Meaning) -> None:
    assert parse_set_output(text).meaning is meaning


def test_a_gpu_in_use_is_no_failure_of_its_own() -> None:
    report = parse_set_output("NVPM WARN: Golden image context is already created\n")
    assert report.meaning is Meaning.GPU_IN_USE
    assert report.outcome == "done"
    with_error = parse_set_output(
        "NVPM WARN: Golden image context is already created\n"
        "NVPM ERROR: failed to set power mode!\n"
    )
    assert with_error.outcome == "failed"


@settings(deadline=None)
@given(st.text(max_size=400) | st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join))
def test_nothing_raises_for_its_content(text: str) -> None:
    parse_query(text)
    parse_values(text)
    assert parse_set_output(text).meanings
