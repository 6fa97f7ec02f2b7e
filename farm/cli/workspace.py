"""`farm init`, `farm schema`."""

from pathlib import Path
from typing import Annotated

import typer

from farm.cli.output import print_json


def init(
    folder: Annotated[Path, typer.Argument(help="The new workspace.")] = Path(),
) -> None:
    """Make a workspace: an inventory to fill in, an example sweep, schemas for editors."""
    from farm.pipeline.workspace import make_workspace

    for path in make_workspace(folder):
        typer.echo(f"wrote {path}")
    typer.echo("Next: put your boards into inventory.yaml, then `farm plan first`.")


def schema(
    kind: Annotated[str, typer.Argument(help="inventory, sweep, payload or profile")],
) -> None:
    """Print the JSON schema of a file, for editors that check YAML."""
    from farm.config.schema import json_schema

    print_json(json_schema(kind))


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(init)
    app.command()(schema)
