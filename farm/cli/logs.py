"""`farm logs`: the host's log of a run, and what payloads printed."""

from typing import TYPE_CHECKING, Annotated

import typer

from farm.cli.options import RunArgument, WorkspaceOption
from farm.cli.output import one_line, plain

if TYPE_CHECKING:
    from pathlib import Path

    from farm.interfaces.sinks import OpenAttempt
    from farm.pipeline.lab import Lab
    from farm.store.database import Store


def logs(
    run_ref: RunArgument = "last",
    trial: Annotated[
        str | None,
        typer.Argument(help="A trial's or attempt's id, or its beginning: what it printed."),
    ] = None,
    workspace: WorkspaceOption = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on as it is written, until it ends.")
    ] = False,
    board: Annotated[
        str | None, typer.Option("--board", "-b", help="Only lines of this board.")
    ] = None,
    stderr: Annotated[bool, typer.Option("--stderr", help="stderr instead of stdout.")] = False,
    files: Annotated[
        bool, typer.Option("--files", help="Where each attempt's output lies, instead of it.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="The host's log as it is.")] = False,
) -> None:
    """Print the host's log of a run; with a trial, what its payload printed.

    Of an attempt that still runs the output is fetched from its board, which costs the board
    some CPU: do that to look for a fault, not while it measures.
    """
    from farm.pipeline.lab import open_lab
    from farm.pipeline.runs import open_lab_store

    lab = open_lab(workspace)
    with open_lab_store(lab, create=False) as store:
        run_id = store.find_run(run_ref)
        if files:
            _list_files(store, run_id, trial, is_stderr=stderr)
        elif trial is None:
            _print_host_log(store, run_id, board, follow=follow, as_json=json)
        else:
            _print_output(lab, store, run_id, trial, is_stderr=stderr, follow=follow)


def _print_host_log(
    store: "Store", run_id: str, board: str | None, *, follow: bool, as_json: bool
) -> None:
    from farm.pipeline.host_log import log_line_text
    from farm.pipeline.logs import host_log_lines

    try:
        for line in host_log_lines(store, run_id, board, follow=follow):
            typer.echo(plain(line.rstrip("\n")) if as_json else one_line(log_line_text(line)))
    except KeyboardInterrupt:
        return


def _list_files(store: "Store", run_id: str, trial: str | None, *, is_stderr: bool) -> None:
    from farm.pipeline.show import attempt_logs

    for attempt, path in attempt_logs(store, run_id, trial, is_stderr=is_stderr):
        typer.echo(f"{attempt}  {path}")


def _print_output(
    lab: "Lab", store: "Store", run_id: str, ref: str, *, is_stderr: bool, follow: bool
) -> None:
    from farm.errors import BoardError, ConfigError
    from farm.pipeline.logs import running_attempts
    from farm.pipeline.show import attempt_logs

    running = running_attempts(store, run_id, ref)
    printed = set()
    for attempt, path in attempt_logs(store, run_id, ref, is_stderr=is_stderr):
        printed.add(attempt)
        _print_file(attempt, path)
    for one in running:
        if one.attempt_id in printed:
            continue
        typer.echo(f"--- {one.attempt_id} (running on {one.board})")
        try:
            _fetch(lab, run_id, one, is_stderr=is_stderr, follow=follow)
        except BoardError:
            ended = dict(attempt_logs(store, run_id, one.attempt_id, is_stderr=is_stderr))
            if one.attempt_id not in ended:
                raise
            _print_file(one.attempt_id, ended[one.attempt_id])  # it ended meanwhile
    if not printed and not running:
        raise ConfigError(f"no attempt of {ref!r} in run {run_id}; `farm logs --files` lists them")


def _print_file(attempt: str, path: "Path") -> None:
    typer.echo(f"--- {attempt}")
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            typer.echo(plain(line.rstrip("\n")))


def _fetch(
    lab: "Lab", run_id: str, attempt: "OpenAttempt", *, is_stderr: bool, follow: bool
) -> None:
    import asyncio
    import codecs

    from farm.pipeline.logs import fetch_output

    decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def show(data: bytes) -> None:
        typer.echo(plain(decoder.decode(data)), nl=False)

    try:
        cut = asyncio.run(
            fetch_output(lab, run_id, attempt, show, is_stderr=is_stderr, follow=follow)
        )
    except KeyboardInterrupt:
        cut = ""
    typer.echo(f"--- {cut}" if cut else "")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(logs)
