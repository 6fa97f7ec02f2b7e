"""The live view of a run: a row a board, totals, ETA, last events; plain lines elsewhere."""

import contextlib
import sys
import time
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from farm.cli.output import plain
from farm.cli.plan_view import duration
from farm.interfaces.sinks import Progress, RunEvent, TrialProgress
from farm.model.attempt import TrialState
from farm.model.parameters import parameters_text
from farm.model.plan import Plan

SHOWN_EVENTS = 6
QUIET = ("trial_prepare", "trial_start", "original_state", "temperature")
FINAL = (TrialState.DONE, TrialState.FAILED, TrialState.UNSUPPORTED, TrialState.SKIPPED)


@dataclass(slots=True)
class BoardRow:
    """What is shown of one board."""

    total: int
    ended: int = 0
    bad: int = 0
    state: str = "waiting"
    mode: str = ""
    trial: str = ""
    power_w: float | None = None
    temperature_c: float | None = None


class RunView(Progress):
    """Keeps the rows; `LiveView` and `PlainView` show them."""

    def __init__(self, plan: Plan, known: Mapping[str, TrialProgress]) -> None:
        self.plan = plan
        self.rows = {lane.board: BoardRow(len(lane.trials)) for lane in plan.lanes}
        self.trials = {trial.trial_id: trial for trial in plan.trials}
        self.events: deque[RunEvent] = deque(maxlen=SHOWN_EVENTS)
        self.begin_s = time.monotonic()
        self.ended_before = 0
        for trial_id, progress in known.items():
            if progress.state in FINAL and trial_id in self.trials:
                self._count(trial_id, progress.state)
                self.ended_before += 1

    @property
    def total(self) -> int:
        """Trials of the plan."""
        return len(self.trials)

    @property
    def ended(self) -> int:
        """Trials that are decided."""
        return sum(row.ended for row in self.rows.values())

    def eta_s(self) -> float:
        """Seconds to the end: the plan's estimate, corrected by this run's own pace."""
        slowest = max((lane for lane in self.plan.lanes), key=self._left_s, default=None)
        if slowest is None:
            return 0.0
        elapsed_s = time.monotonic() - self.begin_s
        done = self.ended - self.ended_before
        share = done / max(1, self.total - self.ended_before)
        planned = self._left_s(slowest)
        if share <= 0.05:  # noqa: PLR2004 - too little seen for a pace
            return max(0.0, planned - elapsed_s if done == 0 else planned)
        return elapsed_s / share * (1 - share)

    def _left_s(self, lane: object) -> float:
        from farm.model.plan import Lane

        assert isinstance(lane, Lane)  # noqa: S101 - narrows the type for `max`
        row = self.rows[lane.board]
        return lane.estimate_s * (1 - row.ended / max(1, row.total))

    def event(self, event: RunEvent) -> None:
        """Take note of an event."""
        row = self.rows.get(event.board)
        if row is not None:
            self._update(row, event)
        if event.kind not in QUIET:
            self.events.append(event)

    def _update(self, row: BoardRow, event: RunEvent) -> None:
        trial = self.trials.get(event.trial_id)
        if trial is not None and event.kind in ("trial_prepare", "trial_start"):
            row.mode = trial.cell.power_mode
            row.trial = f"{trial.cell.payload} {parameters_text(trial.cell.parameters)}"
            row.state = "preparing" if event.kind == "trial_prepare" else "running"
        elif event.kind == "trial_end":
            state = TrialState(str(event.data.get("state", "pending")))
            row.state = "ready"
            if state in FINAL:
                self._count(event.trial_id, state)
        elif event.kind in _STATES:
            row.state = _STATES[event.kind]

    def _count(self, trial_id: str, state: TrialState) -> None:
        row = self.rows[self.trials[trial_id].board]
        row.ended += 1
        row.bad += state is TrialState.FAILED
        if row.ended == row.total:
            row.state, row.trial = "finished", ""

    def watts(self, board: str, power_w: float) -> None:
        """The newest socket power of a board."""
        if board in self.rows:
            self.rows[board].power_w = power_w


_STATES = {
    "board_ready": "ready",
    "board_lost": "lost",
    "retry": "retrying",
    "restored": "restored",
    "restore_failed": "not restored",
}


class LiveView(RunView):
    """A table that is drawn four times a second."""

    def __init__(self, plan: Plan, known: Mapping[str, TrialProgress], console: Console) -> None:
        super().__init__(plan, known)
        self.live = Live(
            get_renderable=self.render, console=console, refresh_per_second=4, transient=False
        )

    def render(self) -> RenderableType:
        """The whole view."""
        table = Table(expand=True, pad_edge=False)
        for name, justify in _COLUMNS:
            table.add_column(name, justify="right" if justify else "left", no_wrap=True)
        shown = list(self.rows.items())
        room = max(5, self.live.console.height - SHOWN_EVENTS - 8)
        for board, row in shown[:room]:
            bad = f" ({row.bad} failed)" if row.bad else ""
            watts = "" if row.power_w is None else f"{row.power_w:.1f}"
            style = _STYLES.get(row.state, "")
            table.add_row(
                plain(board),
                Text(row.state, style=style),
                row.mode,
                f"{row.ended}/{row.total}{bad}",
                watts,
                plain(row.trial),
            )
        if len(shown) > room:
            table.add_row(f"... {len(shown) - room} more")
        total_w = sum(row.power_w or 0.0 for row in self.rows.values())
        head = Text(
            f"{self.plan.sweep.name}   {self.ended}/{self.total} trials   "
            f"{total_w:.1f} W   about {duration(self.eta_s())} left",
            style="bold",
        )
        lines = [
            Text(f"{e.time:%H:%M:%S} {_line(e)}", no_wrap=True, overflow="ellipsis", style="dim")
            for e in self.events
        ]
        return Group(head, table, *lines)


_COLUMNS = (
    ("board", False),
    ("state", False),
    ("mode", False),
    ("trials", True),
    ("W", True),
    ("now", False),
)
_STYLES = {"running": "green", "lost": "red", "retrying": "yellow", "not restored": "red"}


class PlainView(RunView):
    """A line an event, for files, pipes and logs."""

    def event(self, event: RunEvent) -> None:
        """Print what is worth a line."""
        super().event(event)
        if event.kind in QUIET:
            return
        count = f"[{self.ended}/{self.total}]" if event.kind == "trial_end" else ""
        sys.stdout.write(f"{event.time:%H:%M:%S} {count:9} {_line(event)}\n")
        sys.stdout.flush()


def _line(event: RunEvent) -> str:
    what = event.kind.replace("_", " ")
    if event.kind == "trial_end":
        verdict = event.data.get("verdict")
        what = str(event.data.get("state", "")) + (f" ({verdict})" if verdict else "")
    text = f" - {event.text}" if event.text else ""
    return plain(f"{event.board:12} {what:16} {event.trial_id}{text}")


@contextlib.contextmanager
def open_view(
    plan: Plan, known: Mapping[str, TrialProgress], *, plain_lines: bool
) -> Iterator[RunView]:
    """The live view in a terminal, plain lines elsewhere or when asked for."""
    console = Console()
    if plain_lines or not console.is_terminal:
        yield PlainView(plan, known)
        return
    view = LiveView(plan, known, console)
    with view.live:
        yield view
