"""`farm boards`, `farm meters`."""

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from farm.cli import board_commands, doctor, enroll, modes
from farm.cli.board_answers import SelectionArgument, chosen_boards, end
from farm.cli.options import JsonOption, WorkspaceOption
from farm.cli.output import plain, print_json, print_table

if TYPE_CHECKING:
    from farm.pipeline.boards.probe import BoardProbe
    from farm.pipeline.boards.reach import Answer

boards = typer.Typer(help="The boards of the inventory.", no_args_is_help=True)
meters = typer.Typer(help="The meters of the inventory.", no_args_is_help=True)
MB_PER_GB = 1024


@boards.command("list")
def list_boards(
    selection: Annotated[
        list[str] | None, typer.Argument(help="Names, globs, tag:T, profile:P, all.")
    ] = None,
    workspace: WorkspaceOption = None,
    json: JsonOption = False,
) -> None:
    """List boards as the inventory has them."""
    _, chosen = chosen_boards(workspace, selection)
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


@boards.command("probe")
def probe(
    selection: SelectionArgument = None,
    workspace: WorkspaceOption = None,
    json: JsonOption = False,
) -> None:
    """Ask boards what they are: system, modes, rights, the profile that fits. Kept as JSON."""
    from farm.pipeline.boards.probe import probe_boards

    lab, chosen = chosen_boards(workspace, selection)
    answers = asyncio.run(probe_boards(lab, chosen))
    found = [one.value for one in answers if one.value is not None]
    if json:
        print_json([one.model_dump(mode="json") for one in found])
    elif found:
        _print_probes(answers)
        typer.echo(f"kept in {lab.workspace.results_dir / 'boards'}")
    end(answers)


def _print_probes(answers: "list[Answer[BoardProbe]]") -> None:
    columns = ["board", "profile", "system", "python", "mode", "cores", "memory", "free disk"]
    rows = [_probe_row(one.value) for one in answers if one.value is not None]
    print_table("", [*columns, "temperature", "load", "sudo"], rows)
    for one in answers:
        if one.value is None:
            continue
        for line in _probe_lines(one.value):
            typer.echo(plain(f"{one.board.name}: {line}"))


def _probe_row(one: "BoardProbe") -> list[object]:
    facts, fingerprint = one.facts, one.fingerprint
    mode = "?" if one.mode is None else one.mode.name + (" locked" if one.mode.is_locked else "")
    temperature = "?" if one.temperature_c is None else f"{one.temperature_c:.0f} C"
    return [
        one.board,
        one.profile,
        facts.l4t or facts.os or fingerprint.kernel,
        fingerprint.python,
        mode,
        fingerprint.cpu_count,
        f"{fingerprint.memory_mb / MB_PER_GB:.1f} GB" if fingerprint.memory_mb else "?",
        f"{one.free_mb / MB_PER_GB:.1f} GB",
        temperature,
        "?" if facts.load_1m is None else facts.load_1m,
        one.sudo.complaint or one.sudo.state,
    ]


def _probe_lines(one: "BoardProbe") -> list[str]:
    lines = [f"{one.facts.model or 'no device tree'} {' '.join(one.facts.modules)}".rstrip()]
    fitting = [suggestion.profile for suggestion in one.suggestions]
    if fitting and one.profile not in fitting:
        best = one.suggestions[0]
        lines.append(f"its profile should be {best.profile} ({best.why}), not {one.profile}")
    lines += [f"mode table: {line}" for line in one.differences]
    return lines + [f"not told: {problem}" for problem in one.problems]


@boards.command("clean")
def clean_boards(selection: SelectionArgument, workspace: WorkspaceOption = None) -> None:
    """Free boards' disks of payloads they keep for the next run; they are pushed again."""
    from farm.pipeline.boards.upkeep import clean

    lab, chosen = chosen_boards(workspace, selection)
    answers = asyncio.run(clean(lab, chosen))
    for one in answers:
        if one.value is not None:
            typer.echo(f"{one.board.name}: {one.value / 1e6:.1f} MB freed")
    end(answers)


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
            ":".join(str(part) for part in (m.host, m.port) if part),
            " ".join(feeds.get(m.name, [])),
            m.poll_hz,
            m.update_s,
        ]
        for m in lab.inventory.meters
    ]
    print_table("", ["meter", "kind", "address", "feeds", "polls/s", "refresh s"], rows)


def register(app: typer.Typer) -> None:
    """Add the commands."""
    doctor.register(boards)
    board_commands.register(boards)
    enroll.register(boards)
    app.add_typer(boards, name="boards")
    app.add_typer(meters, name="meters")
    modes.register(app)
