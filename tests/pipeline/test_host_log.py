"""The host's log: a JSON object a line, with where it belongs; bounded, also by a full disk."""

import asyncio
import errno
import io
import json
import logging
from datetime import UTC, datetime
from pathlib import Path

import pytest

from farm.execution.log_context import BOARD
from farm.interfaces.sinks import RunEvent
from farm.pipeline import host_log as module
from farm.pipeline.host_log import HOST_LOG, host_log, log_line_text
from farm.pipeline.silent_view import SilentView

NOW = datetime(2026, 11, 30, 22, 15, 3, tzinfo=UTC)
log = logging.getLogger("farm.test")


def lines(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / HOST_LOG).read_text().splitlines()]


async def test_each_line_tells_run_board_trial_and_attempt(tmp_path: Path) -> None:
    async def helper(board: str) -> None:
        await asyncio.to_thread(log.warning, "from a thread of %s", board)

    async def lane(board: str) -> None:
        BOARD.set(board)
        view.event(RunEvent(NOW, "trial_start", board, f"{board}-r1", f"{board}-r1-a1"))
        await asyncio.create_task(helper(board))
        view.event(RunEvent(NOW, "trial_end", board, f"{board}-r1", data={"state": "done"}))
        log.warning("between trials")

    with host_log(tmp_path, "run-1", SilentView()) as view:
        await asyncio.gather(lane("a"), lane("b"))
        log.warning("of no board")
        view.event(RunEvent(NOW, "temperature", "a"))
    found = lines(tmp_path)
    assert {line["run"] for line in found} == {"run-1"}
    for board in ("a", "b"):
        mine = [line for line in found if line.get("board") == board]
        assert [line.get("event") for line in mine] == ["trial_start", None, "trial_end", None]
        assert mine[1]["text"] == f"from a thread of {board}"
        assert {line["attempt"] for line in mine[:3]} == {f"{board}-r1-a1"}
        assert {line["trial"] for line in mine[:3]} == {f"{board}-r1"}
        assert "trial" not in mine[3]
    assert "board" not in found[-1]
    assert len(found) == 9


def test_hostile_text_is_one_bounded_line(tmp_path: Path) -> None:
    with host_log(tmp_path, "r", SilentView()) as view:
        view.event(RunEvent(NOW, "retry", "a", text="\x1b[2J\n\u202e" + "x" * 100_000))
    (raw,) = (tmp_path / HOST_LOG).read_text().splitlines()
    assert raw.isascii()
    assert len(raw) < 5000
    assert json.loads(raw)["level"] == "warning"


def test_it_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 2000)
    with host_log(tmp_path, "r", SilentView()):
        for number in range(200):
            log.warning("line %d", number)
    files = list(tmp_path.iterdir())
    assert len(files) == 1 + module.OLDER_FILES
    assert all(file.stat().st_size <= 2000 for file in files)
    assert lines(tmp_path)[-1]["text"] == "line 199"


class FullDisk(io.StringIO):
    def write(self, text: str) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_loses_lines_and_says_how_many(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with host_log(tmp_path, "r", SilentView()):
        handler = next(one for one in logging.getLogger().handlers if is_ours(one))
        assert isinstance(handler, logging.StreamHandler)
        disk, handler.stream = handler.stream, FullDisk()
        log.warning("lost")
        log.warning("lost too")
        handler.stream = disk
        log.warning("kept")
    assert lines(tmp_path)[-1]["lines_lost_before"] == 2
    assert capsys.readouterr().err == ""


def is_ours(handler: logging.Handler) -> bool:
    return type(handler).__module__ == module.__name__


def test_a_failure_is_logged_with_its_trace(tmp_path: Path) -> None:
    with host_log(tmp_path, "r", SilentView()):
        try:
            raise ZeroDivisionError("by zero")
        except ZeroDivisionError:
            log.exception("it broke")
    assert "ZeroDivisionError: by zero" in str(lines(tmp_path)[0]["text"])
    assert not any(map(is_ours, logging.getLogger().handlers))


def test_lines_for_people() -> None:
    event = {"time": NOW.isoformat(), "event": "trial_end", "board": "a", "attempt": "t-a1",
             "data": {"state": "failed"}, "text": "exit status 3"}  # fmt: skip
    assert log_line_text(json.dumps(event)) == (
        "2026-11-30 22:15:03 trial_end: a t-a1 - failed - exit status 3"
    )
    assert log_line_text("no json\n") == "no json"
    assert log_line_text("[1]") == "[1]"
