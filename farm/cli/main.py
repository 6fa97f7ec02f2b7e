"""The `farm` command. Commands import what they need when they run: `farm --help` is quick."""

import sys
from typing import Annotated

import typer

from farm.cli import (
    boards,
    logs,
    notify,
    parse,
    payloads,
    results,
    runs,
    service,
    sim,
    status,
    workspace,
)
from farm.cli.output import plain
from farm.errors import FarmError

app = typer.Typer(
    name="farm",
    help="Benchmark sweeps over a rack of boards, with the power read at the socket.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
workspace.register(app)
boards.register(app)
payloads.register(app)
parse.register(app)
runs.register(app)
status.register(app)
logs.register(app)
service.register(app)
results.register(app)
notify.register(app)
sim.register(app)


def _print_version(value: bool) -> None:
    if value:
        from farm import __version__

        typer.echo(f"farm {__version__}")
        raise typer.Exit


@app.callback()
def _farm(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Show the version."
        ),
    ] = False,
) -> None:
    """Benchmark sweeps over a rack of boards, with the power read at the socket."""


def main() -> None:
    """Run the command; a FarmError becomes one message and its exit code."""
    try:
        app()
    except FarmError as error:
        typer.echo(plain(f"farm: {error}"), err=True)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # The reader (head, less) has gone: no fault of the command.
        sys.stderr.close()
        sys.exit(0)
