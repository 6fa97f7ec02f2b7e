"""`farm results`, `compare`, `report`."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from farm.cli.options import JsonOption, RunArgument, WorkspaceOption
from farm.cli.output import is_terminal, plain, print_json, print_table


def results(
    run_ref: RunArgument = "last",
    workspace: WorkspaceOption = None,
    format: Annotated[  # noqa: A002 - the option's name
        Literal["table", "json", "csv", "parquet"], typer.Option(help="How to print.")
    ] = "table",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write to a file (parquet needs one).")
    ] = None,
    trials: Annotated[bool, typer.Option("--trials", help="A row a trial, not a cell.")] = False,
    json: JsonOption = False,
) -> None:
    """Print a run's results: a row a cell with mean and spread over its valid trials."""
    from farm.pipeline.lab import open_lab
    from farm.pipeline.runs import open_lab_store
    from farm.pipeline.show import export

    with open_lab_store(open_lab(workspace), create=False) as store:
        found = store.results(store.find_run(run_ref))
    if json or format != "table":
        text = export(found, "json" if json else format, output)
        if text is not None:
            # A terminal would obey what a board wrote; a file or a pipe gets it as it is.
            typer.echo(plain(text) if is_terminal() else text, nl=False)
        return
    from farm.reporting.tables import cell_rows, fixed_lines, trial_rows

    columns, rows = trial_rows(found) if trials else cell_rows(found)
    print_table("", columns, rows)
    for line in [] if trials else fixed_lines(found):
        typer.echo(plain(f"the same in all cells of {line}"))


def compare(
    run_ref: RunArgument,
    other: Annotated[str, typer.Argument(help="Another run, or `published`.")],
    workspace: WorkspaceOption = None,
    json: JsonOption = False,
) -> None:
    """Compare a run with published figures or with another run, cell by cell."""
    from farm.pipeline.lab import open_lab
    from farm.pipeline.runs import open_lab_store
    from farm.pipeline.show import comparison

    with open_lab_store(open_lab(workspace), create=False) as store:
        title, columns, rows, data = comparison(store, store.find_run(run_ref), other)
    if json:
        print_json(data)
        return
    print_table(title, columns, rows)
    if not rows:
        typer.echo("No cell of the run is among the figures to compare with.")


def report(
    run_ref: RunArgument = "last",
    workspace: WorkspaceOption = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file; else in the run's folder.")
    ] = None,
) -> None:
    """Write one HTML file with cells, watts, energy, verdicts and plots; it needs no network."""
    from farm.pipeline.lab import open_lab
    from farm.pipeline.runs import open_lab_store
    from farm.pipeline.show import write_report

    with open_lab_store(open_lab(workspace), create=False) as store:
        path = write_report(store, store.find_run(run_ref), output)
    typer.echo(f"wrote {path}")


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(results)
    app.command()(compare)
    app.command()(report)
