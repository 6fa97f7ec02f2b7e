"""Device profiles of a folder."""

from pathlib import Path

import pytest

from farm.config.profiles import load_profile, load_profiles
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
