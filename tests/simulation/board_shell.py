"""Commands of a simulated board without a server, and boards of every Jetson family."""

import os
import signal
import subprocess
from pathlib import Path

from farm.config.builtin import builtin_folder
from farm.config.profiles import load_profiles
from farm.model.board import Board
from farm.model.profile import BoardProfile
from farm.simulation.board_root import boot_files, build_board_root

SHIPPED = load_profiles([builtin_folder("device_profiles")])
JETSONS = sorted(
    name
    for name, profile in SHIPPED.items()
    if profile.simulation is not None and profile.simulation.nvpmodel_conf is not None
)
"""The profiles of Jetsons that can be simulated."""


class BoardShell:
    """Runs commands with a board's environment, without a server."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._environment = {
            "HOME": f"{root}/home",
            "PATH": f"{root}/bin:/usr/bin:/bin",
            "FARM_ROOT": str(root),
        }

    def __call__(self, command: str) -> str:
        """Stdout of the command."""
        return self.full(command).stdout

    def full(self, command: str) -> "subprocess.CompletedProcess[str]":
        """The completed command."""
        return subprocess.run(
            ["/bin/sh", "-c", command],
            cwd=self.root / "home",
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def first_line(self, command: str) -> str:
        """The first line of a command that does not end by itself; it is ended then."""
        process = subprocess.Popen(
            ["/bin/sh", "-c", f"exec {command}"],
            cwd=self.root / "home",
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        with process:
            assert process.stdout is not None
            line = process.stdout.readline()
            os.killpg(process.pid, signal.SIGKILL)
        return line

    def file(self, path: str) -> str:
        """The text of a file of the board."""
        return (self.root / path).read_text().strip()

    def ask(self, command: str, answer: str | None) -> "subprocess.CompletedProcess[str]":
        """Run a command that may ask; None closes its stdin. Stdout and stderr come as one."""
        script = command if answer is not None else f"{command} <&-"
        return subprocess.run(
            ["/bin/sh", "-c", script],
            cwd=self.root / "home",
            env=self._environment,
            input=answer or "",
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
            check=False,
        )


def boot_board(board: Board, root: Path, profile: BoardProfile) -> BoardShell:
    """Make a board's root and boot it once."""
    build_board_root(root, board, profile)
    boot_files(root, profile, "boot-1")
    return BoardShell(root)
