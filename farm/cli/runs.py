"""`farm plan`, `run`, `resume`, `stop`, `runs`."""

from typing import TYPE_CHECKING, Annotated

import typer

from farm.cli.options import JsonOption, RunArgument, WorkspaceOption
from farm.cli.output import plain, print_json, print_table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from farm.model.attempt import TrialState
    from farm.pipeline.lab import Lab
    from farm.pipeline.night import NightPlan
    from farm.store.database import Store

SweepArgument = Annotated[
    str, typer.Argument(help="A sweep file, or the name of one in sweeps/.", metavar="SWEEP")
]
PlainOption = Annotated[
    bool, typer.Option("--plain", help="Plain lines instead of the live view.")
]
DetachOption = Annotated[
    bool, typer.Option("--detach", "-d", help="Return once it runs; it outlives this terminal.")
]
AtOption = Annotated[
    str | None,
    typer.Option("--at", help="Begin then: 22:30, +2h, 2026-12-01T22:30.", metavar="TIME"),
]
FinishByOption = Annotated[
    str | None,
    typer.Option(
        "--finish-by",
        help="Be over by then: 07:00, +8h, 2026-12-01T07:00. What does not fit is left out, "
        "last repeats first.",
        metavar="TIME",
    ),
]
SafeOption = Annotated[
    bool, typer.Option("--safe", help="Let the upper end of the estimate fit, not the middle.")
]
SHOWN_HISTORY = 2000
"""Attempts that the live view learns from: the run itself soon tells more, and must not wait."""
runs = typer.Typer(help="Runs in the store.", no_args_is_help=True)


def plan(
    sweep: SweepArgument,
    workspace: WorkspaceOption = None,
    at: AtOption = None,
    finish_by: FinishByOption = None,
    safe: SafeOption = False,
    json: JsonOption = False,
) -> None:
    """Show what a sweep would do: trials, order, mode changes, reboots, estimated time."""
    from farm.cli.plan_view import plan_json, print_plan
    from farm.pipeline.lab import open_lab

    lab = open_lab(workspace)
    made = _plan_night(lab, sweep, at, finish_by, is_safe=safe)
    if json:
        print_json(plan_json(made, lab.profiles))
    else:
        print_plan(made, lab.profiles)


def run(
    sweep: SweepArgument,
    workspace: WorkspaceOption = None,
    plain_lines: PlainOption = False,
    detach: DetachOption = False,
    at: AtOption = None,
    finish_by: FinishByOption = None,
    safe: SafeOption = False,
) -> None:
    """Run a sweep. Exit 0: all done; 1: something failed; 3: no board; 130: stopped, resumable."""
    from farm.cli.plan_view import print_times
    from farm.pipeline.lab import open_lab
    from farm.pipeline.night import keep_night
    from farm.pipeline.runs import create_run, open_lab_store

    lab = open_lab(workspace)
    made = _plan_night(lab, sweep, at, finish_by, is_safe=safe)
    print_times(made)
    with open_lab_store(lab) as store:
        left_out = {trial.trial_id: made.reason for trial in made.left_out}
        run_id = create_run(lab, store, made.whole, left_out=left_out)
        if at or finish_by:
            keep_night(store, run_id, made.night)
        typer.echo(f"run {run_id}")
        if detach:
            _detach(lab, store, run_id)
        else:
            _execute(lab, store, run_id, plain_lines=plain_lines)


