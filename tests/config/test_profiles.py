"""Device profiles of a folder."""

from pathlib import Path

import pytest

from farm.config.profiles import Profiles, load_profile, load_profiles
from farm.errors import ConfigError

GOOD = """\
name: tx9
summary: a board
cores: 4
default_power_mode: MAXN
power_modes:
  - {name: MAXN, id: 0}
  - {name: 15W, id: 1}
peaks:
  - {precision: FP16, power_mode: 15W, tops: 1.5, source: a table}
simulation:
  idle_w: {MAXN: 5, "": 3}
"""

MORE = (
    GOOD
    + """\
reboot_modes: [15W]
gpu: {cores: 512, tpcs: 4, mask_bits: 8, source: a table}
rails:
  chips: [{name: ina, rails: [VDD_IN, VDD_CPU]}]
  totals: [{rails: [VDD_IN], source: a table}]
  aliases: {CPU: VDD_CPU}
  source: a capture
"""
)


def test_a_profile(tmp_path: Path) -> None:
    (tmp_path / "tx9.yaml").write_text(GOOD)
    profile = load_profile(tmp_path / "tx9.yaml")
    assert [mode.name for mode in profile.power_modes] == ["MAXN", "15W"]
    assert profile.simulation is not None
    assert profile.simulation.idle_w == {"MAXN": 5.0, "": 3.0}


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("name: tx9", "name: tx8", '1:7: "name" should be that of the file, "tx9", not "tx8"'),
        (
            "default_power_mode: MAXN",
            "default_power_mode: MAX",
            '4:21: unknown power mode "MAX"; did you mean "MAXN"? known: MAXN, 15W',
        ),
        ("name: 15W, id: 1", "name: 15W, id: 0", '7:21: the power mode id "0" is given twice'),
        ("name: 15W, id", "name: MAXN, id", '7:12: the power mode name "MAXN" is given twice'),
        (
            "power_mode: 15W",
            "power_mode: 5W",
            '9:35: unknown power mode "5W"; did you mean "15W"?',
        ),
        ('"": 3', "MAXQ: 3", '11:21: unknown power mode "MAXQ"; did you mean "MAXN"?'),
        ("source: a table", "sauce: a table", '9:5: "source" is missing here'),
    ],
)
def test_faults(tmp_path: Path, old: str, new: str, error: str) -> None:
    path = tmp_path / "tx9.yaml"
    path.write_text(GOOD.replace(old, new))
    with pytest.raises(ConfigError) as caught:
        load_profile(path)
    assert str(caught.value).startswith(f"{path}:{error}")


def test_a_profile_with_gpu_and_rails(tmp_path: Path) -> None:
    (tmp_path / "tx9.yaml").write_text(MORE.replace("id: 1", "id: 1, tpc_mask: 252"))
    profile = load_profile(tmp_path / "tx9.yaml")
    assert profile.tpcs(profile.power_modes[1]) == 2
    assert profile.needs_reboot("MAXN", "15W")
    assert profile.rails is not None
    assert profile.rails.totals[0].rails == ("VDD_IN",)


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("id: 0", "id: 0, online_cores: 5", "6:39: the board has 4 cores"),
        ("id: 0", "id: 0, tpc_mask: 256", "6:35: the mask has more than the GPU's 8 bits"),
        ("id: 0", "id: 0, tpc_mask: 7", "6:35: the mask leaves more TPCs on than the GPU's 4"),
        ("reboot_modes: [15W]", "reboot_modes: [5W]", '12:16: unknown power mode "5W"'),
        (
            "simulation:",
            "  - {precision: FP16, power_mode: 15W, tops: 2, source: b}\nsimulation:",
            "10:17: a peak of FP16 for this power mode stands above already",
        ),
        ("{rails: [VDD_IN]", "{rails: [VDD_OUT]", '16:21: unknown rail "VDD_OUT"'),
        ("CPU: VDD_CPU}", "CPU: VDD_C}", '17:18: unknown rail "VDD_C"; did you mean "VDD_CPU"?'),
    ],
)
def test_faults_of_gpu_and_rails(tmp_path: Path, old: str, new: str, error: str) -> None:
    path = tmp_path / "tx9.yaml"
    path.write_text(MORE.replace(old, new))
    with pytest.raises(ConfigError) as caught:
        load_profile(path)
    assert str(caught.value).startswith(f"{path}:{error}")


def test_later_folders_override(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
        (folder / "tx9.yaml").write_text(GOOD.replace("a board", folder.name))
    (first / "tx8.yaml").write_text(GOOD.replace("tx9", "tx8"))
    (first / ".tx7.yaml").write_text("broken")
    profiles = load_profiles([first, second, tmp_path / "missing"])
    assert list(profiles) == ["tx8", "tx9"]
    assert profiles["tx9"].summary == "second"


def test_built_in_profiles_are_read_when_they_are_asked_for(tmp_path: Path) -> None:
    shipped, own = tmp_path / "shipped", tmp_path / "own"
    for folder in (shipped, own):
        folder.mkdir()
        (folder / "tx9.yaml").write_text(GOOD.replace("a board", folder.name))
    (shipped / "tx8.yaml").write_text("broken: [")
    profiles = Profiles(shipped, [own, tmp_path / "missing"])
    assert (list(profiles), len(profiles)) == (["tx8", "tx9"], 2)
    assert "tx8" in profiles
    assert "tx7" not in profiles
    assert profiles["tx9"].summary == "own"
    with pytest.raises(KeyError):
        profiles["tx7"]
    with pytest.raises(ConfigError, match=r"tx8\.yaml"):
        profiles["tx8"]
    (own / "tx6.yaml").write_text("broken: [")
    with pytest.raises(ConfigError, match=r"tx6\.yaml"):
        Profiles(shipped, [own])
