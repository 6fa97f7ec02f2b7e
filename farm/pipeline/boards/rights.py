"""Asks a board's sudo, without a password and without a change, what farm may run as root."""

from collections.abc import Sequence
from typing import Literal

from farm.drivers.board_facts.sudo import (
    SudoComplaint,
    SudoListing,
    complaint_line,
    parse_sudo_listing,
    sudo_complaint,
)
from farm.errors import CommandTimeoutError
from farm.interfaces.agent import BoardCommands
from farm.interfaces.transport import CommandResult
from farm.model.record import Record
from farm.pipeline.boards.needs import RootCommand

ASK_LIMIT_S = 15.0
"""sudo asks name servers and directories; longer than that is a board that hangs."""

NO_ANSWER = "no_answer"
"""The complaint of a sudo that hung."""

State = Literal["root", "free", "password", "no", "missing", "unknown"]


class CommandRight(Record):
    """Whether one command may run as root.

    `free`: without a password; `missing`: the board has no such command; `unknown`: the
    board's sudo cannot be asked, and trying would change something.
    """

    command: str
    state: State


class SudoRights(Record):
    """All of it. `complaint` and `said`: why sudo does not even list; "" when it does."""

    state: State
    complaint: str = ""
    said: str = ""
    defaults: tuple[str, ...] = ()
    commands: tuple[CommandRight, ...] = ()

    def of(self, *states: State) -> list[str]:
        """The commands in one of these states."""
        return [one.command for one in self.commands if one.state in states]


async def ask_rights(agent: BoardCommands, commands: Sequence[RootCommand]) -> SudoRights:
    """What the board's sudo says of each command. Raises LinkLostError, AgentError.

    ``sudo -n -l COMMAND`` alone says yes to what needs a password; so the whole list is read
    too. A sudo that knows no ``-l`` is tried with the commands that change nothing.
    """
    who = await agent.run(("id", "-u"), timeout_s=ASK_LIMIT_S)  # a container's idea of root counts
    if who.text.strip() == "0":
        return SudoRights(state="root")
    if not commands:
        return SudoRights(state="free")
    listed = await _sudo(agent, "-l")
    if listed.exit_status == _HUNG:
        return SudoRights(state="no", complaint=NO_ANSWER, said=listed.error_text)
    complaint = _complaint(listed)
    if complaint is SudoComplaint.UNKNOWN_OPTION:
        rights = [await _try(agent, command) for command in commands]
        return _summed(rights, SudoListing(frozenset(), ()))
    if complaint is not None:
        said = complaint_line(listed.error_text)
        return SudoRights(state=_state(complaint), complaint=complaint.value, said=said)
    listing = parse_sudo_listing(listed.text)
    return _summed([await _ask(agent, command, listing) for command in commands], listing)


def _summed(rights: Sequence[CommandRight], listing: SudoListing) -> SudoRights:
    states = {right.state for right in rights}
    worst = next((s for s in _WORST if s in states), "free")
    flags = tuple(sorted(listing.defaults & {"requiretty", "use_pty"}))
    return SudoRights(state=worst, defaults=flags, commands=tuple(rights))


_HUNG = -1
"""No exit status: what is told of a sudo that did not end."""
_WORST: tuple[State, ...] = ("missing", "no", "password", "free", "unknown")


async def _ask(agent: BoardCommands, command: RootCommand, listing: SudoListing) -> CommandRight:
    answer = await _sudo(agent, "-l", "--", *command.sample)
    if answer.exit_status != 0:
        complaint = _complaint(answer)
        missing = complaint is SudoComplaint.NO_COMMAND
        return CommandRight(command=command.text, state="missing" if missing else "no")
    told = answer.text.split()
    path = told[0] if told and told[0].startswith("/") else command.path
    listed = listing.permission((path, *command.sample[1:]))
    # Allowed, by a rule that we cannot read: sudo's own word counts.
    return CommandRight(command=command.text, state="free" if listed == "no" else listed)


async def _try(agent: BoardCommands, command: RootCommand) -> CommandRight:
    if not command.is_harmless:
        return CommandRight(command=command.text, state="unknown")
    answer = await _sudo(agent, "--", *command.sample)
    complaint = _complaint(answer)
    state = "free" if complaint is None else _state(complaint)
    return CommandRight(command=command.text, state=state)


async def _sudo(agent: BoardCommands, *words: str) -> CommandResult:
    """Run ``sudo -n``; its refusal is an answer here, not an error. A hang is one, too."""
    argv = ("sudo", "-n", *words)
    try:
        return await agent.run(argv, timeout_s=ASK_LIMIT_S)
    except CommandTimeoutError:
        said = f"no answer in {ASK_LIMIT_S:.0f} s".encode()
        return CommandResult(argv, _HUNG, b"", said, ASK_LIMIT_S)


def _complaint(answer: CommandResult) -> SudoComplaint | None:
    if answer.exit_status == 127:  # noqa: PLR2004 - not found
        return SudoComplaint.NO_SUDO
    return sudo_complaint(answer.exit_status, answer.error_text, answer.text)


def _state(complaint: SudoComplaint) -> State:
    if complaint in (SudoComplaint.NEEDS_PASSWORD, SudoComplaint.NEEDS_TTY):
        return "password"
    return "missing" if complaint is SudoComplaint.NO_COMMAND else "no"