def resume(
    run_ref: RunArgument = "last",
    workspace: WorkspaceOption = None,
    plain_lines: PlainOption = False,
    detach: DetachOption = False,
    failed: Annotated[
        bool, typer.Option("--failed", help="Try failed and invalid trials again, too.")
    ] = False,
    skipped: Annotated[
        bool, typer.Option("--skipped", help="Run what was left out to finish in time, too.")
    ] = False,
    at: AtOption = None,
    finish_by: FinishByOption = None,
    is_detached: Annotated[bool, typer.Option("--detached", hidden=True)] = False,
) -> None:
    """Go on with a run where it stood: after Ctrl-C, a kill, a restart of this host.

    The times given with it replace those of the run; "none" for neither.
    """
    from farm.pipeline.lab import open_lab
    from farm.pipeline.night import change_night
    from farm.pipeline.runs import open_lab_store

    lab = open_lab(workspace)
    with open_lab_store(lab, create=False) as store:
        run_id = store.find_run(run_ref)
        typer.echo(f"run {run_id}")
        if failed:
            typer.echo(f"{store.reopen_failed(run_id)} failed trials are pending again")
        if skipped:
            typer.echo(f"{store.reopen_skipped(run_id)} trials that were left out are pending")
        for note in change_night(store, run_id, at, finish_by):
            typer.echo(note)
        if detach:
            _detach(lab, store, run_id)
        else:
            _execute(lab, store, run_id, plain_lines=plain_lines, is_detached=is_detached)


def _plan_night(
    lab: "Lab", sweep: str, at: str | None, finish_by: str | None, *, is_safe: bool
) -> "NightPlan":
    from datetime import UTC, datetime

    from farm.pipeline.night import parse_night, plan_night
    from farm.pipeline.runs import lab_history, plan_sweep

    now, history = datetime.now(UTC), lab_history(lab)
    night = parse_night(at, finish_by, now)
    return plan_night(lab, plan_sweep(lab, sweep, history), history, night, now, is_safe=is_safe)


def _detach(lab: "Lab", store: "Store", run_id: str) -> None:
    """Leave the run to a process of its own; its exit status if it has ended already."""
    from farm.pipeline.detached import check_run, start_detached

    check_run(lab, store, run_id)
    started = start_detached(lab, store, run_id)
    if started.exit_code is None:
        typer.echo(f"process {started.pid} works on it, without this terminal; from any other:")
        for command, what in (("watch", "shows it"), ("logs", "its log"), ("stop", "ends it")):
            typer.echo(f"  farm {command} {run_id}  {what}")
        return
    typer.echo(plain(started.last_words), err=started.exit_code != 0)
    if started.exit_code:
        raise typer.Exit(started.exit_code if started.exit_code > 0 else 1)


def _execute(
    lab: "Lab", store: "Store", run_id: str, *, plain_lines: bool, is_detached: bool = False
) -> None:
    import asyncio

    from farm.cli.live import open_view
    from farm.model.attempt import TrialState
    from farm.pipeline.runs import execute
    from farm.pipeline.silent_view import SilentView
    from farm.planning.plan import pace_of

    if is_detached:  # the host's log has it all
        end = asyncio.run(execute(lab, store, run_id, SilentView()))
    else:
        rest = store.load_rest(run_id)
        pace = pace_of(rest.plan.sweep, lab.inventory.boards, store.history(SHOWN_HISTORY))
        with open_view(
            rest.plan, rest.known, plain_lines=plain_lines, pace=pace, decided=rest.decided
        ) as view:
            end = asyncio.run(execute(lab, store, run_id, view))
    counts = ", ".join(f"{count} {state.value}" for state, count in sorted(end.counts.items()))
    typer.echo(f"run {run_id}: {counts}")
    for fault in end.faults:
        typer.echo(plain(f"  {fault}"), err=True)
    if end.counts.get(TrialState.SKIPPED):
        typer.echo(f"`farm resume {run_id} --skipped` runs what was left out.")
    if not end.is_complete:
        typer.echo(f"`farm runs show {run_id}` tells why. {_resume_hint(run_id, end.counts)}")
        raise typer.Exit(1)


