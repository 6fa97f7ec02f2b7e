"""`farm boards`, `farm meters`."""

from typing import Annotated

import typer

from farm.cli.options import JsonOption, WorkspaceOption
from farm.cli.output import print_json, print_table

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
