"""`farm sim`, `farm demo`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from farm.cli.options import JsonOption, WorkspaceOption

if TYPE_CHECKING:
    from farm.simulation.fault_control import FaultRow

sim = typer.Typer(
    help="A simulated lab that stays up, and has faults on demand.", no_args_is_help=True
)
ScenarioOption = Annotated[
    Path | None,
    typer.Option("--scenario", metavar="FILE", help="Faults to have, with their times (YAML)."),
]


@sim.command("up")
def up(workspace: WorkspaceOption = None, scenario: ScenarioOption = None) -> None:
    """Start the boards and meters of the inventory that have a `simulation` section."""
    from farm.pipeline.lab import open_lab
    from farm.pipeline.sim import start_lab
    from farm.pipeline.sim_faults import load_scenario, tell_lab

    lab = open_lab(workspace)
    faults = load_scenario(lab, scenario) if scenario else []
    pid = start_lab(lab)
    boards = [board.name for board in lab.inventory.boards if board.simulation]
    typer.echo(f"simulated lab up (pid {pid}): {' '.join(boards)}")
    if faults:
        tell_lab(lab, faults)
        typer.echo(f"{len(faults)} faults planned; `farm sim faults` lists them")


@sim.command("down")
def down(workspace: WorkspaceOption = None) -> None:
    """Stop the simulated lab of the workspace."""
    from farm.pipeline.lab import open_lab
    from farm.pipeline.sim import stop_lab

    was_up = stop_lab(open_lab(workspace))
    typer.echo("simulated lab down" if was_up else "the simulated lab was not up")


@sim.command("serve", hidden=True)
def serve(workspace: WorkspaceOption = None) -> None:
    """Be the simulated lab, until SIGTERM or Ctrl-C. `farm sim up` starts this."""
    import asyncio

    from farm.pipeline.lab import open_lab
    from farm.pipeline.sim import serve_lab

    asyncio.run(serve_lab(open_lab(workspace)))


@sim.command("fault")
def fault(
    board: Annotated[str, typer.Argument(help="A board's name, `tag:T`, `all`.")],
    kind: Annotated[str, typer.Argument(help="What goes wrong; `farm sim kinds` lists them.")],
    after_s: Annotated[
        float, typer.Option("--after", metavar="S", help="Begin in so many seconds.")
    ] = 0.0,
    in_payload: Annotated[
        bool, typer.Option("--in-payload", help="Count from when the board runs a payload.")
    ] = False,
    for_s: Annotated[
        float | None,
        typer.Option("--for", metavar="S", help="End after so many seconds; else by `heal`."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=NUMBER", help="A parameter of the kind; repeatable."),
    ] = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Have something go wrong on a simulated board: now, or later."""
    from farm.pipeline.lab import open_lab
    from farm.pipeline.sim_faults import start_fault
    from farm.simulation.faults import kind_named, parameters_of

    wish: dict[str, object] = {
        "after_s": after_s,
        "for_s": for_s,
        "in_payload": in_payload,
        "parameters": parameters_of(kind_named(kind), settings or []),
    }
    rows = start_fault(open_lab(workspace), board, kind, wish)
    _print_faults(rows, as_json=as_json)
    if any(row.state == "refused" for row in rows):
        raise typer.Exit(1)


@sim.command("faults")
def faults(workspace: WorkspaceOption = None, as_json: JsonOption = False) -> None:
    """List the faults that are planned, there, or over."""
    from farm.pipeline.lab import open_lab
    from farm.pipeline.sim_faults import list_faults

    rows = list_faults(open_lab(workspace))
    _print_faults(rows, as_json=as_json)


@sim.command("heal")
def heal(
    board: Annotated[
        str | None, typer.Argument(help="A board's name, `tag:T`; all without it.")
    ] = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """End faults, and forget the planned ones."""
    from farm.pipeline.lab import open_lab
    from farm.pipeline.sim_faults import heal as heal_faults

    rows = heal_faults(open_lab(workspace), board)
    _print_faults(rows, as_json=as_json, nothing="nothing to heal")


@sim.command("rehearse")
def rehearse(
    scenario: Annotated[Path, typer.Argument(metavar="FILE", help="A scenario of faults (YAML).")],
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Begin a scenario of faults now; the lab is started if it is not up.

    Start the sweep in another terminal (`farm run SWEEP`), and see how the night would go.
    """
    from farm.pipeline.lab import open_lab
    from farm.pipeline.sim import start_lab
    from farm.pipeline.sim_faults import load_scenario, tell_lab

    lab = open_lab(workspace)
    planned = load_scenario(lab, scenario)
    start_lab(lab)
    _print_faults(tell_lab(lab, planned), as_json=as_json)


@sim.command("kinds")
def kinds(as_json: JsonOption = False) -> None:
    """List what can go wrong, with the parameters and what they are when not given."""
    from farm.cli.output import print_json, print_table
    from farm.simulation.fault_kinds import fault_words

    words = list(fault_words())
    if as_json:
        print_json([one._asdict() for one in words])
    else:
        print_table("", ("fault", "what happens", "--set"), words)


def demo(
    out: Annotated[
        Path, typer.Option("--out", help="The workspace to make; an ordinary one afterwards.")
    ] = Path("demo"),
    plain_lines: Annotated[
        bool, typer.Option("--plain", help="Plain lines instead of the live view.")
    ] = False,
) -> None:
    """A night in a minute: a simulated lab, a sweep over it, the results and a report."""
    from farm.cli.demo import run_demo

    run_demo(out, plain_lines=plain_lines)


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(sim, name="sim")
    app.command()(demo)


def _print_faults(rows: "list[FaultRow]", *, as_json: bool, nothing: str = "no faults") -> None:
    from farm.cli.output import print_json, print_table

    if as_json:
        print_json([row.model_dump() for row in rows])
        return
    if not rows:
        typer.echo(nothing)
        return
    columns = ("no", "board", "fault", "state", "due", "from", "to", "note")
    print_table("", columns, [_cells(row) for row in rows])


def _cells(row: "FaultRow") -> tuple[object, ...]:
    kind = f"{row.kind} {row.settings}".strip()
    until = _clock(row.ended) or (f"for {row.for_s:g} s" if row.for_s else "")
    return (
        row.number,
        row.board,
        kind,
        row.state,
        _clock(row.due),
        _clock(row.begun),
        until,
        row.note,
    )


def _clock(moment: str | None) -> str:
    """The host's own time of day."""
    from datetime import datetime

    return datetime.fromisoformat(moment).astimezone().strftime("%H:%M:%S") if moment else ""
