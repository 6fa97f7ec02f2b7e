"""A board is added to a file that keeps all else as it was."""

from pathlib import Path

import pytest
from pydantic import JsonValue

from farm.config.inventory import load_inventory
from farm.config.inventory_entry import add_board
from farm.config.profiles import load_profiles
from farm.errors import ConfigError

PROFILES = load_profiles((Path(__file__).parents[2] / "device_profiles",))
FIELDS: dict[str, JsonValue] = {
    "profile": "generic-linux",
    "host": "10.0.0.9",
    "user": "u",
    "tags": ["1e3", "x"],
}
ENTRY = """\
bench:
  profile: generic-linux
  host: 10.0.0.9
  user: u
  tags:
"""


def add(folder: Path, text: str) -> str:
    path = folder / "inventory.yaml"
    path.write_text(text)
    path.chmod(0o640)
    board = add_board(path, "bench", FIELDS, PROFILES)
    assert load_inventory(path, PROFILES).board("bench") == board
    assert board.tags == ("1e3", "x")
    assert path.stat().st_mode & 0o777 == 0o640
    assert [one.name for one in folder.iterdir()] == ["inventory.yaml"]
    return path.read_text()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("boards:\n  a: {profile: generic-linux, host: h, user: u} # me\n", "\n# end\n"),
        ("# top\nboards:\n    a:\n        profile: generic-linux\n        host: h\n"
         "        user: u  # me\n", "\n    # still here\nlimits: {connecting: 3}"),
        ("boards:\n  a:\n    profile: generic-linux\n    host: h\n    user: u\n    tags:\n"
         "    - x\n", "# next\n"),
        ("boards:\n", "# none yet\nlimits: {connecting: 3}\n"),
    ],
)  # fmt: skip
def test_it_comes_behind_the_last_board(tmp_path: Path, before: str, after: str) -> None:
    text = add(tmp_path, before + after)
    assert text.startswith(before)
    assert text.endswith(after)
    added = text[len(before) : len(text) - len(after)]
    indent = added[: len(added) - len(added.lstrip())]
    lines = [line.removeprefix(indent) for line in added.splitlines(keepends=True)]
    assert "".join(lines).startswith(ENTRY)


def test_an_empty_mapping_and_a_file_without_line_end(tmp_path: Path) -> None:
    assert add(tmp_path, "boards: {}  # none").startswith("boards:")
    assert "# none" in (tmp_path / "inventory.yaml").read_text()


def test_what_cannot_be_added_leaves_the_file_alone(tmp_path: Path) -> None:
    path = tmp_path / "inventory.yaml"
    for text, says in (
        ("boards: {a: {profile: generic-linux, host: h, user: u}}\n", "in braces"),
        ("boards:\n  bench: {profile: generic-linux, host: h, user: u}\n", "already"),
        ("boards:\n  a: {profile: generic-linux, host: 10.0.0.9, user: u, bad: 1}\n", "bad"),
    ):
        path.write_text(text)
        with pytest.raises(ConfigError, match=says):
            add_board(path, "bench", FIELDS, PROFILES)
        assert path.read_text() == text
    path.write_text("boards:\n")
    with pytest.raises(ConfigError, match=r"/inventory.yaml:.*no-such"):
        add_board(path, "bench", FIELDS | {"profile": "no-such"}, PROFILES)
    assert path.read_text() == "boards:\n"
    assert [one.name for one in tmp_path.iterdir()] == ["inventory.yaml"]
