"""The host's log of a run: a JSON object a line, bounded, off the terminal.

Each line has ``time`` (UTC), ``level``, ``logger``, ``text``, and where known ``run``, ``board``,
``trial``, ``attempt``; a run's events are lines too, with ``event`` and ``data``.
"""

import contextlib
import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from logging.handlers import RotatingFileHandler
from pathlib import Path

from farm.execution.log_context import BOARD
from farm.interfaces.sinks import Progress, RunEvent

HOST_LOG = "farm.jsonl"
MOST_BYTES = 16 * 1024 * 1024
"""Of one file; with the older ones a run's log takes at most 64 MB."""
OLDER_FILES = 3
LONGEST_TEXT = 4000
UNLOGGED = ("temperature",)
EVENTS = "farm.events"

_log = logging.getLogger(EVENTS)


class _LogFile(RotatingFileHandler):
    """A full disk loses lines, counted, and harms nothing; the next line tells how many."""

    lost = 0

    def emit(self, record: logging.LogRecord) -> None:
        lost, self.lost = self.lost, 0
        if lost:
            record.lost = lost
        super().emit(record)
        if lost and self.lost:  # that one did not get through either
            self.lost += lost

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's name
        self.lost += 1


@dataclass(slots=True)
class LoggedView(Progress):
    """Stands before a view: writes each event to the log, and knows what each board is at."""

    view: Progress
    at: dict[str, tuple[str, str]] = field(default_factory=dict)

    def event(self, event: RunEvent) -> None:
        """Log it, show it."""
        if event.kind == "trial_start":
            self.at[event.board] = (event.trial_id, event.attempt_id)
        if event.kind not in UNLOGGED:
            _log.log(_level(event), "%s", event.text, extra={"farm_event": event})
        self.view.event(event)
        if event.kind == "trial_end":
            self.at.pop(event.board, None)

    def watts(self, board: str, power_w: float) -> None:
        """Not logged: the traces hold it."""
        self.view.watts(board, power_w)


class _Lines(logging.Formatter):
    def __init__(self, run_id: str, at: Mapping[str, tuple[str, str]]) -> None:
        super().__init__()
        self._run_id, self._at = run_id, at

    def format(self, record: logging.LogRecord) -> str:
        """One JSON object; what boards said is cut, and escaped to ASCII."""
        event = getattr(record, "farm_event", None)
        board = event.board if isinstance(event, RunEvent) else BOARD.get()
        trial, attempt = self._at.get(board, ("", ""))
        text = record.getMessage()
        if record.exc_info:
            text += "\n" + self.formatException(record.exc_info)
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "run": self._run_id,
            "board": board,
            "trial": trial,
            "attempt": attempt,
        }
        if isinstance(event, RunEvent):
            line |= {"event": event.kind, "data": dict(event.data)}
            line |= {"trial": event.trial_id or trial, "attempt": event.attempt_id or attempt}
        if lost := getattr(record, "lost", 0):
            line["lines_lost_before"] = lost
        text = text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 4] + " ..."
        shown = {name: value for name, value in line.items() if value != ""}
        return json.dumps({**shown, "text": text}, default=str)


@contextlib.contextmanager
def host_log(folder: Path, run_id: str, view: Progress) -> Iterator[LoggedView]:
    """Log to the run's folder meanwhile; a view that logs all events. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    logged = LoggedView(view)
    handler = _LogFile(
        folder / HOST_LOG, maxBytes=MOST_BYTES, backupCount=OLDER_FILES, encoding="utf-8"
    )
    handler.setFormatter(_Lines(run_id, logged.at))
    root, noisy = logging.getLogger(), logging.getLogger("asyncssh")
    before, before_events = noisy.level, _log.level
    root.addHandler(handler)
    noisy.setLevel(logging.WARNING)  # it tells of every channel at INFO
    _log.setLevel(logging.INFO)
    try:
        yield logged
    finally:
        noisy.setLevel(before)
        _log.setLevel(before_events)
        root.removeHandler(handler)
        handler.close()


def _level(event: RunEvent) -> int:
    return logging.WARNING if event.kind in _WARNINGS else logging.INFO


_WARNINGS = (
    "retry",
    "board_lost",
    "restore_failed",
    "quarantined",
    "recovery",
    "lab_fault",
    "outlet_left_off",
    "trial_moved",
    "notify_failed",
    "host_suspended",
    "clock_stepped",
    "store_waits",
)


def log_line_text(text: str) -> str:
    """A line of the log for people; what is no line of ours comes back as it is."""
    try:
        line = json.loads(text)
        when = datetime.fromisoformat(line["time"]).strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, KeyError, TypeError):
        return text.rstrip("\n")
    what = line.get("event") or f"{line.get('level')} {line.get('logger')}"
    where = " ".join(str(line[key]) for key in ("board", "attempt") if line.get(key))
    data = line.get("data")
    state = data.get("state", "") if isinstance(data, dict) else ""
    state = state if isinstance(state, str) else ""  # a power mode's state is a whole table
    rest = " - ".join(part for part in (state, str(line.get("text", ""))) if part)
    return f"{when} {what}: {where}{' - ' if where and rest else ''}{rest}"
