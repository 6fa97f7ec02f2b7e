"""Recordings of nvpmodel and jetson_clocks: a case is case.txt (printed) and case.json (meant).

A new case is these two files below tests/recordings/BOARD/TOOL/, and no code: the beginning of
its name says what printed it (query, set, conf, printed_conf, show).
"""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.drivers.power_modes.nvpmodel_parse import (
    NvpmodelConf,
    is_no_cap,
    mode_table,
    parse_clocks,
    parse_conf,
    parse_cpu_list,
    parse_printed_conf,
    parse_query,
    parse_set_output,
    parse_values,
)
from farm.drivers.power_modes.nvpmodel_proof import difference
from farm.model.power_mode import PowerMode

RECORDINGS = Path(__file__).parents[2] / "recordings"
CASES = sorted(
    path
    for tool in ("nvpmodel", "jetson_clocks")
    for path in RECORDINGS.glob(f"jetson-*/{tool}/*.txt")
)


def query_meaning(text: str) -> object:
    answer = parse_query(text)
    assert answer is not None
    values = parse_values(text)
    return {
        "name": answer.name,
        "id": answer.id,
        "values": len(values),
        "difference": difference(PowerMode(name=answer.name), values, (), {}),
    }


def set_meaning(text: str) -> object:
    report = parse_set_output(text)
    return {"outcome": report.outcome, "errors": len(report.errors)}


def conf_meaning(conf: NvpmodelConf) -> object:
    table = mode_table(conf, "case")
    modes = {}
    for mode in table.modes:
        modes[mode.name] = mode.model_dump(exclude={"name", "source"}, exclude_none=True)
    return {"default": table.default, "paths": len(conf.paths), "modes": modes}


def show_meaning(text: str) -> object:
    shown = parse_clocks(text)
    return {
        "mode": shown.mode,
        "is_locked": shown.is_locked,
        "online": sorted(number for number, cpu in shown.cpus.items() if cpu.is_online),
        "cpus": len(shown.cpus),
        "cpu0": [shown.cpus[0].min_khz, shown.cpus[0].max_khz],
        "gpu": list(shown.gpus["GPU"]),
    }


def meaning(name: str, text: str) -> object:
    if name.startswith("query"):
        return query_meaning(text)
    if name.startswith("set"):
        return set_meaning(text)
    if name.startswith("printed_conf"):
        return conf_meaning(parse_printed_conf(text))
    if name.startswith("conf"):
        return conf_meaning(parse_conf(text))
    assert name.startswith("show")
    return show_meaning(text)


@pytest.mark.parametrize("path", CASES, ids=lambda path: f"{path.parts[-3]}-{path.stem}")
def test_recording(path: Path) -> None:
    meant = json.loads(path.with_suffix(".json").read_text())
    assert meaning(path.stem, path.read_text()) == meant


def test_there_are_recordings_of_both_tools() -> None:
    assert {path.parent.name for path in CASES} == {"nvpmodel", "jetson_clocks"}


@pytest.mark.parametrize("path", CASES, ids=lambda path: f"{path.parts[-3]}-{path.stem}")
def test_windows_line_ends_of_a_terminal_mean_the_same(path: Path) -> None:
    text = path.read_text()
    assert meaning(path.stem, text.replace("\n", "\r\n")) == meaning(path.stem, text)


def test_a_warning_is_not_taken_for_the_mode() -> None:
    text = "NV Power Mode: NVPM WARN: fan mode is not set!\nNV Power Mode: MAXN\n0\n"
    answer = parse_query(text)
    assert answer is not None
    assert (answer.name, answer.id) == ("MAXN", 0)


@pytest.mark.parametrize("text", ["", "NVPM ERROR: Error opening /x: 13", "NV Power Mode: "])
def test_no_mode_is_none(text: str) -> None:
    assert parse_query(text) is None


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


@pytest.mark.parametrize(
    ("text", "cores"),
    [("0,3-5\n", {0, 3, 4, 5}), ("0-1", {0, 1}), ("2", {2}), ("", set()), ("none", set())],
)
def test_cpu_list(text: str, cores: set[int]) -> None:
    assert parse_cpu_list(text) == cores


def test_no_cap_in_all_its_spellings() -> None:
    spelt = ["-1", "0", "2147483647", "9223372036854775807"]
    assert all(is_no_cap(value) for value in spelt)
    assert not any(is_no_cap(value) for value in ["3199000000", "921600000", "auto", ""])


def test_thor_names_its_gpu_otherwise_and_tx1_lists_no_online() -> None:
    text = (
        "cpu0: Gonvernor=schedutil MinFreq=1000 MaxFreq=1000 CurrentFreq=1000\n"
        "gpu-gpc-0 MinFreq=2000 MaxFreq=2000 CurrentFreq=2000\n"
    )
    shown = parse_clocks(text)
    assert shown.is_locked
    assert shown.cpus[0].is_online
    assert not parse_clocks("cpu0: MinFreq=1 MaxFreq=1").is_locked  # no GPU seen: not proven


@given(st.text(max_size=400))
def test_nothing_raises_for_its_content(text: str) -> None:
    parse_query(text)
    parse_values(text)
    parse_set_output(text)
    parse_clocks(text)
    parse_cpu_list(text)
    mode_table(parse_conf(text), "x")
    mode_table(parse_printed_conf(text), "x")
