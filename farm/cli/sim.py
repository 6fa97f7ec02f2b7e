"""`farm sim`, `farm demo`."""

from pathlib import Path
from typing import Annotated

import typer

from farm.cli.options import WorkspaceOption

sim = typer.Typer(help="A simulated lab that stays up.", no_args_is_help=True)


@sim.command("up")
def up(workspace: WorkspaceOption = None) -> None:
    """Start the boards and meters of the inventory that have a `simulation` section."""
    from farm.pipeline.lab import open_lab
    from farm.pipeline.sim import start_lab

    lab = open_lab(workspace)
    pid = start_lab(lab)
    boards = [board.name for board in lab.inventory.boards if board.simulation]
    typer.echo(f"simulated lab up (pid {pid}): {' '.join(boards)}")


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
