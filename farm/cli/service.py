"""`farm service`: resumes runs after a reboot, under systemd or by hand."""

from typing import Annotated

import typer

from farm.cli.options import WorkspaceOption
from farm.cli.output import plain

service = typer.Typer(
    help="Go on with runs whose host process is gone, after a reboot too.", no_args_is_help=True
)


@service.command("unit")
def unit(
    workspace: WorkspaceOption = None,
    user: Annotated[
        bool, typer.Option("--user", help="For the user's own systemd, without root.")
    ] = False,
) -> None:
    """Print a systemd unit that goes on with this workspace's runs, and how to install it."""
    from farm.pipeline.lab import open_lab
    from farm.pipeline.service_unit import unit_text

    typer.echo(unit_text(open_lab(workspace).workspace.root, is_user=user), nl=False)


@service.command("run")
def run_service(
    workspace: WorkspaceOption = None,
    once: Annotated[
        bool, typer.Option("--once", help="End when nothing is left to resume.")
    ] = False,
) -> None:
    """Resume every run whose process is gone and that no user stopped; go on to watch for more."""
    import asyncio

    from farm.pipeline.lab import open_lab
    from farm.pipeline.runs import open_lab_store
    from farm.pipeline.service import Service

    lab = open_lab(workspace)
    with open_lab_store(lab) as store:
        asyncio.run(Service(lab, store, _say).run(once=once))


def _say(line: str) -> None:
    typer.echo(plain(line))


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(service, name="service")
