"""The summary of a run, on a terminal and as JSON."""

from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from farm.cli.output import one_line
from farm.cli.plan_view import duration

if TYPE_CHECKING:
    from farm.reporting.summary import RunSummary


def print_summary(summary: "RunSummary") -> None:
    """Print the block."""
    for line in summary.lines:
        typer.echo(f"  {line.count:6} {line.name}")
        for why in line.reasons:
            typer.echo(one_line(f"           {why.text}"))
        if line.more:
            typer.echo(f"           {line.more} for other reasons")
    typer.echo(f"  {time_text(summary)}")
    for command, what in summary.todo:
        typer.echo(f"  `{command}` {what}")


def time_text(summary: "RunSummary") -> str:
    """How long it took."""
    if summary.begun is None or summary.ended is None:
        return "it has not begun"
    again = f", resumed {summary.sessions - 1} times" if summary.sessions > 1 else ""
    return (
        f"{summary.begun:%Y-%m-%d %H:%M} to {summary.ended:%Y-%m-%d %H:%M} UTC, worked for "
        f"{duration(summary.worked_s)}{again}"
    )


def summary_json(summary: "RunSummary") -> dict[str, object]:
    """As `farm runs show --json` prints it."""
    return {
        "groups": [asdict(line) for line in summary.lines],
        "begun": None if summary.begun is None else summary.begun.isoformat(),
        "ended": None if summary.ended is None else summary.ended.isoformat(),
        "worked_s": round(summary.worked_s, 1),
        "sessions": summary.sessions,
        "commands": [{"command": command, "does": what} for command, what in summary.todo],
    }
