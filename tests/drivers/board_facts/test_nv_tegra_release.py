"""The release of Jetson Linux, from the file and from the package."""

from dataclasses import asdict
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farm.drivers.board_facts.nv_tegra_release import parse_l4t_release, parse_nv_tegra_release
from tests.recording_cases import cases, meant, printed

WORDS = [
    *["# R36 (release)", ", REVISION: 4.4", ", GCID: 1", ", DATE: x", "\n", "A=b", "9" * 5000],
    *["nvidia-l4t-core", "36.4.4-20250616085344", "36.4-1", "# A_B: c", "REVISION:", "#" * 99],
]


@pytest.mark.parametrize("path", cases("nv_tegra_release"))
def test_recording(path: Path) -> None:
    for text in (printed(path), printed(path).replace("\n", "\r\n"), printed(path).rstrip("\n")):
        release = parse_l4t_release(text)
        seen = None if release is None else {"name": release.name, **asdict(release)}
        assert seen == meant(path)


@pytest.mark.parametrize(
    "text", ["", "L4T 36.4", "# R36 (release)", "cat: /etc/nv_tegra_release: No such file"]
)
def test_something_else_is_none(text: str) -> None:
    assert parse_l4t_release(text) is None


def test_warnings_before_the_first_line_do_no_harm() -> None:
    text = "Warning: added to known hosts\n# R35 (release), REVISION: 4.1, BOARD: t186ref\n"
    release = parse_nv_tegra_release(text)
    assert release is not None
    assert (release.name, release.board, release.gcid) == ("R35.4.1", "t186ref", "")


@settings(deadline=None)
@given(st.text(max_size=300) | st.lists(st.sampled_from(WORDS), max_size=10).map("".join))
def test_nothing_raises_for_its_content(text: str) -> None:
    release = parse_l4t_release(text)
    assert release is None or release.name.startswith("R")
