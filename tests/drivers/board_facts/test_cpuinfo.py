"""Cores of /proc/cpuinfo."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farm.drivers.board_facts.cpuinfo import parse_cpuinfo
from tests.recording_cases import cases, meant, printed

WORDS = ["processor", ":", " 0", "\t", "\n", "CPU part", "0xd07", "0x", "CPU implementer", "²"]


@pytest.mark.parametrize("path", cases("cpuinfo"))
def test_recording(path: Path) -> None:
    seen = parse_cpuinfo(printed(path))
    assert {
        "cores": [[core.number, core.name, core.implementer, core.part] for core in seen.cores],
        "hardware": seen.hardware,
        "model": seen.model,
    } == meant(path)


def test_the_pis_model_and_an_unknown_core() -> None:
    text = (
        "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xfff\n\n"
        "Revision\t: d04170\nModel\t\t: Raspberry Pi 5 Model B Rev 1.0\n"
    )
    seen = parse_cpuinfo(text)
    assert seen.model == "Raspberry Pi 5 Model B Rev 1.0"
    assert [(core.name, core.part) for core in seen.cores] == [("", 0xFFF)]


def test_a_pc_has_its_model_name() -> None:
    seen = parse_cpuinfo("processor\t: 0\nmodel name\t: AMD EPYC 7763\n")
    assert [core.name for core in seen.cores] == ["AMD EPYC 7763"]


@settings(deadline=None)
@given(st.text(max_size=300) | st.lists(st.sampled_from(WORDS), max_size=20).map("".join))
def test_nothing_raises_for_its_content(text: str) -> None:
    assert all(core.number >= 0 for core in parse_cpuinfo(text).cores)
