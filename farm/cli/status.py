"""`farm status`, `farm watch`: how runs stand, from any terminal."""

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from farm.cli.options import JsonOption, WorkspaceOption
from farm.cli.output import plain, print_json, print_table

if TYPE_CHECKING:
    from farm.cli.live import RunView
    from farm.pipeline.status import RunFollower, RunStatus
    from farm.store.database import Store

POLL_S = 1.0
RunOption = Annotated[
    str | None, typer.Argument(help="A run; else those that go on.", metavar="RUN")
]


@dataclass(slots=True)
class EventClock:
    """Seconds of UTC: of the event that is shown again, later of now."""

    event_s: float | None = None

    def __call__(self) -> float:
        """Now, to a view."""
        return datetime.now(UTC).timestamp() if self.event_s is None else self.event_s


def status(
    run_ref: RunOption = None, workspace: WorkspaceOption = None, json: JsonOption = False
) -> None:
    """Runs that go on, or whose host died: who works on them, how each board is, what is left."""
    from farm.pipeline.lab import open_lab
    from farm.pipeline.runs import open_lab_store
    from farm.pipeline.status import run_status, shown_runs

    with open_lab_store(open_lab(workspace), create=False) as store:
        if run_ref is None:
            found = shown_runs(store)
        else:
            found = [run_status(store, store.find_run(run_ref))]
        views = [_standing(store, one.info.run_id) for one in found]
    if json:
        print_json([_json(one, view) for one, view in zip(found, views, strict=True)])
        return
    for one, view in zip(found, views, strict=True):
        _print(one, view)
    if not found:
        typer.echo("no run goes on; `farm runs list` shows those that ended")


def watch(
    run_ref: RunOption = None,
    workspace: WorkspaceOption = None,
    plain_lines: Annotated[
        bool, typer.Option("--plain", help="Plain lines instead of the live view.")
    ] = False,
) -> None:
    """Watch a run from any terminal, until it ends; Ctrl-C ends the watching only."""
    from farm.pipeline.lab import open_lab
    from farm.pipeline.runs import open_lab_store
    from farm.pipeline.status import run_status
    from farm.pipeline.stopping import run_to_stop

    with open_lab_store(open_lab(workspace), create=False) as store:
        run_id = run_to_stop(store, run_ref)
        with contextlib.suppress(KeyboardInterrupt):
            _watch(store, run_id, plain_lines=plain_lines)
        one = run_status(store, run_id)
    typer.echo(plain(f"run {run_id}: {_who(one)}"))


def _watch(store: "Store", run_id: str, *, plain_lines: bool) -> None:
    from rich.console import Console

    from farm.cli.live import LiveView, PlainView
    from farm.pipeline.status import RunFollower

    follower, clock, console = RunFollower(store, run_id), EventClock(), Console()
    if plain_lines or not console.is_terminal:
        view = _replayed(follower, clock, lambda: PlainView(follower.plan, follower.known, clock))
        typer.echo(view.head())
        _follow(store, follower, view)
        return
    live = LiveView(follower.plan, follower.known, console, clock)
    _replayed(follower, clock, lambda: live)
    with live.live:
        _follow(store, follower, live)


def _follow(store: "Store", follower: "RunFollower", view: "RunView") -> None:
    """Show what happens until nobody works on the run."""
    while True:
        is_held = store.run_holder(follower.run_id) is not None
        for event in follower.poll():
            view.event(event)
        if not is_held:
            return
        for board, power_w in follower.watts().items():
            view.watts(board, power_w)
        time.sleep(POLL_S)


def _standing(store: "Store", run_id: str) -> "RunView":
    from farm.cli.live import RunView
    from farm.pipeline.status import RunFollower

    follower, clock = RunFollower(store, run_id), EventClock()
    return _replayed(follower, clock, lambda: RunView(follower.plan, follower.known, clock))


def _replayed(
    follower: "RunFollower", clock: EventClock, make: Callable[[], "RunView"]
) -> "RunView":
    """A view that has seen what happened since the present host began, without printing it."""
    from farm.cli.live import RunView

    clock.event_s = follower.past[0].time.timestamp() if follower.past else None
    view = make()
    view.outlook.restart(clock())
    for event in follower.past:
        clock.event_s = event.time.timestamp()
        RunView.event(view, event)
    clock.event_s = None
    return view


def _who(one: "RunStatus") -> str:
    seen = ""
    if one.beat is not None:
        seconds = max(0.0, (datetime.now(UTC) - one.beat).total_seconds())
        seen = f", last sign of life {_ago(seconds)} ago"
    run_id = one.info.run_id
    return {
        "working": f"{one.holder} works on it{seen}",
        "silent": f"{one.holder} has it but shows no life{seen}: `farm stop {run_id} --now`, "
        f"then `farm resume {run_id}`",
        "gone": f"its process is gone ({one.holder or 'it never began'}{seen}); "
        f"`farm resume {run_id}` goes on",
        "stopped": f"stopped; `farm resume {run_id}` goes on",
        "finished": f"finished; `farm runs show {run_id}` tells what came of it",
    }[one.liveness]


def _ago(seconds: float) -> str:
    from farm.cli.plan_view import duration

    return duration(seconds)


def _print(one: "RunStatus", view: "RunView") -> None:
    typer.echo(plain(f"run {one.info.run_id}: {_who(one)}"))
    typer.echo(plain(view.head()))
    rows = [
        [board, row.state, row.mode, f"{row.ended}/{row.total}", row.bad, row.trial]
        for board, row in view.rows.items()
    ]
    print_table("", ["board", "state", "mode", "trials", "failed", "now"], rows)


def _json(one: "RunStatus", view: "RunView") -> dict[str, object]:
    from farm.pipeline.show import run_json

    holder = one.holder
    return {
        **run_json(one.info),
        "liveness": one.liveness,
        "holder": None
        if holder is None
        else {"host": holder.host, "pid": holder.pid, "since": holder.since},
        "last_sign_of_life": None if one.beat is None else one.beat.isoformat(),
        "left_s": round(view.eta_s(), 1),
        "boards": [
            {
                "board": board,
                "state": row.state,
                "trials": row.total,
                "ended": row.ended,
                "failed": row.bad,
                "now": row.trial,
            }
            for board, row in view.rows.items()
        ],
    }


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(status)
    app.command()(watch)
