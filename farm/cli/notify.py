"""`farm notify`."""

import typer

from farm.cli.options import JsonOption, WorkspaceOption
from farm.cli.output import one_line, print_json

notify = typer.Typer(help="Messages to people about runs.", no_args_is_help=True)


@notify.command("test")
def send_test_message(workspace: WorkspaceOption = None, json: JsonOption = False) -> None:
    """Send a test message by each entry of the inventory's `notify:`. Exit 1 if one fails."""
    import asyncio

    from farm.pipeline.lab import open_lab
    from farm.pipeline.notify import send_test

    sent = asyncio.run(send_test(open_lab(workspace)))
    if json:
        print_json([{"hook": name, "is_sent": not fault, "fault": fault} for name, fault in sent])
    elif not sent:
        typer.echo("the inventory has no `notify:` section: nobody is told of anything")
    else:
        for name, fault in sent:
            typer.echo(one_line(fault or f"{name}: sent"), err=bool(fault))
    if any(fault for _, fault in sent):
        raise typer.Exit(1)


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(notify, name="notify")
