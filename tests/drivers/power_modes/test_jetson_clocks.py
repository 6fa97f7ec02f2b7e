"""What jetson_clocks shows and complains of, from R28 to R39."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farm.drivers.power_modes.jetson_clocks import ClocksMeaning, parse_clocks, parse_complaints
from tests.recording_cases import cases, meant, printed

WORDS = [
    *["cpu0:", "cpu1:", "cpu99999:", "GPU", "gpu-gpc-0", "EMC", "MinFreq=1", "MaxFreq=1", "\n"],
    *["MaxFreq=x", "Online=1", "Online CPUs: 0-3", "FAN", "Fan: speed=1", "IdleStates:", "c7=0"],
    *["SOC family:tegra210", "Machine:", "NV Power Mode: MAXN", "FreqOverride=1", "9" * 5000],
]


def meaning(text: str) -> object:
    shown = parse_clocks(text)
    ((gpu_name, gpu),) = shown.gpus.items()
    emc = shown.engines["EMC"]
    return {
        "mode": shown.mode,
        "is_locked": shown.is_locked,
        "online": sorted(number for number, cpu in shown.cpus.items() if cpu.is_online),
        "cpus": len(shown.cpus),
        "cpu0": [shown.cpus[0].min_khz, shown.cpus[0].max_khz],
        "gpu": list(gpu),
        "gpu_name": gpu_name,
        "governor": shown.cpus[0].governor,
        "machine": shown.machine,
        "active_tpcs": shown.active_tpcs,
        "fan_pwm": shown.fan_pwm,
        "emc": [emc.min_hz, emc.max_hz, emc.is_overridden],
    }


@pytest.mark.parametrize("path", cases("jetson_clocks", "show"))
def test_show(path: Path) -> None:
    assert meaning(printed(path)) == meant(path)
    assert meaning(printed(path).replace("\n", "\r\n")) == meant(path)


def test_details_of_one_board() -> None:
    (path,) = [one.values[0] for one in cases("jetson_clocks", "show_maxp_arm")]
    shown = parse_clocks(printed(path))
    assert shown.cpus[1].idle_states == {"C1": True, "c6": True, "c7": True}
    assert shown.cpus[3].now_khz == 1881600
    assert not shown.cpus[2].is_online
    assert shown.engines["EMC"].now_hz == 1600000000
    assert (shown.soc, shown.fan_control) == ("tegra186", "")


def test_thor_names_its_gpu_otherwise_and_tx1_lists_no_online() -> None:
    text = (
        "cpu0: Gonvernor=schedutil MinFreq=1000 MaxFreq=1000 CurrentFreq=1000\n"
        "gpu-gpc-0 MinFreq=2000 MaxFreq=2000 CurrentFreq=2000\n"
    )
    shown = parse_clocks(text)
    assert shown.is_locked
    assert shown.cpus[0].is_online
    assert not parse_clocks("cpu0: MinFreq=1 MaxFreq=1").is_locked  # no GPU seen: not proven


@pytest.mark.parametrize(
    ("line", "is_locked"),
    [
        ("cpu1: Online=1 MinFreq=1 MaxFreq=2", False),
        ("cpu1: Online=0 MinFreq=1 MaxFreq=2", True),
        ("EMC MinFreq=1 MaxFreq=2 FreqOverride=0", True),
        ("gpu-gpc-1 MinFreq=1 MaxFreq=2", False),
        ("gpu-nvd-0 MinFreq=1 MaxFreq=2", True),
    ],
)
def test_locked_is_about_online_cpus_and_the_gpu_alone(line: str, is_locked: bool) -> None:
    text = f"cpu0: Online=1 MinFreq=2 MaxFreq=2\nGPU MinFreq=5 MaxFreq=5\n{line}\n"
    assert parse_clocks(text).is_locked is is_locked


def test_a_core_that_the_list_leaves_out_is_offline_where_its_line_does_not_say() -> None:
    text = (
        "Online CPUs: 0, Offline CPUs: 1\n"
        "cpu0: MinFreq=2 MaxFreq=2\ncpu1: MinFreq=1 MaxFreq=2\nGPU MinFreq=5 MaxFreq=5\n"
    )
    shown = parse_clocks(text)
    assert [cpu.is_online for cpu in shown.cpus.values()] == [True, False]
    assert shown.is_locked


@pytest.mark.parametrize(
    ("text", "meanings"),
    [
        (
            "Error: Run this script(/usr/bin/jetson_clocks) as a root user",
            [ClocksMeaning.NOT_ROOT],
        ),
        ("Can't access Fan!", [ClocksMeaning.NO_FAN]),
        ("Error! unsupported SOC tegra999", [ClocksMeaning.UNSUPPORTED_SOC]),
        ("Error: Failed to max GPU frequency!", [ClocksMeaning.GPU_NOT_LOCKED]),
        (
            "/usr/bin/jetson_clocks: line 269: : No such file or directory",
            [ClocksMeaning.PATH_MISSING],
        ),
        ("Failed to retrieve unit state: Access denied", [ClocksMeaning.NOISE]),
        ("Enabled persistence mode for GPU 0.\nAll done.", []),
        ("", []),
    ],
)
def test_complaints(text: str, meanings: list[ClocksMeaning]) -> None:
    assert list(parse_complaints(text)) == meanings


@settings(deadline=None)
@given(st.text(max_size=400) | st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join))
def test_nothing_raises_for_its_content(text: str) -> None:
    assert parse_clocks(text).is_locked in (True, False)
    parse_complaints(text)
