"""Writes the sudoers file of boards: exactly what farm runs as root, and nothing else."""

import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from farm.errors import ConfigError, FarmError
from farm.model.board import Board
from farm.pipeline.boards.needs import RootCommand, root_commands
from farm.pipeline.lab import Lab

CHECK_LIMIT_S = 10.0
_USER = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,31}")
_HEAD = """\
# What farm runs as root on a board, and nothing else. Written by `farm boards sudoers`.
# On the board: sudo install -o root -m 0440 farm.sudoers /etc/sudoers.d/farm
"""


def sudoers_text(
    lab: Lab,
    boards: Sequence[Board],
    *,
    with_reboot: bool = False,
    with_fan: bool = False,
    with_kernel_log: bool = False,
) -> str:
    """The file for these boards: a section for each user and set of commands.

    Raises ConfigError for a login name that sudoers cannot hold as it is.
    """
    groups: dict[tuple[str, tuple[RootCommand, ...]], list[str]] = {}
    for board in boards:
        needed = root_commands(
            lab.profiles[board.profile],
            with_reboot=with_reboot,
            with_fan=with_fan,
            with_kernel_log=with_kernel_log,
            with_telemetry=True,
        )
        commands = tuple(needed)
        groups.setdefault((board.user, commands), []).append(board.name)
    parts = [
        _section(number, user, commands, names)
        for number, ((user, commands), names) in enumerate(groups.items(), start=1)
    ]
    return _HEAD + "".join(parts)


def _section(
    number: int, user: str, commands: Sequence[RootCommand], boards: Sequence[str]
) -> str:
    title = f"\n# {', '.join(boards)}"
    if user == "root" or not commands:
        reason = "logged in as root" if user == "root" else "nothing runs as root there"
        return f"{title}: {reason}\n"
    if not _USER.fullmatch(user):
        raise ConfigError(f"{user!r} is no login name that can be put into a sudoers file")
    alias = f"FARM_{number}"
    listed = ", \\\n    ".join(command.text for command in commands)
    return (
        f"{title}\nCmnd_Alias {alias} = \\\n    {listed}\n"
        f"Defaults:{user} !requiretty\n{user} ALL = (root) NOPASSWD: {alias}\n"
    )


def check_sudoers(text: str) -> bool:
    """Let ``visudo -c`` look at it; False where there is no visudo. Raises FarmError."""
    visudo = shutil.which("visudo", path="/usr/sbin:/sbin:/usr/local/sbin:/usr/bin")
    if visudo is None:
        return False
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "farm.sudoers")
        file.write_text(text, "utf-8")
        file.chmod(0o440)
        try:
            done = subprocess.run(
                [visudo, "-c", "-f", str(file)],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=CHECK_LIMIT_S,
                check=False,
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise FarmError(f"{visudo} could not check the file: {error}") from error
    if done.returncode != 0:
        said = " ".join((done.stdout + done.stderr).split())
        raise FarmError(f"visudo does not accept the file: {said}")
    return True