def stop(
    run_ref: Annotated[
        str | None, typer.Argument(help="A run; else the one that goes on.", metavar="RUN")
    ] = None,
    workspace: WorkspaceOption = None,
    now: Annotated[
        bool, typer.Option("--now", help="Kill it: boards are not put back until leases end.")
    ] = False,
) -> None:
    """Stop a run from any terminal, as Ctrl-C would: boards restored, resumable."""
    from farm.cli.live import event_line
    from farm.errors import RunHeldError
    from farm.pipeline.lab import open_lab
    from farm.pipeline.runs import open_lab_store
    from farm.pipeline.stopping import run_to_stop, stop_run, wait_stopped

    with open_lab_store(open_lab(workspace), create=False) as store:
        run_id = run_to_stop(store, run_ref)
        after = store.last_event(run_id)
        holder = stop_run(store, run_id, now=now)
        if holder is None:
            typer.echo(f"nobody worked on run {run_id} any more; noted that it is stopped")
            return
        told = "killed" if now else "told"
        typer.echo(f"{told} process {holder.pid}, which works on run {run_id}")
        is_over = wait_stopped(
            store, run_id, holder, lambda event: typer.echo(event_line(event)), after=after
        )
        if not is_over:
            raise RunHeldError(
                f"{holder} still puts boards back. `farm stop {run_id}` waits again, "
                "`farm stop --now` kills it"
            )
    typer.echo(f"stopped; `farm resume {run_id}` goes on")


@runs.command("list")
def list_runs(workspace: WorkspaceOption = None, json: JsonOption = False) -> None:
    """List the runs in the store, newest last."""
    from farm.pipeline.lab import open_lab
    from farm.pipeline.runs import open_lab_store
    from farm.pipeline.show import run_json

    with open_lab_store(open_lab(workspace), create=False) as store:
        found = store.runs()
    if json:
        print_json([run_json(info) for info in found])
        return
    rows = [
        [
            info.run_id,
            info.sweep,
            f"{info.created:%Y-%m-%d %H:%M}",
            info.state,
            sum(info.counts.values()),
            _counts_text(info.counts),
        ]
        for info in found
    ]
    print_table("", ["run", "sweep", "created (UTC)", "state", "trials", "by state"], rows)


@runs.command("show")
def show_run(
    run_ref: RunArgument = "last", workspace: WorkspaceOption = None, json: JsonOption = False
) -> None:
    """What a run came to: counts and why, how long, what is left, and the command to go on."""
    from farm.cli.summary_view import print_summary, summary_json
    from farm.pipeline.lab import open_lab
    from farm.pipeline.runs import open_lab_store
    from farm.pipeline.show import run_json, unfinished
    from farm.reporting.summary import summarise_run
    from farm.reporting.tables import open_rows

    with open_lab_store(open_lab(workspace), create=False) as store:
        info = store.run(store.find_run(run_ref))
        summary = summarise_run(info.run_id, store.results(info.run_id), store.events(info.run_id))
        left = unfinished(store, info.run_id)
    if json:
        trials = [one.model_dump(mode="json") for one in left]
        print_json({**run_json(info), "summary": summary_json(summary), "unfinished": trials})
        return
    typer.echo(f"run {info.run_id} ({info.state}): {_counts_text(info.counts)}")
    print_summary(summary)
    if left:
        print_table("not done", *open_rows(left))


def _resume_hint(run_id: str, counts: "Mapping[TrialState, int]") -> str:
    """What `farm resume` would do: trials that are decided, failed ones too, stay so."""
    from farm.execution.fleet import UNFINISHED

    left = sum(counts.get(state, 0) for state in UNFINISHED)
    if left:
        return f"`farm resume {run_id}` tries the {left} that are pending."
    return f"Nothing is pending; `farm resume {run_id} --failed` tries again what failed."


def _counts_text(counts: "Mapping[TrialState, int]") -> str:
    return ", ".join(f"{count} {state}" for state, count in sorted(counts.items(), key=str))


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(plan)
    app.command()(run)
    app.command()(resume)
    app.command()(stop)
    app.add_typer(runs, name="runs")
