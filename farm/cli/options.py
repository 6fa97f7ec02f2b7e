"""Options that many commands share."""

from pathlib import Path
from typing import Annotated

import typer

WorkspaceOption = Annotated[
    Path | None,
    typer.Option(
        "--workspace",
        "-w",
        envvar="FARM_WORKSPACE",
        show_envvar=True,
        help="The folder with inventory.yaml; else the nearest one above.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
RunArgument = Annotated[
    str, typer.Argument(help="A run's id, its unique beginning, or `last`.", metavar="RUN")
]
