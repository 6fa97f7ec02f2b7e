"""`farm notify test`."""

import json
from pathlib import Path

from tests.cli.lab_files import INVENTORY, farm, make_workspace


def test_nothing_is_said_where_nobody_is_told(tmp_path: Path) -> None:
    answer = farm("notify", "test", "-w", make_workspace(tmp_path / "w"))
    assert (answer.code, "nobody is told" in answer.out) == (0, True)


def test_what_works_and_what_does_not(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path / "w")
    notify = "notify:\n  - {kind: command, command: ['true'], timeout_s: 100}\n"
    notify += "  - {kind: command, command: ['false'], timeout_s: 100}\n"
    (workspace / "inventory.yaml").write_text(INVENTORY + notify)
    answer = farm("notify", "test", "-w", workspace)
    assert (answer.code, answer.out) == (1, "notify 1 (command): sent\n")
    assert answer.err == "notify 2 (command): false: exit status 1\n"
    answer = farm("notify", "test", "-w", workspace, "--json")
    assert [one["is_sent"] for one in json.loads(answer.out)] == [True, False]
    assert answer.code == 1
