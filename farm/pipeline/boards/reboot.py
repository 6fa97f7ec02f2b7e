"""Reboots boards, and waits until each answers with a new boot id."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from farm.drivers.agent import SshBoardAgent
from farm.drivers.transports.ssh_context import SshContext
from farm.errors import (
    AgentError,
    AuthError,
    BoardError,
    CommandTimeoutError,
    LinkLostError,
    TransportError,
)
from farm.model.board import Board
from farm.pipeline.boards.reach import Answer, agent_on, context_of, leased, on_each
from farm.pipeline.lab import Lab

BACK_LIMIT_S = 300.0
"""A Jetson with a file system check was seen to take minutes (assumed)."""
ASK_AGAIN_S = 1.0
LOGIN_AGAIN_S = 10.0
LOGIN_TRIES = 6
"""While a board boots, pam_nologin refuses logins; more tries than this may get us banned."""
COMMAND_LIMIT_S = 20.0
COMMANDS = (("reboot",), ("systemctl", "reboot"))


@dataclass(frozen=True, slots=True)
class Rebooted:
    """A board that came back: its new boot id, and how long it was away."""

    boot_id: str
    seconds: float


async def reboot_boards(
    lab: Lab,
    boards: Sequence[Board],
    *,
    back_limit_s: float = BACK_LIMIT_S,
    tell: Callable[[str, str], None] = lambda _board, _text: None,
) -> list[Answer[Rebooted]]:
    """Reboot all at once. A board that a run works on is left alone (LeaseHeldError)."""
    context = context_of(lab)

    async def reboot(board: Board) -> Rebooted:
        begin_s = time.monotonic()
        before = await _ask(board, context)
        tell(board.name, "goes down")
        boot_id = await _wait_for_boot(board, context, before, begin_s + back_limit_s)
        return Rebooted(boot_id, time.monotonic() - begin_s)

    return await on_each(boards, reboot)


async def _ask(board: Board, context: SshContext) -> str:
    """Tell the board to reboot; its boot id until now. Raises AgentError when it says no."""
    before, was_asked = "", False
    try:
        async with agent_on(board, context) as agent, leased(agent, "reboot"):
            before = agent.fingerprint.boot_id
            was_asked = True
            await _command(agent, board)
    except (LinkLostError, CommandTimeoutError):
        if not was_asked:
            raise  # else it is going down under us: the new boot id will tell
    return before


async def _command(agent: SshBoardAgent, board: Board) -> None:
    said = ""
    for argv in COMMANDS:
        try:
            result = await agent.run(argv, timeout_s=COMMAND_LIMIT_S, needs_root=True)
        except AgentError as error:
            said = error.seen
            continue
        if result.exit_status == 0:
            return
        said = (result.error_text or result.text).strip()[-300:]
    raise AgentError(
        "reboot",
        said or "it says no",
        board=board.name,
        remedy=f"`farm boards sudoers {board.name} --with-reboot` writes what is needed",
    )


async def _wait_for_boot(board: Board, context: SshContext, before: str, give_up_s: float) -> str:
    last: BoardError | None = None
    logins = 0
    while time.monotonic() < give_up_s:
        pause_s = ASK_AGAIN_S
        try:
            async with agent_on(board, context) as agent:
                if agent.fingerprint.boot_id != before:
                    return agent.fingerprint.boot_id
        except AuthError as error:
            logins, last, pause_s = logins + 1, error, LOGIN_AGAIN_S
            if logins >= LOGIN_TRIES:
                raise
        except (TransportError, AgentError) as error:
            last = error
        await asyncio.sleep(min(pause_s, max(0.0, give_up_s - time.monotonic())))
    seen = str(last) if last is not None else "it never went down"
    raise CommandTimeoutError(
        "reboot",
        f"not back with a new boot id: {seen}",
        board=board.name,
        remedy="Look at it; `farm boards doctor` tells when it is back.",
    )
