"""`farm boards exec` as the product does it, but for the pace of connecting."""

import asyncio
import io
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from benchmarks.lab import Fleet
from benchmarks.turns import Client
from farm.cli.board_answers import chosen_boards
from farm.cli.board_commands import _show, _summarise
from farm.pipeline.boards.execute import execute

# starts_per_s spares real boards and networks; the peers have no such bound
_HEAD = """\
defaults: {{profile: generic-linux, user: {user}, port: {port}, identity_file: {folder}/client_key,
  known_hosts: {folder}/known_hosts}}
limits: {{connecting: 32, starts_per_s: 100000}}
boards:
"""


def write_inventory(fleet: Fleet) -> Path:
    """A workspace with the fleet as boards."""
    folder = fleet.folder / "workspace"
    folder.mkdir(exist_ok=True)
    head = _HEAD.format(user=fleet.user, port=fleet.port, folder=fleet.folder)
    boards = [f"  b{number}: {{host: {host}}}\n" for number, host in enumerate(fleet.hosts)]
    (folder / "inventory.yaml").write_text(head + "".join(boards))
    return folder


class Exec(Client):
    """What the command does once it is loaded: connect, run, tell each line, sum up."""

    command = ("true",)

    def setup(self) -> None:
        self.lab, self.boards = chosen_boards(write_inventory(self.fleet), ["all"])
        self.loop = asyncio.new_event_loop()

    def run(self) -> None:
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            answers = self.loop.run_until_complete(
                execute(self.lab, self.boards, self.command, _show, timeout_s=60)
            )
            _summarise(answers)
        if f"exit 0: {len(self.boards)} of {len(self.boards)}" not in err.getvalue():
            raise RuntimeError(err.getvalue()[:500])

    def close(self) -> None:
        self.loop.close()
