"""Lines of tegrastats, R27 to R39: the recordings, forms on their own, and what is no field."""

import string
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farm.drivers.telemetry.tegrastats import channels_of
from farm.drivers.telemetry.tegrastats_line import Core, Engine, Rail, Temperature, parse_line
from tests.recording_cases import cases, meant, printed

FIELDS = [
    *["RAM 1/2MB (lfb 1x4MB)", "SWAP 5/1982MB (cached 1MB)", "IRAM 0/252kB(lfb 252kB)", "RAM 1/2"],
    *["CPU [1%@345,off]", "cpu [17%]@408", "CPU [", "EMC_FREQ 0%", "EMC 1%@408", "VIC off"],
    *["GR3D_FREQ @[0,0,0]", "GR3D_FREQ 0%@[510]", "GR3D_FREQ", "@", "APE 150", "MTS fg 0% bg 0%"],
    *[
        "CPU@42C",
        "gpu@-256C",
        "tj@50.1C/51C",
        "PMIC@100C",
        "VDD_IN 1/2",
        "VIN 1mW/2mW/3mW",
        "NC 0/0",
    ],
    *["10-16-2023 10:59:22", "99-99-2023 10:59:22", "NPU 12%@800", "NEW 1.5GB/s", "9" * 5000],
]


@pytest.mark.parametrize("path", cases("tegrastats"))
def test_recording(path: Path) -> None:
    expected = meant(path)
    lines = printed(path).splitlines()
    assert len(lines) == expected["samples"]
    samples = [parse_line(line) for line in lines]
    assert samples[0].at == expected["at"]
    assert channels_of(samples[0]) == expected["first"]
    assert list(samples[0].dropped) == expected["dropped"]
    assert channels_of(samples[-1]) == expected.get("last", expected["first"])
    assert all(sample.is_sample and not sample.unknown for sample in samples)


def test_every_release_and_board_has_a_recording() -> None:
    boards = {one.values[0].parts[-3] for one in cases("tegrastats")}
    assert boards == {
        *["jetson-tx1", "jetson-tx2", "jetson-tx2-nx", "jetson-nano", "jetson-xavier-nx"],
        *["jetson-agx-xavier", "jetson-orin-nano", "jetson-orin-nx", "jetson-agx-orin"],
        "jetson-agx-thor",
    }
    releases = {
        one.values[0].stem.partition("_")[0].partition(".")[0] for one in cases("tegrastats")
    }
    assert releases == {"r27", "r28", "r31", "r32", "r35", "r36", "r38", "r39"}


@pytest.mark.parametrize("path", cases("tegrastats"))
def test_order_blanks_and_missing_fields_do_not_spoil_the_others(path: Path) -> None:
    line = printed(path).splitlines()[0]
    whole = parse_line(line)
    assert parse_line(f"  {line.replace(' ', '   ')} \r\n") == whole
    # The temperatures and rails alone, without all that comes before them.
    first = next(iter(whole.temperatures), None)
    if first is not None:
        rest = parse_line(line[line.index(f" {first}@") :])
        assert (rest.temperatures, rest.rails) == (whole.temperatures, whole.rails)
        assert not rest.memory


@pytest.mark.parametrize(
    ("text", "engine"),
    [
        ("GR3D_FREQ 0%@76", Engine(0, (76,))),
        ("GR3D 3%@76", Engine(3, (76,))),
        ("GR3D_FREQ 0%", Engine(0)),
        ("GR3D_FREQ 0%@[510]", Engine(0, (510,))),
        ("GR3D_FREQ 12%@[1300,1300]", Engine(12, (1300, 1300))),
        ("GR3D_FREQ @[0,0,0]", Engine(None, (0, 0, 0))),
        ("GR3D_FREQ 99%@[1575,1574,0]", Engine(99, (1575, 1574, 0))),
        ("GR3D_FREQ @510", Engine(None, (510,))),
        ("GR3D_FREQ off", Engine(is_off=True)),
    ],
)
def test_forms_of_the_gpu(text: str, engine: Engine) -> None:
    sample = parse_line(f"RAM 1/2MB {text} APE 150")
    assert sample.engines == {"GR3D": engine, "APE": Engine(None, (150,))}
    assert not sample.unknown


@pytest.mark.parametrize(
    ("text", "name", "engine"),
    [
        ("EMC_FREQ @4266", "EMC", Engine(None, (4266,))),
        ("VIC_FREQ 729", "VIC", Engine(None, (729,))),
        ("VIC 31%@115", "VIC", Engine(31, (115,))),
        ("VIC off", "VIC", Engine(is_off=True)),
        ("NVENC0_FREQ @314", "NVENC0", Engine(None, (314,))),
        ("NVJPG1 729", "NVJPG1", Engine(None, (729,))),
        ("PVA0_FREQ off", "PVA0", Engine(is_off=True)),
        ("NVDLA0_FREQ @1600", "NVDLA0", Engine(None, (1600,))),
        ("NPU9 12%@800", "NPU9", Engine(12, (800,))),  # an engine that is not there yet
    ],
)
def test_forms_of_other_engines(text: str, name: str, engine: Engine) -> None:
    assert parse_line(f"RAM 1/2MB {text}").engines == {name: engine}


