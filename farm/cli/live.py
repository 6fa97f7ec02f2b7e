"""The live view of a run: a row a board, totals, ETA, last events; plain lines elsewhere."""

import contextlib
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import MappingProxyType

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from farm.cli.output import one_line
from farm.cli.plan_view import duration, span_text
from farm.interfaces.sinks import Progress, RunEvent, TrialProgress
from farm.model.attempt import TrialState
from farm.model.parameters import parameters_text
from farm.model.plan import Lane, Plan
from farm.planning.outlook import Outlook
from farm.planning.pace import Pace
from farm.planning.wall_clock import local_text

SHOWN_EVENTS = 6
LONGEST_NAME = 24
"""Names of boards up to so long have the events stand in columns."""
QUIET = ("trial_prepare", "trial_start", "original_state", "temperature")
FINAL = (TrialState.DONE, TrialState.FAILED, TrialState.UNSUPPORTED, TrialState.SKIPPED)


@dataclass(slots=True)
class BoardRow:
    """What is shown of one board."""

    total: int
    ended: int = 0
    bad: int = 0
    state: str = "waiting"
    asked: str = ""
    mode: str = ""
    trial: str = ""
    power_w: float | None = None
    temperature_c: float | None = None


def _row(lane: Lane, decided: Mapping[str, tuple[int, int]]) -> BoardRow:
    ended, bad = decided.get(lane.board, (0, 0))
    state = "waiting" if lane.trials else "finished"
    return BoardRow(len(lane.trials) + ended, ended, bad, state)


class RunView(Progress):
    """Keeps the rows; `LiveView` and `PlainView` show them."""

    def __init__(
        self,
        plan: Plan,
        known: Mapping[str, TrialProgress],
        now: Callable[[], float] = time.monotonic,
        pace: Pace | None = None,
        decided: Mapping[str, tuple[int, int]] = MappingProxyType({}),
    ) -> None:
        """`decided` counts trials by board that the plan leaves out, and how many failed."""
        self.plan = plan
        self.rows = {lane.board: _row(lane, decided) for lane in plan.lanes}
        self.trials = {trial.trial_id: trial for trial in plan.trials}
        self.events: deque[RunEvent] = deque(maxlen=SHOWN_EVENTS)
        self._name_width = min(LONGEST_NAME, max(map(len, self.rows), default=0))
        self._now = now
        self._starts: datetime | None = None
        for trial_id, progress in known.items():
            if progress.state in FINAL and trial_id in self.trials:
                self._count_row(trial_id, progress.state)
        ended = {name for name, one in known.items() if one.state in FINAL}
        self.outlook = Outlook(plan, pace or Pace(plan.sweep), ended, now)

    @property
    def total(self) -> int:
        """Trials of the plan."""
        return sum(row.total for row in self.rows.values())

    @property
    def ended(self) -> int:
        """Trials that are decided."""
        return sum(row.ended for row in self.rows.values())

    def eta_s(self) -> float:
        """Seconds to the end: boards run at once, so what the slowest of them still needs."""
        return self.outlook.left_s()[1]

    def event(self, event: RunEvent) -> None:
        """Take note of an event."""
        if event.kind in ("waiting", "begins"):
            self._wait(event)
        row = self.rows.get(event.board)
        if row is not None:
            self._update(row, event)
        if event.kind not in QUIET:
            self.events.append(event)

    def _update(self, row: BoardRow, event: RunEvent) -> None:
        trial = self.trials.get(event.trial_id)
        if trial is not None and event.kind in ("trial_prepare", "trial_start"):
            if row.asked != trial.cell.power_mode:
                row.asked = row.mode = trial.cell.power_mode
            row.trial = f"{trial.cell.payload} {parameters_text(trial.cell.parameters)}"
            row.state = "preparing" if event.kind == "trial_prepare" else "running"
        elif event.kind == "trial_end":
            state = TrialState(str(event.data.get("state", "pending")))
            row.state, row.trial = "ready", ""
            if state in FINAL:
                self._count(event.trial_id, state)
        elif event.kind == "temperature":
            celsius = event.data.get("celsius")
            row.temperature_c = celsius if isinstance(celsius, float) else None
        elif event.kind == "power_mode":
            row.mode = str(event.data.get("name", ""))
        elif event.kind in _STATES:
            row.state = _STATES[event.kind]
            row.trial = ""

    def head(self) -> str:
        """The line of totals."""
        total_w = sum(row.power_w or 0.0 for row in self.rows.values())
        bad = sum(row.bad for row in self.rows.values())
        parts = [one_line(self.plan.sweep.name), f"{self.ended}/{self.total} trials"]
        parts += [f"{bad} failed"] if bad else []
        return "   ".join([*parts, f"{total_w:.1f} W", *self._times()])

    def _times(self) -> list[str]:
        """What is left, and when that will be over; before the start, when that is."""
        now, (low_s, mid_s, high_s) = datetime.now(UTC), self.outlook.left_s()
        starts = self._starts
        if starts is not None and starts > now:
            begins = local_text(starts, near=now)
            return [f"begins {begins}, in {duration((starts - now).total_seconds())}"]
        if not mid_s:
            return [f"about {duration(mid_s)} left"]
        ends = [local_text(now + timedelta(seconds=one), near=now) for one in (low_s, high_s)]
        return [f"about {duration(mid_s)} left", f"ETA {span_text(*ends)}"]

    def _wait(self, event: RunEvent) -> None:
        """The run waits for its time, or has begun."""
        begin = event.data.get("begin")
        self._starts = datetime.fromisoformat(begin) if isinstance(begin, str) else None
        self.outlook.restart(self._now())

    def line(self, event: RunEvent) -> str:
        """An event on one line, without its time."""
        what = event.kind.replace("_", " ")
        if event.kind == "trial_end":
            verdict = event.data.get("verdict")
            what = str(event.data.get("state", "")) + (f" ({verdict})" if verdict else "")
        rest = " - ".join(part for part in (event.trial_id, event.text) if part)
        return one_line(f"{event.board:{self._name_width}} {what:16} {rest}")

    def _count(self, trial_id: str, state: TrialState) -> None:
        self._count_row(trial_id, state)
        self.outlook.ended(self.trials[trial_id])

    def _count_row(self, trial_id: str, state: TrialState) -> None:
        row = self.rows[self.trials[trial_id].board]
        row.ended += 1
        row.bad += state is TrialState.FAILED
        if row.ended == row.total:
            row.state, row.asked, row.mode, row.trial = "finished", "", "", ""

    def watts(self, board: str, power_w: float) -> None:
        """The newest socket power of a board."""
        if board in self.rows:
            self.rows[board].power_w = power_w


