"""Globs and the files of a payload's folder; nothing outside it is ever read."""

import hashlib
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.config.payload_files import find_files, matches, pattern_fault


@pytest.mark.parametrize(
    ("pattern", "path", "is_match"),
    [
        ("**", "a/b/c.py", True),
        ("**", "c.py", True),
        ("*", "c.py", True),
        ("*", "a/c.py", False),
        ("*.py", "c.py", True),
        ("*.py", "cxpy", False),
        ("**/*.py", "c.py", True),
        ("**/*.py", "a/b/c.py", True),
        ("a/**", "a/b/c", True),
        ("a/**", "ab/c", False),
        ("a/**/c", "a/c", True),
        ("a/**/c", "a/b/b/c", True),
        ("a/*/c", "a/b/b/c", False),
        ("d?ta.[bin]", "data.[bin]", True),
        ("d?ta", "d/ta", False),
    ],
)
def test_globs(pattern: str, path: str, *, is_match: bool) -> None:
    assert matches(path, pattern) is is_match


@given(st.lists(st.text(alphabet="ab.*?[]\n+$", min_size=1, max_size=4), min_size=1, max_size=4))
def test_a_path_without_wildcards_matches_itself_only(names: list[str]) -> None:
    path = "/".join(names).translate({ord("*"): "x", ord("?"): "y"})
    assert matches(path, path)
    assert matches(path, "**")
    assert not matches(path + "z", path)


@pytest.mark.parametrize(
    "pattern", ["", "/etc/passwd", "~/x", "../x", "a/../b", "./a", "a//b", "a\\b"]
)
def test_patterns_that_leave_the_folder(pattern: str) -> None:
    assert pattern_fault(pattern) is not None


def test_patterns_within_the_folder() -> None:
    assert [pattern_fault(text) for text in ("**", "a/*.py", "..a", "a..b/c")] == [None] * 4


def test_files_with_hash_size_and_mode(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "run.sh").write_text("#!/bin/sh\n")
    (tmp_path / "sub" / "run.sh").chmod(0o755)
    (tmp_path / "b.txt").write_text("b")
    (tmp_path / "payload.yaml").write_text("name: x\n")
    files, faults = find_files(tmp_path, ["sub/*"], "payload.yaml")
    assert faults == []
    assert [(file.path, file.size, file.is_executable) for file in files] == [
        ("payload.yaml", 8, False),
        ("sub/run.sh", 10, True),
    ]
    assert files[1].sha256 == hashlib.sha256(b"#!/bin/sh\n").hexdigest()


def test_left_overs_are_skipped(tmp_path: Path) -> None:
    for path in ("a.py", "a.pyc", "__pycache__/a.cpython-311.pyc", "x/.git/config", "x/b.py"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("")
    files, _ = find_files(tmp_path, ["**"], "payload.yaml")
    assert [file.path for file in files] == ["a.py", "x/b.py"]


def test_links(tmp_path: Path) -> None:
    folder = tmp_path / "payload"
    (folder / "data").mkdir(parents=True)
    (tmp_path / "secret").write_text("hunter2")
    (folder / "data" / "a").write_text("a")
    (folder / "inside").symlink_to("data/a")
    (folder / "outside").symlink_to("../secret")
    (folder / "absolute").symlink_to("/etc/passwd")
    (folder / "loop").symlink_to("loop")
    (folder / "nowhere").symlink_to("none")
    (folder / "folder").symlink_to("data")
    files, faults = find_files(folder, ["**"], "payload.yaml")
    assert [file.path for file in files] == ["data/a", "inside"]
    assert files[1].sha256 == hashlib.sha256(b"a").hexdigest()
    assert sorted(faults) == [
        "absolute: a link that leads out of the payload's folder",
        "folder: a link to a folder; put the files themselves there",
        "loop: a link that leads nowhere",
        "nowhere: a link that leads nowhere",
        "outside: a link that leads out of the payload's folder",
    ]


def test_pipes_are_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    files, faults = find_files(tmp_path, ["**"], "payload.yaml")
    assert (files, faults) == ([], ["pipe: not a plain file"])


@pytest.mark.parametrize("name", [b"a\nb", b"a\x1b[31m", b"a\\b", b"\xff"])
def test_names_that_boards_may_not_take(tmp_path: Path, name: bytes) -> None:
    (Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name))).write_text("")
    files, faults = find_files(tmp_path, ["**"], "payload.yaml")
    assert files == []
    assert faults[0].endswith("a name with characters that boards may not take")
    assert faults[0].isprintable()
