"""`farm demo`: a simulated lab, a sweep over it, the results and a report."""

import asyncio
from pathlib import Path

import typer

from farm.cli.output import plain, print_table


def run_demo(out: Path, *, plain_lines: bool) -> None:
    """Make the workspace `out`, run the demo sweep in it, show and write what came out."""
    from farm.cli.live import open_view
    from farm.pipeline.demo import DEMO_SWEEP, make_demo_workspace
    from farm.pipeline.lab import open_lab
    from farm.pipeline.runs import create_run, execute, open_lab_store, plan_sweep
    from farm.pipeline.show import comparison, write_report
    from farm.pipeline.sim import lab_is_up, start_lab, stop_lab
    from farm.reporting.tables import cell_rows

    make_demo_workspace(out)
    lab = open_lab(out)
    typer.echo(f"workspace {out}: {len(lab.inventory.boards)} simulated boards, no hardware")
    was_up = lab_is_up(lab)
    start_lab(lab)
    try:
        plan = plan_sweep(lab, DEMO_SWEEP)
        with open_lab_store(lab) as store:
            run_id = create_run(lab, store, plan)
            typer.echo(f"run {run_id}")
            with open_view(plan, store.progress(run_id), plain_lines=plain_lines) as view:
                end = asyncio.run(execute(lab, store, run_id, view))
            columns, rows = cell_rows(store.results(run_id))
            print_table("simulated results", columns, rows)
            title, columns, rows, _ = comparison(store, run_id, "published")
            print_table(title, columns, rows)
            path = write_report(store, run_id, None)
    finally:
        if not was_up:
            stop_lab(lab)
    typer.echo(f"report: {path}")
    typer.echo(f"The figures are simulated. Look around: `farm runs show -w {out}`.")
    if not end.is_complete:
        for fault in end.faults:
            typer.echo(plain(fault), err=True)
        raise typer.Exit(1)
