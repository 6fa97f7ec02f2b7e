"""`farm boards enroll`: a new board, step by step; or the host keys of known ones."""

import asyncio
import re
import sys
from dataclasses import dataclass
from getpass import getpass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from farm.cli.board_answers import chosen_boards, end, print_faults
from farm.cli.options import WorkspaceOption
from farm.cli.output import plain

if TYPE_CHECKING:
    from farm.pipeline.boards.enroll_entry import Wanted

SSH_PORT, LAST_PORT = 22, 65535
_TARGET = re.compile(r"([A-Za-z_][A-Za-z0-9_.-]*)@(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]+)(?::(\d+))?")


@dataclass
class _Dialog:
    """Asks on the terminal; with --yes only for passwords, and for host keys never."""

    is_yes: bool
    asks_password: bool

    def tell(self, text: str) -> None:
        """Say it."""
        typer.echo(plain_lines(text))

    def confirm(self, question: str, *, by_default: bool) -> bool:
        """With --yes it is yes to what is yes by default, and no else."""
        if self.is_yes:
            return by_default
        return typer.confirm(question, default=by_default)

    def password(self, what: str) -> str:
        """Ask, unseen."""
        from farm.errors import AuthError

        if not self.asks_password and (self.is_yes or not sys.stdin.isatty()):
            text = "a password is needed, and there is nobody to ask"
            raise AuthError("enroll", text, remedy="Say --password, to be asked for it")
        return getpass(f"{what}: ")


def plain_lines(text: str) -> str:
    """Without control characters, but for the ends of lines."""
    return "\n".join(plain(line) for line in text.splitlines())


def enroll(
    words: Annotated[
        list[str],
        typer.Argument(
            help="A new board: NAME USER@HOST[:PORT]. Or known ones: names, globs, tag:T.",
            metavar="NAME USER@HOST | BOARDS",
        ),
    ],
    workspace: WorkspaceOption = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Do not ask. A new board needs --fingerprint then.")
    ] = False,
    fingerprint: Annotated[
        str, typer.Option(help="The host key's SHA256:..., in place of the question.")
    ] = "",
    password: Annotated[
        bool, typer.Option("--password", help="Ask for the password, also with --yes.")
    ] = False,
    key: Annotated[
        Path | None, typer.Option(help="Private key to log in with; else the workspace's own.")
    ] = None,
    profile: Annotated[str, typer.Option(help="Its profile; else the one that fits.")] = "",
    no_sudoers: Annotated[
        bool, typer.Option("--no-sudoers", help="Do not offer the sudoers file.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be done; change nothing.")
    ] = False,
) -> None:
    """Take a board in: host key, login key, sudoers, profile, inventory. Can be repeated.

    farm boards enroll tx2-01 nvidia@192.168.1.20

    Of boards that the inventory has: learn the host keys, after they were compared.
    """
    from farm.pipeline.boards.enroll_entry import Wanted

    target = _TARGET.fullmatch(words[1]) if len(words) == 2 else None  # noqa: PLR2004 - a pair
    if target is None:
        _learn_keys(workspace, words, yes=yes)
        return
    wanted = Wanted(
        name=words[0],
        user=target[1],
        host=target[2].strip("[]"),
        port=_port(target[3]),
        key=key,
        profile=profile,
        fingerprint=fingerprint,
        has_sudoers=not no_sudoers,
        is_dry=dry_run,
    )
    _take_in(workspace, wanted, _Dialog(yes, password))


def _port(text: str | None) -> int:
    from farm.errors import ConfigError

    port = int(text or SSH_PORT)
    if not 0 < port <= LAST_PORT:
        raise ConfigError(f"{port} is no port")
    return port


def _take_in(workspace: Path | None, wanted: "Wanted", dialog: _Dialog) -> None:
    from farm.errors import FarmError
    from farm.pipeline.boards.enroll import enroll_board
    from farm.pipeline.lab import open_lab

    lab = open_lab(workspace)
    try:
        asyncio.run(enroll_board(lab, wanted, dialog))
    except FarmError:
        typer.echo("stopped; what is told above stands, and the same command goes on", err=True)
        raise


def _learn_keys(workspace: Path | None, selection: list[str], *, yes: bool) -> None:
    from farm.pipeline.boards.upkeep import show_keys, trust

    _, chosen = chosen_boards(workspace, selection)
    answers = asyncio.run(show_keys(chosen))
    shown = [one for one in answers if one.value is not None]
    for one in shown:
        where = f"{one.board.name} ({one.board.host}:{one.board.port})"
        typer.echo(plain(f"{where}: {one.value.description if one.value else ''}"))
    if shown and not yes:
        # What failed must be known before the question, not after it.
        print_faults(answers)
        typer.confirm("Are these the boards' own keys?", abort=True)
    for path in trust(shown):
        typer.echo(f"wrote {path}")
    end(answers, is_told=bool(shown) and not yes)


def register(boards: typer.Typer) -> None:
    """Add the command."""
    boards.command("enroll")(enroll)
