"""`farm parse`: from a file, from stdin, and what is refused."""

import io
import json
import sys
from pathlib import Path

import pytest

from farm.cli.main import main


def farm(monkeypatch: pytest.MonkeyPatch, *arguments: str, stdin: bytes = b"") -> int:
    """Run the command as a terminal would; its exit code."""
    monkeypatch.setattr(sys, "argv", ["farm", *arguments])
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code if isinstance(ended.value.code, int) else 0


def test_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "query.txt"
    file.write_text("NVPM WARN: fan mode is not set!\nNV Power Mode: MODE_30W\n2\n")
    assert farm(monkeypatch, "parse", "nvpmodel-query", str(file)) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["mode"] == {"name": "MODE_30W", "id": 2, "fan_mode": None}


def test_stdin(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    line = b"# R36 (release), REVISION: 4.4, GCID: 1, BOARD: generic\n"
    assert farm(monkeypatch, "parse", "l4t-release", stdin=line) == 0
    assert json.loads(capsys.readouterr().out)["name"] == "R36.4.4"


def test_what_says_nothing_is_null(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert farm(monkeypatch, "parse", "l4t-release", stdin=b"no release\n") == 0
    assert json.loads(capsys.readouterr().out) is None


def test_an_unknown_kind_lists_the_known(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert farm(monkeypatch, "parse", "nvpmodel") == 2
    said = capsys.readouterr().err
    for kind in ("tegrastats", "nvpmodel-query", "nvpmodel-conf", "nvpmodel-output"):
        assert kind in said


def test_a_file_that_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert farm(monkeypatch, "parse", "jetson-clocks", str(tmp_path / "absent")) == 2
    assert "cannot be read" in capsys.readouterr().err
