"""Processors of lscpu, flat and indented, of one kind and of two."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farm.drivers.board_facts.lscpu import parse_lscpu
from tests.recording_cases import cases, meant, printed

WORDS = [
    "Model name",
    ":",
    " 4",
    "\n",
    "CPU(s)",
    "Core(s) per socket",
    "Socket(s)",
    "-",
    "²",
    "L1d",
]


@pytest.mark.parametrize("path", cases("lscpu"))
def test_recording(path: Path) -> None:
    seen = parse_lscpu(printed(path))
    assert {
        "architecture": seen.architecture,
        "cpus": seen.cpus,
        "online": seen.online,
        "vendor": seen.vendor,
        "kinds": [[kind.name, kind.cpus, kind.max_mhz, kind.min_mhz] for kind in seen.kinds],
        "caches": dict(seen.caches),
    } == meant(path)


def test_threads_count_as_cpus() -> None:
    text = "Model name: X\nThread(s) per core: 2\nCore(s) per socket: 8\nSocket(s): 1\n"
    assert [kind.cpus for kind in parse_lscpu(text).kinds] == [16]


def test_what_is_not_told_is_unknown() -> None:
    (kind,) = parse_lscpu("Model name: X\nSocket(s): -\n").kinds
    assert (kind.cpus, kind.max_mhz) == (None, None)
    assert parse_lscpu("lscpu: command not found").kinds == ()


@settings(deadline=None)
@given(st.text(max_size=300) | st.lists(st.sampled_from(WORDS), max_size=20).map("".join))
def test_nothing_raises_for_its_content(text: str) -> None:
    assert all(kind.name for kind in parse_lscpu(text).kinds)
