"""`farm boards doctor`."""

import asyncio
import shutil
import textwrap
from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from farm.cli.board_answers import FAILED, SelectionArgument, chosen_boards
from farm.cli.options import JsonOption, WorkspaceOption
from farm.cli.output import is_terminal, one_line, print_json, print_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from farm.pipeline.boards.findings import Checkup, Finding

WORDS = {"fail": "would fail", "warn": "look at it", "": "ready"}
LEVELS = ("fail", "warn", "note")
MOST_NAMES = 8
"""Of boards that have the same note: the JSON names them all."""
FIXED_COLUMNS, LEAST_ROOM = 28, 30
"""What the table takes besides the board's name and the finding; the least for the finding."""
INDENT = "     "


def doctor(
    selection: SelectionArgument = None,
    workspace: WorkspaceOption = None,
    json: JsonOption = False,
) -> None:
    """Would a run tonight fail, and why? Exit 1 if it would on any of the boards."""
    from farm.pipeline.boards.doctor import examine

    lab, chosen = chosen_boards(workspace, selection)
    checkups = asyncio.run(examine(lab, chosen))
    if json:
        print_json([asdict(one) for one in checkups])
    else:
        _print(checkups)
    if any(one.would_fail for one in checkups):
        raise typer.Exit(FAILED)


def _print(checkups: "Sequence[Checkup]") -> None:
    """A line a board; then each finding once, the worst first, with all boards that have it."""
    width = shutil.get_terminal_size().columns if is_terminal() else None
    longest = max((len(one.board) for one in checkups), default=0)
    room = max(LEAST_ROOM, width - max(longest, len("board")) - FIXED_COLUMNS) if width else None
    rows = []
    for one in checkups:
        worst = one.findings[0] if one.findings else None
        level, shown = "", one.summary
        if worst is not None and worst.level != "note":
            level, shown = worst.level, f"{worst.about}: {worst.text}"
        shown = one_line(shown)
        if room is not None and len(shown) > room:
            shown = shown[: room - 1].rstrip() + "\N{HORIZONTAL ELLIPSIS}"
        rows.append([one.board, WORDS[level], shown, len(one.findings)])
    print_table("", ["board", "tonight", "worst finding", "findings"], rows)
    for finding, boards in _by_finding(checkups).items():
        _print_finding(finding, boards, width)
    failing = sum(one.would_fail for one in checkups)
    typer.echo(f"{len(checkups)} boards looked at, {failing} would fail tonight")


def _by_finding(checkups: "Sequence[Checkup]") -> "dict[Finding, list[str]]":
    found: dict[Finding, list[str]] = {}
    for level in LEVELS:
        for one in checkups:
            for finding in one.findings:
                if finding.level == level:
                    found.setdefault(finding, []).append(one.board)
    return found


def _print_finding(finding: "Finding", boards: "Sequence[str]", width: int | None) -> None:
    """On one line in a pipe; wrapped in a terminal, the fix on a line of its own."""
    names = ", ".join(boards)
    if finding.level == "note" and boards[MOST_NAMES:]:
        names = f"{', '.join(boards[:MOST_NAMES])} and {len(boards) - MOST_NAMES} more"
    head = one_line(f"{finding.level} {names}: {finding.about}: {finding.text}")
    fix = one_line(f"-> {finding.fix}") if finding.fix else ""
    if width is None:
        typer.echo(f"{head} {fix}".rstrip())
        return
    for text, indent in ((head, ""), (fix, INDENT)):
        lines = textwrap.wrap(
            text,
            width,
            initial_indent=indent,
            subsequent_indent=INDENT if not indent else f"{INDENT}   ",
            break_long_words=False,  # paths and keys, to be copied
            break_on_hyphens=False,
        )
        for line in lines:
            typer.echo(line)


def register(boards: typer.Typer) -> None:
    """Add the command."""
    boards.command("doctor")(doctor)
