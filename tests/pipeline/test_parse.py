"""What `farm parse` makes of a board's text."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farm.errors import ConfigError
from farm.pipeline import parse
from farm.pipeline.parse import PARSERS, parse_file
from tests.recording_cases import RECORDINGS, cases

KINDS = {
    "cpuinfo": "cpuinfo",
    "device_tree": None,  # not text
    "jetson_clocks": "jetson-clocks",
    "kernel": "kernel",
    "lscpu": "lscpu",
    "nv_tegra_release": "l4t-release",
    "tegrastats": "tegrastats",
    "vcgencmd": "vcgencmd",
}
NVPMODEL = {"conf": "nvpmodel-conf", "printed": "nvpmodel-conf", "query": "nvpmodel-query"}


def every_recording() -> Sequence[object]:
    found = [
        pytest.param(kind, one.values[0], id=f"{kind}-{one.id}")
        for tool, kind in KINDS.items()
        if kind is not None
        for one in cases(tool)
    ]
    for one in cases("nvpmodel"):
        begin = one.values[0].stem.partition("_")[0]
        found.append(pytest.param(NVPMODEL.get(begin, "nvpmodel-output"), *one.values, id=one.id))
    return found


@pytest.mark.parametrize(("kind", "path"), every_recording())
def test_every_recording_becomes_json(kind: str, path: Path) -> None:
    text = json.dumps(parse_file(kind, path), allow_nan=False)
    assert json.loads(text) is not None or path.stem == "dpkg_absent"


def test_tegrastats_tells_samples_channels_and_other_lines(tmp_path: Path) -> None:
    file = tmp_path / "log"
    file.write_text("started\n\nRAM 1/2MB CPU [3%@4,off] NPU 5 GPU@-256C VDD_IN 7mW/8mW\n")
    shown = parse_file("tegrastats", file)
    assert isinstance(shown, dict)
    (sample,) = shown["samples"]
    assert shown["other_lines"] == ["started"]
    assert sample["channels"] == {
        "ram_used_mb": 1,
        "ram_total_mb": 2,
        "cores_online": 1,
        "load_pct:cpu0": 3,
        "clock_mhz:cpu0": 4,
        "rail_mw:VDD_IN": 7,
    }
    assert sample["unknown"] == {"NPU": "5"}
    assert sample["dropped"] == ["GPU"]
    assert sample["rails"] == {"VDD_IN": {"now_mw": 7, "mean_mw": 8, "max_mw": None}}


def test_a_conf_and_what_the_tool_prints_of_it_are_shown_alike() -> None:
    folder = RECORDINGS / "jetson-nano" / "nvpmodel"
    file = parse_file("nvpmodel-conf", folder / "conf.txt")
    printed = parse_file("nvpmodel-conf", folder / "printed_conf.txt")
    assert isinstance(file, dict)
    assert isinstance(printed, dict)
    assert file["digest"] == printed["digest"]
    assert file["default_id"] == 0
    assert [mode["name"] for mode in file["modes"]] == ["MAXN", "5W"]
    assert file["params"]["CPU_ONLINE"]["paths"]["CORE_0"].endswith("/cpu0/online")


def test_a_complaint_has_its_meaning() -> None:
    path = RECORDINGS / "jetson-agx-thor" / "nvpmodel" / "set_no_input.txt"
    shown = parse_file("nvpmodel-output", path)
    assert isinstance(shown, dict)
    assert shown["meaning"] == "bad_input"
    assert shown["meanings"] == ["bad_input", "reboot_needed"]
    assert shown["asked_id"] == 2


def test_an_unknown_kind_lists_the_known() -> None:
    with pytest.raises(ConfigError, match=r"tegrastat'.*lscpu, nvpmodel-conf.*mean 'tegrastats'"):
        parse_file("tegrastat", None)


def test_a_file_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="absent: cannot be read: No such file"):
        parse_file("lscpu", tmp_path / "absent")
    with pytest.raises(ConfigError, match="Is a directory"):
        parse_file("lscpu", tmp_path)
    monkeypatch.setattr(parse, "LARGEST_BYTES", 3)
    (tmp_path / "large").write_text("four")
    with pytest.raises(ConfigError, match="large: larger than 3 bytes"):
        parse_file("lscpu", tmp_path / "large")


def test_bytes_that_are_no_text_do_not_stop_it(tmp_path: Path) -> None:
    (tmp_path / "raw").write_bytes(b"NV Power Mode: MAXN\xff\n0\n")
    shown = parse_file("nvpmodel-query", tmp_path / "raw")
    assert isinstance(shown, dict)
    assert shown["mode"]["id"] == 0


@settings(deadline=None, max_examples=50)
@given(st.sampled_from(sorted(PARSERS)), st.text(max_size=200))
def test_every_kind_makes_json_of_anything(kind: str, text: str) -> None:
    json.dumps(PARSERS[kind](text), allow_nan=False)