def test_memory_units_and_blocks() -> None:
    line = "RAM 1/2GB (lfb 3x2MB) IRAM 0/252kB(lfb 252kB) SWAP 5/1982MB (cached 1MB) CPU [1%@2]"
    memory = parse_line(line).memory
    assert (memory["RAM"].used_mb, memory["RAM"].total_mb) == (1024, 2048)
    assert (memory["RAM"].blocks, memory["RAM"].block_mb) == (3, 2)
    assert memory["IRAM"].total_mb == 252 / 1024
    assert memory["SWAP"].cached_mb == 1


def test_cores() -> None:
    cores = parse_line("CPU [1%@345,off,7%,what]").cores
    assert cores == (Core(True, 1, 345), Core(False), Core(True, 7), Core(True))
    assert parse_line("cpu [17%,off]@408").cores == (Core(True, 17, 408), Core(False))


def test_means_and_maxima_count_from_the_tools_start() -> None:
    sample = parse_line("VIN 87426mW/43713mW/87426mW VDD_IN 3642/3633 cpu@34.3C/34.8C")
    assert sample.rails == {"VIN": Rail(87426, 43713, 87426), "VDD_IN": Rail(3642, 3633)}
    assert sample.temperatures == {"cpu": Temperature(34.3, 34.8)}


def test_rails_and_temperatures_of_one_name_are_two_things() -> None:
    channels = channels_of(parse_line("RAM 1/2MB GPU@32C CPU@33.5C GPU 0/0 CPU 216/200"))
    assert channels["temperature_c:GPU"] == 32
    assert channels["rail_mw:GPU"] == 0
    assert channels["rail_mw:CPU"] == 216


def test_what_is_no_reading_is_dropped_and_told() -> None:
    sample = parse_line("CV0@-256C PMIC@50C PMIC@100C NC 0mW/0mW gpu@-256C/48C CPU@40C")
    assert sample.dropped == ("CV0", "PMIC", "PMIC", "NC", "gpu")
    assert list(sample.temperatures) == ["CPU"]
    assert parse_line("PMIC@41.5C").temperatures == {"PMIC": Temperature(41.5)}


@pytest.mark.parametrize(
    ("text", "unknown"),
    [
        ("DRAM_BW 12.5GB/s", {"DRAM_BW": "12.5GB/s"}),
        ("FAN [55%,1200rpm]", {"FAN": "[55%,1200rpm]"}),
        ("STATE throttled", {"STATE": "", "throttled": ""}),
        ("npu@hot", {"npu": "hot"}),
        ("HBM 3/8TB", {"HBM": "3/8TB"}),
        ("NPU 800", {"NPU": "800"}),  # MHz or anything else: not for us to guess
        ("CPU [1%@345", {"CPU": "[1%@345"}),
        ("VDD_IN 5W/5W", {"VDD_IN": "5W/5W"}),
        ("@", {"@": ""}),
    ],
)
def test_unknown_fields_are_kept_by_name_and_spoil_nothing(
    text: str, unknown: dict[str, str]
) -> None:
    sample = parse_line(f"RAM 10/20MB {text} GPU@40C VDD_SOC 5/6")
    assert sample.unknown == unknown
    assert sample.memory["RAM"].used_mb == 10
    assert sample.temperatures == {"GPU": Temperature(40)}
    assert sample.rails == {"VDD_SOC": Rail(5, 6)}
    assert not sample.cores


def test_the_second_of_two_fields_of_one_name_is_kept_as_text() -> None:
    sample = parse_line("VDD_IN 5/6 VDD_IN 7/8 CPU@1C CPU@2C")
    assert sample.rails == {"VDD_IN": Rail(5, 6)}
    assert sample.temperatures == {"CPU": Temperature(1)}
    assert sample.unknown == {"VDD_IN": "VDD_IN 7/8", "CPU": "CPU@2C"}


@pytest.mark.parametrize(
    "text", ["", "sudo: a password is required", "tegrastats: command not found", "10-16-2023"]
)
def test_another_programs_line_is_no_sample(text: str) -> None:
    assert not parse_line(text).is_sample


@settings(deadline=None)
@given(
    st.text(max_size=400)
    | st.lists(st.sampled_from(FIELDS) | st.text(string.printable, max_size=9), max_size=12).map(
        " ".join
    )
)
def test_nothing_raises_for_its_content(text: str) -> None:
    sample = parse_line(text)
    for name, value in channels_of(sample).items():
        assert abs(value) < 1e9 * 1024, name


@settings(deadline=None)
@given(st.lists(st.sampled_from(FIELDS[:3] + FIELDS[4:6]), unique=True), st.randoms())
def test_the_order_of_fields_means_nothing(fields: list[str], random: Random) -> None:
    first = parse_line(" ".join(fields))
    random.shuffle(fields)
    if sum(field.lower().startswith("cpu") for field in fields) < 2:
        assert parse_line(" ".join(fields)) == first
