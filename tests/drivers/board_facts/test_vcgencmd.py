"""Raspberry Pi's vcgencmd."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farm.drivers.board_facts.vcgencmd import (
    PmicRail,
    parse_clock,
    parse_pmic_adc,
    parse_temperature,
    parse_throttled,
    parse_volts,
    pmic_watts,
)
from tests.recording_cases import cases, meant, printed

WORDS = [
    *["throttled=0x", "50000", "temp=", "62.3", "'C", "frequency(", "45)=", "volt=", "V", "\n"],
    *[" X_A current(0)=", "0.5A", " X_V volt(1)=", "1V", "9" * 5000],
]


def meaning(text: str) -> object:
    throttled, rails = parse_throttled(text), parse_pmic_adc(text)
    return {
        "throttled": throttled and [sorted(throttled.now), sorted(throttled.since_boot)],
        "temperature_c": parse_temperature(text),
        "clock_hz": parse_clock(text),
        "volts": parse_volts(text),
        "rails": {name: [rail.amperes, rail.volts] for name, rail in rails.items()},
        "watts": pytest.approx(pmic_watts(rails)),
    }


@pytest.mark.parametrize("path", cases("vcgencmd"))
def test_recording(path: Path) -> None:
    assert meaning(printed(path)) == meant(path)


@pytest.mark.parametrize(
    ("bits", "now", "since_boot"),
    [
        ("0x1", {"under_voltage"}, set()),
        ("0x2", {"clock_capped"}, set()),
        ("0x4", {"throttled"}, set()),
        ("0x8", {"soft_temperature_limit"}, set()),
        ("0x10000", set(), {"under_voltage"}),
        ("0xe0000", set(), {"clock_capped", "throttled", "soft_temperature_limit"}),
    ],
)
def test_bits(bits: str, now: set[str], since_boot: set[str]) -> None:
    throttled = parse_throttled(f"throttled={bits}\n")
    assert throttled is not None
    assert (set(throttled.now), set(throttled.since_boot)) == (now, since_boot)


def test_no_answer_is_none_and_not_all_well() -> None:
    text = 'error=1 error_msg="Command not registered"\n'
    assert parse_throttled(text) is None
    assert parse_temperature(text) is None
    assert pmic_watts(parse_pmic_adc(text)) is None


def test_a_sum_needs_both_halves_of_every_rail() -> None:
    whole = {"A": PmicRail(2.0, 3.0), "EXT5V": PmicRail(None, 5.0)}
    assert pmic_watts(whole) == 6.0
    assert pmic_watts({**whole, "B": PmicRail(1.0, None)}) is None


@settings(deadline=None)
@given(st.text(max_size=300) | st.lists(st.sampled_from(WORDS), max_size=16).map("".join))
def test_nothing_raises_for_its_content(text: str) -> None:
    meaning(text)
