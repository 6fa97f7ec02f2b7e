"""What the agent, its start, or sudo says no with, as the errors of the tree."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from farm.drivers.agent_bundle import OLDEST_PYTHON
from farm.drivers.board_facts.sudo import SudoComplaint, complaint_line, sudo_complaint
from farm.errors import (
    AgentError,
    BoardError,
    BoardRestoringError,
    CommandTimeoutError,
    LeaseHeldError,
    TransferError,
)
from farm.interfaces.transport import CommandResult
from farm.model.board import Board

STEP = "start the agent"
WATCHDOG = "watchdog"
"""The run id of the lease that a board holds while it puts itself back."""


def refusal(op: str, value: object) -> BoardError:
    """The error that an answer with ``ok: false`` stands for."""
    error = value if isinstance(value, dict) else {}
    kind, text = error.get("kind"), str(error.get("text", "no reason given"))[:2000]
    if kind == "timeout":
        return CommandTimeoutError(op, text)
    lease = error.get("lease")
    if kind == "held" and isinstance(lease, dict) and lease.get("run_id") == WATCHDOG:
        seen = "the board puts itself back after its host vanished"
        return BoardRestoringError(op, seen, remedy="try again in a minute")
    if kind == "held":
        return LeaseHeldError(
            op,
            f"{text}{_until(error.get('left_s'))}",
            remedy="wait until that run ends or stop it with `farm stop` on its host; if its "
            "process is gone, `farm resume` there goes on with it. Is that host gone for good, "
            "then the board puts itself back at that time and is free",
        )
    if kind == "no_space":
        return TransferError(
            op, f"the board's disk is full: {text}", remedy="free some with `farm boards clean`"
        )
    if kind == "hash" or (kind == "not_found" and op == "start"):
        return TransferError(op, text)
    return AgentError(op, f"{text} ({kind})")


def _until(left_s: object) -> str:
    """When a lease ends by this host's clock, unless it is renewed; "" where it is not told."""
    if isinstance(left_s, bool) or not isinstance(left_s, int | float):
        return ""
    if not 0 <= left_s < timedelta(days=8).total_seconds():
        return ""
    end = datetime.now().astimezone() + timedelta(seconds=left_s)
    return f" (until {end:%H:%M:%S} unless it renews)"


def no_python(seen: str) -> AgentError:
    """The board's shell found no such Python."""
    remedy = "install it, or name one with `python:` in the inventory"
    return AgentError(STEP, f"no Python 3 on the board: {seen}", remedy=remedy)


def refused_start(greeting: Mapping[str, object], board: Board) -> BoardError:
    """The agent, or the bootstrap before it, said why it cannot run."""
    if greeting.get("farm") == "old":
        needed = ".".join(str(part) for part in OLDEST_PYTHON)
        seen = f"{greeting.get('path')} is Python {greeting.get('python')}, older than {needed}"
        return AgentError(STEP, seen, remedy="name a newer one with `python:` in the inventory")
    if greeting.get("kind") == "io":
        seen = f"the work folder {board.work_dir} cannot be used: {greeting.get('text')}"
        return AgentError(STEP, seen, remedy="name another with `work_dir:` in the inventory")
    return refusal(STEP, dict(greeting))


def check_sudo(result: CommandResult, board: Board) -> None:
    """Tell sudo's own refusal from the command's. Raises AgentError.

    `seen` begins with ``sudo:``. That sudo finds no such command is a result like a shell's.
    """
    complaint = sudo_complaint(result.exit_status, result.error_text, result.text)
    if complaint is None or complaint is SudoComplaint.NO_COMMAND:
        return
    seen = complaint_line(result.error_text)
    raise AgentError(
        f"run {result.argv[0]} as root",
        seen if seen.startswith("sudo:") else f"sudo: {seen}",
        remedy=_SUDO_REMEDIES.get(complaint, _SUDO_REMEDY).format(
            user=board.user, name=board.name
        ),
    )


_SUDO_REMEDY = (
    "let {user} use sudo without a password on the board (`farm boards sudoers {name}` prints "
    "the file), or log in as root"
)
_SUDO_REMEDIES = {
    SudoComplaint.NO_SUDO: "install sudo on the board, or log in as root",
    SudoComplaint.CANNOT: "sudo needs its setuid bit and a file system without nosuid there; or "
    "log in as root",
}
