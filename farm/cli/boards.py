"""`farm boards`, `farm meters`."""

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from farm.cli.options import JsonOption, WorkspaceOption
from farm.cli.output import plain, print_json, print_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from farm.pipeline.boards import BoardAnswer

SelectionArgument = Annotated[
    list[str], typer.Argument(help="Names, globs, tag:T, profile:P, all.", metavar="BOARDS")
]

boards = typer.Typer(help="The boards of the inventory.", no_args_is_help=True)
meters = typer.Typer(help="The meters of the inventory.", no_args_is_help=True)


@boards.command("list")
def list_boards(
    selection: Annotated[
        list[str] | None, typer.Argument(help="Names, globs, tag:T, profile:P, all.")
    ] = None,
    workspace: WorkspaceOption = None,
    json: JsonOption = False,
) -> None:
    """List boards as the inventory has them."""
    from farm.pipeline.lab import open_lab
    from farm.planning.selection import select_boards

    lab = open_lab(workspace)
    chosen = select_boards(lab.inventory.boards, selection or ["all"])
    if json:
        print_json([board.model_dump(mode="json") for board in chosen])
        return
    columns = ["board", "profile", "address", "user", "meter", "tags", "kind"]
    rows = [
        [
            b.name,
            b.profile,
            f"{b.host}:{b.port}",
            b.user,
            b.meter or "-",
            " ".join(b.tags),
            "simulated" if b.simulation else "real",
        ]
        for b in chosen
    ]
    print_table("", columns, rows)


@boards.command("enroll")
def enroll(
    selection: SelectionArgument,
    workspace: WorkspaceOption = None,
    yes: Annotated[bool, typer.Option("--yes", help="Trust what is shown, unasked.")] = False,
) -> None:
    """Learn boards' SSH host keys: shown to compare with the boards' own, then trusted."""
    from farm.pipeline.boards import show_keys, trust
    from farm.pipeline.lab import open_lab
    from farm.planning.selection import select_boards

    chosen = select_boards(open_lab(workspace).inventory.boards, selection)
    answers = asyncio.run(show_keys(chosen))
    _print_answers(answers)
    shown = [one for one in answers if not one.fault]
    if shown and (yes or typer.confirm("Are these the boards' own keys?", abort=True)):
        for path in trust(shown):
            typer.echo(f"wrote {path}")
    _fail_if_any(answers)


@boards.command("clean")
def clean_boards(selection: SelectionArgument, workspace: WorkspaceOption = None) -> None:
    """Free boards' disks of payloads they keep for the next run; they are pushed again."""
    from farm.pipeline.boards import clean
    from farm.pipeline.lab import open_lab
    from farm.planning.selection import select_boards

    lab = open_lab(workspace)
    answers = asyncio.run(clean(lab, select_boards(lab.inventory.boards, selection)))
    _print_answers(answers)
    _fail_if_any(answers)


def _print_answers(answers: "Sequence[BoardAnswer]") -> None:
    for one in answers:
        if not one.fault:
            typer.echo(plain(f"{one.board.name} ({one.board.host}:{one.board.port}): {one.text}"))


def _fail_if_any(answers: "Sequence[BoardAnswer]") -> None:
    faults = [one.fault for one in answers if one.fault]
    for fault in faults:
        typer.echo(plain(fault), err=True)
    if faults:
        raise typer.Exit(1)


@meters.command("list")
def list_meters(workspace: WorkspaceOption = None, json: JsonOption = False) -> None:
    """List meters as the inventory has them."""
    from farm.pipeline.lab import open_lab

    lab = open_lab(workspace)
    if json:
        print_json([meter.model_dump(mode="json") for meter in lab.inventory.meters])
        return
    feeds: dict[str, list[str]] = {}
    for board in lab.inventory.boards:
        if board.meter:
            feeds.setdefault(board.meter, []).append(board.name)
    rows = [
        [
            m.name,
            m.kind,
            f"{m.host}:{m.port or ''}",
            " ".join(feeds.get(m.name, [])),
            m.poll_hz,
            m.update_s,
        ]
        for m in lab.inventory.meters
    ]
    print_table("", ["meter", "kind", "address", "feeds", "polls/s", "refresh s"], rows)


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(boards, name="boards")
    app.add_typer(meters, name="meters")
