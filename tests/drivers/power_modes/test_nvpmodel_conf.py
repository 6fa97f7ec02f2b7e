"""Tables of power modes: conf files, printed confs, and what follows from a mode's settings."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farm.drivers.power_modes.nvpmodel_conf import (
    NvpmodelConf,
    gpu_masks,
    is_no_cap,
    mode_table,
    parse_conf,
    parse_printed_conf,
)
from tests.recording_cases import RECORDINGS, cases, meant, printed

WORDS = [
    *["< PARAM TYPE=FILE NAME=A >", "<PARAM NAME=B>", "< POWER_MODEL ID=1 NAME=X >"],
    *[
        "< PM_CONFIG DEFAULT=1 >",
        "A B 1",
        "A /p",
        "#",
        "<",
        "NVPM VERB: ",
        "PM_CONFIG: DEFAULT=X(1)",
    ],
    *[
        "PARAM TYPE=FILE NAME=A",
        "POWER_MODEL: ID=1 NAME=X",
        "\n",
        "9" * 5000,
        "-1",
        "ID=",
        "NAME=",
    ],
]


def meaning(conf: NvpmodelConf) -> object:
    table = mode_table(conf, "case")
    modes = {}
    for mode in table.modes:
        modes[mode.name] = mode.model_dump(exclude={"name", "source"}, exclude_none=True)
    return {"default": table.default, "paths": len(conf.paths), "modes": modes}


@pytest.mark.parametrize("path", cases("nvpmodel", "conf"))
def test_conf(path: Path) -> None:
    text = printed(path)
    assert meaning(parse_conf(text)) == meant(path)
    assert meaning(parse_conf(text.replace("\n", "\r\n"))) == meant(path)


@pytest.mark.parametrize("path", cases("nvpmodel", "printed_conf"))
def test_printed_conf(path: Path) -> None:
    text = printed(path)
    assert meaning(parse_printed_conf(text)) == meant(path)
    assert meaning(parse_printed_conf(text.replace("\n", "\r\n"))) == meant(path)


@pytest.mark.parametrize(
    "board",
    [
        *["jetson-nano", "jetson-tx2", "jetson-tx2-nx", "jetson-xavier-nx", "jetson-orin-nano"],
        *["jetson-orin-nx", "jetson-agx-orin"],
    ],
)
def test_there_is_a_conf_of(board: str) -> None:
    assert list(RECORDINGS.glob(f"{board}/nvpmodel/conf*.txt"))


def test_conf_takes_param_without_blank_and_ids_with_gaps() -> None:
    text = """
<PARAM TYPE=FILE NAME=CPU_ONLINE >
CORE_1 /sys/devices/system/cpu/cpu1/online   # the second
< POWER_MODEL ID=0 NAME=TOP >
CPU_ONLINE CORE_1 1
< POWER_MODEL ID=7 NAME=10W_LOW >
CPU_ONLINE CORE_1 0
EMC MAX_FREQ 1600000000
< PM_CONFIG DEFAULT=7 >
"""
    conf = parse_conf(text)
    table = mode_table(conf, "here")
    assert [(mode.name, mode.id, mode.online_cores) for mode in table.modes] == [
        ("TOP", 0, 2),
        ("10W_LOW", 7, 1),
    ]
    assert table.default == "10W_LOW"
    assert table.modes[1].budget_w == 10
    assert table.modes[1].emc_mhz == 1600
    assert conf.paths == {("CPU_ONLINE", "CORE_1"): "/sys/devices/system/cpu/cpu1/online"}


def test_a_section_without_number_or_name_takes_no_setting_with_it() -> None:
    text = "< POWER_MODEL ID=x NAME=BAD >\nGPU MAX_FREQ 1\n< POWER_MODEL ID=1 NAME=GOOD >\n"
    conf = parse_conf(text)
    assert [(mode.id, mode.name, dict(mode.settings)) for mode in conf.modes] == [(1, "GOOD", {})]


def test_the_newer_kernels_paths_stand_beside_the_old_ones() -> None:
    conf = parse_conf(printed(RECORDINGS / "jetson-orin-nano" / "nvpmodel" / "conf_4gb.txt"))
    old, new = conf.paths["GPU", "MAX_FREQ"], conf.paths["GPU", "MAX_FREQ_KNEXT"]
    assert old == "/sys/devices/17000000.ga10b/devfreq/17000000.ga10b/max_freq"
    assert new == "/sys/devices/17000000.ga10b/devfreq_dev/max_freq"


def test_limits_of_current_are_params_of_their_own_kind() -> None:
    conf = parse_conf(printed(RECORDINGS / "jetson-xavier-nx" / "nvpmodel" / "conf_hwmon.txt"))
    assert conf.kinds["VDDIN_OC_LIMIT"] == "HWMON"
    assert conf.kinds["CPU_ONLINE"] == "FILE"
    assert conf.kinds["GPU"] == "CLOCK"
    first, last = conf.modes[0], conf.modes[8]
    assert first.settings["VDDIN_OC_LIMIT", "WARN"] == "3000"
    assert last.settings["VDDIN_OC_LIMIT", "WARN"] == "4000"


def test_masks_of_the_gpu() -> None:
    folder = RECORDINGS / "jetson-orin-nano" / "nvpmodel"
    modes = parse_conf(printed(folder / "conf_4gb.txt")).modes
    assert [gpu_masks(mode) for mode in modes] == [{"FBP_PG_MASK": 2, "TPC_PG_MASK": 252}] * 3
    modes = parse_conf(printed(RECORDINGS / "jetson-agx-orin" / "nvpmodel" / "conf.txt")).modes
    masks = [gpu_masks(mode)["TPC_PG_MASK"] for mode in modes]
    assert masks == [0, 248, 240, 0]
    assert gpu_masks(parse_conf("< POWER_MODEL ID=0 NAME=MAXN >\n").modes[0]) == {}


def test_file_and_printed_conf_have_one_digest_until_a_setting_changes() -> None:
    folder = RECORDINGS / "jetson-nano" / "nvpmodel"
    printed = parse_printed_conf((folder / "printed_conf.txt").read_text())
    text = (folder / "conf_custom_mode.txt").read_text()
    begin, end = text.index("< POWER_MODEL ID=2"), text.index("# which mode")
    stock = text[:begin] + text[end:]
    digest = mode_table(printed, "p").digest
    assert mode_table(parse_conf(stock), "f").digest == digest
    assert mode_table(parse_conf(stock.replace("918000", "918001")), "f").digest != digest


@pytest.mark.parametrize(
    ("name", "budget_w"),
    [("MODE_28_1_W", 28.1), ("7W_AI", 7), ("MODE_30W_2CORE", 30), ("5W2", 5), ("MAXQ", None)],
)
def test_budget_is_read_from_the_name(name: str, budget_w: float | None) -> None:
    table = mode_table(parse_conf(f"< POWER_MODEL ID=1 NAME={name} >\n"), "here")
    assert table.modes[0].budget_w == budget_w


def test_no_cap_in_all_its_spellings() -> None:
    spelt = ["-1", "0", "2147483647", "9223372036854775807"]
    assert all(is_no_cap(value) for value in spelt)
    assert not any(is_no_cap(value) for value in ["3199000000", "921600000", "auto", ""])


@settings(deadline=None)
@given(st.text(max_size=400) | st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join))
def test_nothing_raises_for_its_content(text: str) -> None:
    for conf in (parse_conf(text), parse_printed_conf(text)):
        mode_table(conf, "x")
        for mode in conf.modes:
            gpu_masks(mode)
