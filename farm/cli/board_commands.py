"""`farm boards exec`, `reboot`, `shell`, `sudoers`: what reaches into boards."""

import asyncio
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from farm.cli.board_answers import (
    FAILED,
    NONE_REACHED,
    SelectionArgument,
    chosen_boards,
    end,
    print_faults,
)
from farm.cli.options import WorkspaceOption
from farm.cli.output import one_line, plain

if TYPE_CHECKING:
    from farm.pipeline.boards.execute import Ended
    from farm.pipeline.boards.reach import Answer

COMMAND_KEY = "farm.command"
NAMES_SHOWN = 12


class _DashedCommand(TyperCommand):
    """Takes what comes after ``--`` as it is: it is the boards' command, not ours."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - typer's is private
        """Put the words after the first ``--`` aside."""
        head = list(args)
        if "--" in head:
            place = head.index("--")
            ctx.meta[COMMAND_KEY] = head[place + 1 :]
            head = head[:place]
        rest: list[str] = super().parse_args(ctx, head)
        return rest


def execute(
    context: typer.Context,
    selection: SelectionArgument = None,
    workspace: WorkspaceOption = None,
    timeout_s: Annotated[
        float, typer.Option("--timeout", min=0.1, help="Seconds that the command may take.")
    ] = 60.0,
) -> None:
    """Run a command on boards, all at once: farm boards exec tx2-* -- uname -a.

    It runs without a shell of farm's: for pipes, write -- sh -c "...". Exit 0: it did on all;
    1: it failed on some; 3: no board was reached.
    """
    from farm.errors import ConfigError
    from farm.pipeline.boards.execute import execute as run_on

    command: list[str] = context.meta.get(COMMAND_KEY, [])
    if not command:
        raise ConfigError("no command: write it after --, as in farm boards exec all -- uptime")
    if not selection:
        raise ConfigError("no board: write which before --, as in farm boards exec all -- uptime")
    lab, chosen = chosen_boards(workspace, selection)
    answers = asyncio.run(run_on(lab, chosen, command, _show, timeout_s=timeout_s))
    print_faults(answers)
    _summarise(answers)
    if answers and all(one.is_unreached for one in answers):
        raise typer.Exit(NONE_REACHED)
    if any(one.value is None or one.value.exit_status != 0 for one in answers):
        raise typer.Exit(FAILED)


def _show(board: str, line: str, is_error: bool) -> None:
    typer.echo(f"{board}: {one_line(line)}", err=is_error)


def _summarise(answers: "Sequence[Answer[Ended]]") -> None:
    """How it ended, boards of a kind in one line; on stderr, so that stdout is the command's."""
    by_end: dict[str, list[str]] = {}
    for one in answers:
        if one.value is not None:
            status = one.value.exit_status
            word = f"exit {status}" if status >= 0 else f"signal {-status}"
        else:
            word = "not reached" if one.is_unreached else "no end"
        by_end.setdefault(word, []).append(one.board.name)
    for word, names in sorted(by_end.items()):
        more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
        listed = " ".join(names[:NAMES_SHOWN])
        typer.echo(f"{word}: {len(names)} of {len(answers)}: {listed}{more}", err=True)


def reboot(
    names: Annotated[list[str], typer.Argument(help="Names, globs, tag:T.", metavar="BOARDS")],
    workspace: WorkspaceOption = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    timeout_s: Annotated[
        float, typer.Option("--timeout", min=1.0, help="Seconds until they must be back.")
    ] = 300.0,
) -> None:
    """Reboot boards that no run works on, and wait until each is back with a new boot id."""
    from farm.pipeline.boards.reboot import reboot_boards

    lab, chosen = chosen_boards(workspace, names)
    if not yes:
        listed = " ".join(board.name for board in chosen)
        typer.confirm(f"Reboot {len(chosen)}: {listed}?", abort=True)
    tell: Callable[[str, str], None] = _tell
    answers = asyncio.run(reboot_boards(lab, chosen, back_limit_s=timeout_s, tell=tell))
    for one in answers:
        if one.value is not None:
            seconds, boot_id = one.value.seconds, one.value.boot_id
            _tell(one.board.name, f"back after {seconds:.0f} s, boot id {boot_id}")
    end(answers)


def _tell(board: str, text: str) -> None:
    typer.echo(plain(f"{board}: {text}"))


def shell(
    name: Annotated[str, typer.Argument(help="One board.", metavar="BOARD")],
    workspace: WorkspaceOption = None,
) -> None:
    """Log in to a board, host key verified as in runs; the exit status is the shell's."""
    from farm.errors import ConfigError
    from farm.pipeline.boards.shell import open_shell_on

    lab, chosen = chosen_boards(workspace, [name])
    if len(chosen) != 1:
        raise ConfigError(f"{name!r} is {len(chosen)} boards that are not in maintenance, not one")
    raise typer.Exit(asyncio.run(open_shell_on(lab, chosen[0])))


def sudoers(
    selection: SelectionArgument = None,
    workspace: WorkspaceOption = None,
    with_reboot: Annotated[
        bool, typer.Option("--with-reboot", help="Also what `farm boards reboot` needs.")
    ] = False,
    with_fan: Annotated[
        bool, typer.Option("--with-fan", help="Also what sweeps with `fan:` need.")
    ] = False,
    with_kernel_log: Annotated[
        bool,
        typer.Option("--with-kernel-log", help="Also reading the kernel log after failures."),
    ] = False,
) -> None:
    """Print the sudoers file that boards need: these commands and arguments, no others."""
    from farm.pipeline.boards.sudoers import check_sudoers, sudoers_text

    lab, chosen = chosen_boards(workspace, selection)
    text = sudoers_text(
        lab, chosen, with_reboot=with_reboot, with_fan=with_fan, with_kernel_log=with_kernel_log
    )
    if not check_sudoers(text):
        typer.echo("not checked: there is no visudo on this machine", err=True)
    sys.stdout.write(text)


def register(boards: typer.Typer) -> None:
    """Add the commands."""
    boards.command("exec", cls=_DashedCommand)(execute)
    boards.command("reboot")(reboot)
    boards.command("shell")(shell)
    boards.command("sudoers")(sudoers)
