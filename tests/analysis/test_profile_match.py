"""Which profile a board has, and how the board's own table differs from it.

device_trees.csv and board_tables.csv hold what was seen on boards and in public confs; the
profiles are those that come along.
"""

import csv
from pathlib import Path

import pytest

from farm.analysis.profile_match import differences, identify
from farm.config.builtin import builtin_folder
from farm.config.profiles import load_profiles
from farm.model.power_mode import PowerMode, PowerModeTable
from farm.model.profile import BoardProfile

HERE = Path(__file__).parent


def rows(name: str) -> list[dict[str, str]]:
    with (HERE / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def table_of(board: str) -> PowerModeTable:
    seen = [row for row in rows("board_tables.csv") if row["board"] == board]
    modes = tuple(
        PowerMode(
            name=row["name"],
            id=int(row["id"]),
            online_cores=int(row["online_cores"]),
            cpu_mhz=float(row["cpu_mhz"]) if row["cpu_mhz"] else None,
            gpu_mhz=float(row["gpu_mhz"]) if row["gpu_mhz"] else None,
            emc_mhz=float(row["emc_mhz"]) if row["emc_mhz"] else None,
            tpc_mask=int(row["tpc_mask"]) if row["tpc_mask"] else None,
        )
        for row in seen
    )
    default = next(row["name"] for row in seen if row["is_default"])
    return PowerModeTable(modes=modes, default=default)


@pytest.fixture(scope="module")
def profiles() -> dict[str, BoardProfile]:
    return load_profiles([builtin_folder("device_profiles")])


@pytest.mark.parametrize("row", rows("device_trees.csv"), ids=lambda row: row["board"])
def test_boards_that_were_seen(row: dict[str, str], profiles: dict[str, BoardProfile]) -> None:
    found = identify(row["compatible"].split(), row["model"], profiles.values())
    if not row["profile"]:
        assert found == []
        return
    best = found[0]
    assert best.profile.name == row["profile"]
    assert best.basis == ("part number" if row["compatible"] else "model")


@pytest.mark.parametrize(
    ("part", "profile"),
    [
        ("p2180-1000", "jetson-tx1"),
        ("p3448-0002-b00", "jetson-nano"),
        ("p3636-0001", "jetson-tx2-nx"),
        ("p2888-0001", "jetson-agx-xavier"),
        ("p3668-0001", "jetson-xavier-nx"),
        ("p3701-0004", "jetson-agx-orin-32gb"),
        ("p3701-0005", "jetson-agx-orin-64gb"),
        ("p3767-0000", "jetson-orin-nx-16gb"),
        ("p3767-0000-super", "jetson-orin-nx-super"),
        ("p3767-0001", "jetson-orin-nx-8gb"),
        ("p3767-0003", "jetson-orin-nano-8gb"),
        ("p3767-0003-super", "jetson-orin-nano-super"),
        ("p3767-0004", "jetson-orin-nano-4gb"),
        ("p3767-0005", "jetson-orin-nano-8gb"),
        ("p3834-0000", "jetson-thor-t4000"),
    ],
)
def test_part_numbers(part: str, profile: str, profiles: dict[str, BoardProfile]) -> None:
    found = identify([f"nvidia,p0000-0000+{part}"], "words of a later release", profiles.values())
    assert found[0].profile.name == profile
    assert found[0].why.startswith("part number p")


def test_the_part_number_counts_more_than_the_model(profiles: dict[str, BoardProfile]) -> None:
    model = "NVIDIA Jetson Orin NX Engineering Reference Developer Kit"
    found = identify(["nvidia,p3768-0000+p3767-0001"], model, profiles.values())
    assert [(match.profile.name, match.basis) for match in found] == [
        ("jetson-orin-nx-8gb", "part number"),
        ("jetson-orin-nx-16gb", "model"),
    ]
    assert found[1].why == f"model {model}"


def test_a_super_board_is_not_taken_for_one_without(profiles: dict[str, BoardProfile]) -> None:
    found = identify(["nvidia,p3768-0000+p3767-0005-super"], "", profiles.values())
    assert [match.profile.name for match in found] == [
        "jetson-orin-nano-super",
        "jetson-orin-nano-8gb",
    ]
    assert "super" in found[1].why.removesuffix("p3767-0005-super")
    found = identify(["nvidia,p3767-0001-super"], "", profiles.values())
    assert found[0].profile.name == "jetson-orin-nx-8gb"
    assert found[0].why.endswith("its super modes are not in this profile")


def test_a_number_within_a_longer_one_is_no_part_number(
    profiles: dict[str, BoardProfile],
) -> None:
    assert identify(["nvidia,p3767-00051", "nvidia,xp3767-0005"], "", profiles.values()) == []
    assert identify([], "", profiles.values()) == []


STOCK = [
    "jetson-agx-orin-32gb",
    "jetson-agx-orin-64gb",
    "jetson-nano",
    "jetson-orin-nano-4gb",
    "jetson-orin-nx-16gb",
    "jetson-tx2",
    "jetson-tx2-nx",
    "jetson-xavier-nx",
]


@pytest.mark.parametrize("name", STOCK)
def test_a_stock_conf_is_as_expected(name: str, profiles: dict[str, BoardProfile]) -> None:
    assert differences(profiles[name], table_of(name)) == []


def test_a_mode_that_an_older_release_lacks(profiles: dict[str, BoardProfile]) -> None:
    name = "jetson-orin-nano-super"
    assert differences(profiles[name], table_of(name)) == [
        "7W: the profile expects this mode, the board has none such"
    ]


def test_ids_shifted_by_one(profiles: dict[str, BoardProfile]) -> None:
    lines = differences(profiles["jetson-xavier-nx"], table_of("xavier-nx-shifted"))
    assert lines[0] == "MODE_15W_2CORE: id 1 on the board, 0 in the profile"
    assert lines[-1] == "MAXN: the board has this mode (id 0), the profile does not know it"
    assert len(lines) == 10


def test_custom_modes(profiles: dict[str, BoardProfile]) -> None:
    assert differences(profiles["jetson-nano"], table_of("nano-custom")) == [
        "BirdEdge: the board has this mode (id 2), the profile does not know it"
    ]
    lines = differences(profiles["jetson-orin-nx-16gb"], table_of("orin-nx-custom"))
    assert len([line for line in lines if line.endswith("the board has none such")]) == 4
    assert "default mode: MODE_28_1_W on the board, 15W in the profile" in lines


def test_cores_caps_masks_and_the_default() -> None:
    expected = PowerMode(
        name="A", id=0, online_cores=4, cpu_mhz=1200, gpu_mhz=612, emc_mhz=2133, tpc_mask=240
    )
    profile = BoardProfile(
        name="p", summary="", cores=8, power_modes=(expected,), default_power_mode="A"
    )
    seen = PowerMode(name="a", id=0, online_cores=6, cpu_mhz=1190.4, gpu_mhz=612.05, tpc_mask=252)
    assert differences(profile, PowerModeTable(modes=(seen,), default="a")) == [
        "A: cores on 6 on the board, 4 in the profile",
        "A: TPC mask 252 on the board, 240 in the profile",
        "A: CPU 1190.4 MHz on the board, 1200 in the profile",
        "A: EMC without a cap on the board, 2133 MHz in the profile",
    ]


def test_what_the_profile_does_not_know_is_told_once_a_mode(
    profiles: dict[str, BoardProfile],
) -> None:
    thor = profiles["jetson-thor-t5000"]
    told = [mode.model_copy(update={"emc_mhz": 4266.0}) for mode in thor.power_modes]
    lines = differences(thor, PowerModeTable(modes=tuple(told), default="120W"))
    assert lines[0] == "MAXN: the board caps EMC 4266 MHz; the profile has no figure"
    assert len(lines) == 4
