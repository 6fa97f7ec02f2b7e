"""What commands over many boards have in common: the selection, the faults, the exit code."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from farm.cli.output import plain

if TYPE_CHECKING:
    from farm.model.board import Board
    from farm.pipeline.boards.reach import Answer
    from farm.pipeline.lab import Lab

SelectionArgument = Annotated[
    list[str] | None,
    typer.Argument(help="Names, globs, tag:T, profile:P, all.", metavar="BOARDS"),
]
FAILED, NONE_REACHED = 1, 3


def chosen_boards(
    workspace: Path | None, selection: Sequence[str] | None
) -> "tuple[Lab, tuple[Board, ...]]":
    """The workspace and the boards that the words name; all without any. Raises ConfigError."""
    from farm.pipeline.lab import open_lab
    from farm.planning.selection import select_boards

    lab = open_lab(workspace)
    return lab, select_boards(lab.inventory.boards, selection or ["all"])


def print_faults(answers: "Sequence[Answer[object]]") -> None:
    """Each error on stderr."""
    for one in answers:
        if one.error is not None:
            typer.echo(plain(one.error), err=True)


def end(answers: "Sequence[Answer[object]]", *, is_told: bool = False) -> None:
    """Tell the errors unless that is done; exit 1 if there is any, 3 if none was reached."""
    if not is_told:
        print_faults(answers)
    if answers and all(one.is_unreached for one in answers):
        raise typer.Exit(NONE_REACHED)
    if any(one.error is not None for one in answers):
        raise typer.Exit(FAILED)
