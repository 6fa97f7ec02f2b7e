"""Commands that need root on a board, and how a refusal of root reads.

The agent runs them through ``sudo -n``. Reading often goes on without root, so that a refusal is
a result here; what cannot go on calls `require_root`.
"""

from collections.abc import Sequence

from farm.errors import AgentError, PowerModeError
from farm.interfaces.agent import BoardCommands
from farm.interfaces.transport import CommandResult

_REFUSALS = (
    "a password is required",
    "a terminal is required",
    "no tty present",
    "must have a tty",
    "not in the sudoers file",
    "is not allowed to execute",
    "is not allowed to run",
    "interactive authentication is required",  # sudo-rs
    "I'm afraid I can't do that",  # sudo-rs
    "may not run sudo",
    "as a root user",
    "sudo: not found",
    "sudo: No such file or directory",
)


async def run_as_root(
    commands: BoardCommands, argv: Sequence[str], *, timeout_s: float, stdin: bytes = b""
) -> CommandResult:
    """Run argv as root; sudo's refusal is a result too. Raises what the commands raise else."""
    try:
        return await commands.run(argv, timeout_s=timeout_s, needs_root=True, stdin=stdin)
    except AgentError as error:  # the agent tells sudo's refusal from the command's own
        if not error.seen.startswith("sudo:"):
            raise
        return CommandResult(tuple(argv), 1, b"", error.seen.encode(), 0.0)


def is_refused_root(result: CommandResult) -> bool:
    """Whether sudo, or the tool itself, refused for want of root."""
    if result.exit_status == 0:
        return False
    text = f"{result.error_text}\n{result.text}"
    return any(refusal in text for refusal in _REFUSALS)


def require_root(result: CommandResult, step: str, remedy: str) -> None:
    """Raise PowerModeError with `remedy` if root was refused."""
    if not is_refused_root(result):
        return
    seen = result.error_text.strip().splitlines()
    raise PowerModeError(
        step,
        f"`{result.argv[0]}` needs root: {seen[-1][:200] if seen else 'refused'}",
        remedy=remedy,
    )


def sudoers_remedy(allow: Sequence[str]) -> str:
    """What to do on the board. `allow`: commands with absolute paths and their arguments."""
    return (
        "Allow it without a password on the board, by this line in /etc/sudoers.d/farm: "
        f"USER ALL=(root) NOPASSWD: {', '.join(allow)}"
    )
