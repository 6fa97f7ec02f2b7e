"""`farm boards doctor`."""

import asyncio
from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from farm.cli.board_answers import FAILED, SelectionArgument, chosen_boards
from farm.cli.options import JsonOption, WorkspaceOption
from farm.cli.output import one_line, print_json, print_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from farm.pipeline.boards.findings import Checkup

WORDS = {"fail": "would fail", "warn": "look at it", "note": "ready", "": "ready"}


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
    rows = []
    for one in checkups:
        worst = one.findings[0] if one.findings else None
        shown = f"{worst.about}: {worst.text}" if worst is not None else one.summary
        verdict = WORDS[worst.level if worst is not None else ""]
        rows.append([one.board, verdict, one_line(shown), len(one.findings)])
    print_table("", ["board", "tonight", "worst finding", "findings"], rows)
    for one in checkups:
        for finding in one.findings:
            fix = f" -> {finding.fix}" if finding.fix else ""
            text = f"{finding.level} {one.board}: {finding.about}: {finding.text}{fix}"
            typer.echo(one_line(text))
    failing = sum(one.would_fail for one in checkups)
    typer.echo(f"{len(checkups)} boards looked at, {failing} would fail tonight")


def register(boards: typer.Typer) -> None:
    """Add the command."""
    boards.command("doctor")(doctor)
