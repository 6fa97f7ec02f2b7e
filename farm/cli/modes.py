"""`farm modes`."""

import asyncio
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from farm.cli.board_answers import SelectionArgument, chosen_boards, end
from farm.cli.options import JsonOption, WorkspaceOption
from farm.cli.output import plain, print_json, print_table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from farm.model.power_mode import PowerMode
    from farm.pipeline.boards.modes import BoardModes

modes = typer.Typer(help="Power modes of boards, by hand.", no_args_is_help=True)


@modes.command("list")
def list_modes(
    selection: SelectionArgument = None,
    workspace: WorkspaceOption = None,
    json: JsonOption = False,
) -> None:
    """Every board's own table of modes: the default, the present one, what aliases mean."""
    from farm.pipeline.boards.modes import list_modes as ask

    lab, chosen = chosen_boards(workspace, selection)
    answers = asyncio.run(ask(lab, chosen))
    found = [one.value for one in answers if one.value is not None]
    if json:
        print_json([one.model_dump(mode="json") for one in found])
    elif found:
        rows = [row for one in found for row in _mode_rows(one)]
        columns = ["board", "mode", "id", "cores", "CPU MHz", "GPU MHz", "EMC MHz", "W", "is"]
        print_table("", columns, rows)
    end(answers)


def _mode_rows(one: "BoardModes") -> "Iterator[list[object]]":
    for mode in one.table.modes:
        figures = (mode.id, mode.online_cores, mode.cpu_mhz, mode.gpu_mhz, mode.emc_mhz)
        cells = ["" if f is None else f"{f:g}" for f in (*figures, mode.budget_w)]
        yield [one.board, mode.name, *cells, _marks(one, mode)]


def _marks(one: "BoardModes", mode: "PowerMode") -> str:
    marks = [word for word, name in one.aliases.items() if name == mode.name]
    if one.current is not None and one.current.name == mode.name:
        marks.insert(0, "current, locked" if one.current.is_locked else "current")
    if one.table.default == mode.name:
        marks.append("default")
    return ", ".join(marks)


@modes.command("show")
def show(
    selection: SelectionArgument = None,
    workspace: WorkspaceOption = None,
    json: JsonOption = False,
) -> None:
    """The mode that each board is in now, and whether its clocks are locked."""
    from farm.pipeline.boards.modes import list_modes as ask

    lab, chosen = chosen_boards(workspace, selection)
    answers = asyncio.run(ask(lab, chosen))
    found = [one.value for one in answers if one.value is not None]
    if json:
        print_json([one.model_dump(mode="json", exclude={"table", "aliases"}) for one in found])
    elif found:
        print_table("", ["board", "mode", "id", "clocks", "cores on"], map(_state_row, found))
    end(answers)


def _state_row(one: "BoardModes") -> list[object]:
    state = one.current
    if state is None:
        return [one.board, f"? ({one.problem})", "", "", ""]
    clocks = "locked" if state.is_locked else state.detail.get("clocks", "free")
    number = "" if state.id is None else state.id
    return [one.board, state.name, number, clocks, state.detail.get("online", "")]


@modes.command("set")
def set_mode(
    mode: Annotated[str, typer.Argument(help="A name, maxn, maxp or maxq.", metavar="MODE")],
    selection: Annotated[
        list[str], typer.Argument(help="Names, globs, tag:T, profile:P, all.", metavar="BOARDS")
    ],
    workspace: WorkspaceOption = None,
    clocks: Annotated[
        Literal["default", "locked"], typer.Option(help="Pin clocks to the mode's top, or not.")
    ] = "default",
) -> None:
    """Set a mode on boards that no run works on, and prove it by reading it back."""
    from farm.pipeline.boards.modes import set_mode as change

    lab, chosen = chosen_boards(workspace, selection)
    answers = asyncio.run(change(lab, chosen, mode, clocks))
    for one in answers:
        if one.value is not None:
            applied = one.value
            did = "set and read back" if applied.has_changed else "was so already, read back"
            text = f"{applied.name}, clocks {applied.clocks}: {did}"
            typer.echo(plain(f"{one.board.name}: {text}"))
    end(answers)


@modes.command("restore")
def restore(selection: SelectionArgument = None, workspace: WorkspaceOption = None) -> None:
    """Put boards back to what was before the last `farm modes set`: without names, all of them."""
    from farm.pipeline.boards.modes import remembered, restore_mode

    lab, found = chosen_boards(workspace, selection)
    chosen = found if selection else remembered(lab, found)
    if not chosen:
        typer.echo("nothing is remembered: no mode was set by hand, or all are restored")
    answers = asyncio.run(restore_mode(lab, chosen))
    for one in answers:
        if one.value is not None:
            clocks = "locked" if one.value.is_locked else "free"
            typer.echo(plain(f"{one.board.name}: {one.value.name} again, clocks {clocks}"))
    end(answers)


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(modes, name="modes")
