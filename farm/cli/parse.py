"""`farm parse`."""

from pathlib import Path
from typing import Annotated

import typer

from farm.cli.output import print_json


def parse(
    kind: Annotated[str, typer.Argument(help="tegrastats, nvpmodel-conf, ...; `?` lists all.")],
    file: Annotated[
        Path | None, typer.Argument(help="What the board printed; stdin without it.")
    ] = None,
) -> None:
    """Show as JSON what farm understands of a text from a board."""
    from farm.pipeline.parse import parse_file

    print_json(parse_file(kind, file))


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(parse)
