"""Channels of tegrastats over the lines of one process."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farm.drivers.telemetry.tegrastats import TegrastatsTelemetry, channels_of
from farm.drivers.telemetry.tegrastats_line import parse_line
from tests.recording_cases import cases, printed

UNITS = {"load_pct", "clock_mhz", "temperature_c", "rail_mw"}
PLAIN = {"cores_online", "ram_used_mb", "ram_total_mb", "swap_used_mb", "swap_total_mb"}


def lines_of(name: str) -> list[str]:
    (path,) = [one.values[0] for one in cases("tegrastats", name)]
    return printed(path).splitlines()


@pytest.mark.parametrize("path", cases("tegrastats"))
def test_channels_are_a_quantity_with_its_unit_and_a_name(path: Path) -> None:
    telemetry = TegrastatsTelemetry()
    for line in printed(path).splitlines():
        channels = telemetry.parse(line)
        assert set(channels) <= PLAIN | {name for name in channels if name.split(":")[0] in UNITS}
        assert channels["ram_used_mb"] > 0
        assert all(0 <= value < 200 for name, value in channels.items() if "temp" in name)


def test_a_missing_load_is_not_zero() -> None:
    orin = channels_of(parse_line(lines_of("r36_super_nonroot")[0]))
    assert "load_pct:GPU" not in orin  # GR3D_FREQ 0%, as it is for everyone but root
    assert "load_pct:EMC" not in orin
    (thor, *_) = lines_of("r38.4")
    assert "load_pct:GPU" not in channels_of(parse_line(thor))
    assert channels_of(parse_line(thor))["clock_mhz:GPU"] == 0


def test_zero_is_a_load_where_the_process_has_shown_another() -> None:
    burn = lines_of("r35_8gb_burn")
    telemetry = TegrastatsTelemetry()
    loads = [telemetry.parse(line).get("load_pct:GPU") for line in burn]
    assert loads[:3] == [22, 32, 0]
    assert None not in loads
    assert TegrastatsTelemetry().parse(burn[2]).get("load_pct:GPU") is None
    assert all("load_pct:EMC" not in telemetry.parse(line) for line in burn)


def test_the_first_sample_may_lack_what_later_ones_have() -> None:
    lines = lines_of("r28_log")
    telemetry = TegrastatsTelemetry()
    first, last = telemetry.parse(lines[0]), telemetry.parse(lines[-1])
    assert set(last) - set(first) == {
        *["load_pct:EMC", "clock_mhz:EMC", "load_pct:GPU", "clock_mhz:GPU", "clock_mhz:APE"],
        *["load_pct:MTS_fg", "load_pct:MTS_bg"],
    }
    assert set(first) < set(last)


def test_noise_between_the_lines_gives_no_channels() -> None:
    telemetry = TegrastatsTelemetry()
    assert telemetry.parse("Warning: tegrastats is started without root, 12%@3 CPU@3C") == {}
    assert telemetry.parse("") == {}
    assert telemetry.parse("RAM 1/2MB CPU [3%@4]") == {
        "ram_used_mb": 1,
        "ram_total_mb": 2,
        "cores_online": 1,
        "load_pct:cpu0": 3,
        "clock_mhz:cpu0": 4,
    }


@settings(deadline=None)
@given(st.lists(st.text(max_size=100), max_size=5))
def test_nothing_raises_for_its_content(lines: list[str]) -> None:
    telemetry = TegrastatsTelemetry()
    for line in lines:
        telemetry.parse(f"RAM 1/2MB {line}")