_STATES = {
    "board_ready": "ready",
    "board_lost": "lost",
    "quarantined": "quarantined",
    "board_back": "ready",
    "recovery": "recovering",
    "retry": "retrying",
    "reboot": "rebooting",
    "rebooted": "ready",
    "restored": "restored",
    "restore_failed": "not restored",
}


class LiveView(RunView):
    """A table that is drawn four times a second."""

    def __init__(
        self,
        plan: Plan,
        known: Mapping[str, TrialProgress],
        console: Console,
        now: Callable[[], float] = time.monotonic,
        pace: Pace | None = None,
        decided: Mapping[str, tuple[int, int]] = MappingProxyType({}),
    ) -> None:
        super().__init__(plan, known, now, pace, decided)
        self.console = console
        self.live = Live(
            get_renderable=self.render, console=console, refresh_per_second=4, transient=False
        )

    def render(self) -> RenderableType:
        """The whole view. Drawn by a thread of rich's: works on copies of what may grow."""
        table = Table(expand=True)
        for name, is_number, ratio in _COLUMNS:
            table.add_column(
                name,
                justify="right" if is_number else "left",
                ratio=ratio,
                no_wrap=True,
                overflow="ellipsis",
            )
        room = max(5, self.console.height - SHOWN_EVENTS - 8)
        shown, more = self._chosen(room)
        for board, row in shown:
            table.add_row(*_cells(board, row))
        if more:
            table.add_row(f"... {more} more")
        lines = [
            Text(
                f"{e.time:%H:%M:%S} {self.line(e)}",
                no_wrap=True,
                overflow="ellipsis",
                style="dim",
            )
            for e in tuple(self.events)
        ]
        return Group(Text(self.head(), style="bold"), table, *lines)

    def _chosen(self, room: int) -> tuple[list[tuple[str, BoardRow]], int]:
        """The rows that fit, those at work before those that wait or are through."""
        rows = list(self.rows.items())
        if len(rows) <= room:
            return rows, 0
        by_interest = sorted(rows, key=lambda one: one[1].state in _DULL)
        names = {board for board, _ in by_interest[:room]}
        return [one for one in rows if one[0] in names], len(rows) - room


def _cells(board: str, row: BoardRow) -> list[Text]:
    """A row of the table. `Text`, not str: rich would take brackets in names for markup."""
    bad = f" ({row.bad} failed)" if row.bad else ""
    return [
        Text(one_line(board)),
        Text(row.state, style=_STYLES.get(row.state, "")),
        Text(one_line(row.mode)),
        Text(f"{row.ended}/{row.total}{bad}"),
        Text("" if row.power_w is None else f"{row.power_w:.1f}"),
        Text("" if row.temperature_c is None else f"{row.temperature_c:.0f}"),
        Text(one_line(row.trial)),
    ]


# name, is a number, share of the room that is left over
_COLUMNS: tuple[tuple[str, bool, int | None], ...] = (
    ("board", False, None),
    ("state", False, None),
    ("mode", False, None),
    ("trials", True, None),
    ("W", True, None),
    ("°C", True, None),
    ("now", False, 1),
)
_DULL = ("waiting", "finished", "restored")
_STYLES = {
    "running": "green",
    "rebooting": "yellow",
    "retrying": "yellow",
    "lost": "red",
    "not restored": "red",
}


class PlainView(RunView):
    """A line an event, for files, pipes and logs."""

    def event(self, event: RunEvent) -> None:
        """Print what is worth a line."""
        super().event(event)
        if event.kind in QUIET:
            return
        count = f"[{self.ended}/{self.total}]" if event.kind == "trial_end" else ""
        sys.stdout.write(f"{event.time:%H:%M:%S} {count:9} {self.line(event)}\n")
        sys.stdout.flush()


def event_line(event: RunEvent) -> str:
    """An event on one line, with its time, for those who see only some."""
    rest = " - ".join(part for part in (event.trial_id, event.text) if part)
    return one_line(
        f"{event.time:%H:%M:%S} {event.board} {event.kind.replace('_', ' ')} {rest}"
    ).rstrip()


@contextlib.contextmanager
def open_view(
    plan: Plan,
    known: Mapping[str, TrialProgress],
    *,
    plain_lines: bool,
    pace: Pace | None = None,
    decided: Mapping[str, tuple[int, int]] = MappingProxyType({}),
) -> Iterator[RunView]:
    """The live view in a terminal, plain lines elsewhere or when asked for."""
    console = Console()
    if plain_lines or not console.is_terminal:
        yield PlainView(plan, known, pace=pace, decided=decided)
        return
    view = LiveView(plan, known, console, pace=pace, decided=decided)
    with view.live:
        yield view
