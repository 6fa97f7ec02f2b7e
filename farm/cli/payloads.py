"""`farm payloads`."""

from pathlib import Path
from typing import Annotated

import typer

from farm.cli.options import JsonOption, WorkspaceOption
from farm.cli.output import plain, print_json, print_table

payloads = typer.Typer(help="What boards can run.", no_args_is_help=True)


@payloads.command("list")
def list_payloads(workspace: WorkspaceOption = None, json: JsonOption = False) -> None:
    """List the payloads, built in and of the workspace."""
    from farm.pipeline.lab import open_lab

    found = open_lab(workspace).payloads.values()
    if json:
        print_json([payload.model_dump(mode="json") for payload in found])
        return
    rows = [
        [
            p.manifest.name,
            p.manifest.level,
            " ".join(p.manifest.parameters),
            " ".join(p.manifest.metrics),
            p.digest[:12],
            p.manifest.summary,
        ]
        for p in found
    ]
    print_table("", ["payload", "level", "parameters", "metrics", "digest", "summary"], rows)


@payloads.command("show")
def show_payload(
    name: Annotated[str, typer.Argument()], workspace: WorkspaceOption = None
) -> None:
    """Print one payload's manifest and files as JSON."""
    from farm.errors import ConfigError
    from farm.pipeline.lab import open_lab

    known = open_lab(workspace).payloads
    if name not in known:
        raise ConfigError(f"no payload {name!r}; there are: {', '.join(sorted(known))}")
    print_json(known[name].model_dump(mode="json"))


@payloads.command("check")
def check(folder: Annotated[Path, typer.Argument(help="The payload's folder.")]) -> None:
    """Check a payload's folder; exit 2 when something is wrong."""
    from farm.config.payloads import check_payload

    problems = check_payload(folder)
    for problem in problems:
        typer.echo(plain(problem), err=True)
    if problems:
        raise typer.Exit(2)
    typer.echo(f"{folder}: fine")


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(payloads, name="payloads")
