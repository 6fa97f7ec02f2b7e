"""A run whose tables lie in PostgreSQL: its host is killed, and so is the database."""

import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from farm.store.database import open_store
from tests.night.test_full_disks import (
    let_go,
    read_until,
    run_until_held,
    writing_workspace,
)
from tests.night.test_kill_and_resume import SWEEP, kill_after, start
from tests.servers.postgres import PostgresServer, postgres_server
from tests.servers.sim_workspace import SimWorkspace, make_sim_workspace, sim_lab

KILLS = 3
pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[PostgresServer]:
    """All commands keep their results there."""
    with postgres_server() as server:
        monkeypatch.setenv("FARM_DATABASE_URL", server.url())
        yield server


def check_each_once(workspace: SimWorkspace, trials: int) -> None:
    results = workspace.results()
    assert len(results) == trials
    assert {one["state"] for one in results} == {"done"}
    assert {one["attempts"] for one in results} == {1}
    started = sorted(line.split(".", 1)[1] for line in workspace.counted())
    assert started == sorted(f"{one['trial']}-a1" for one in results)
    assert not (workspace.root / "results" / "farm.db").exists()


def test_kills_of_the_host_lose_and_repeat_nothing(tmp_path: Path, server: PostgresServer) -> None:
    chance = random.Random(os.environ.get("FARM_TEST_SEED", "20261130"))
    workspace = make_sim_workspace(tmp_path, boards=2)
    workspace.write_sweep("kill", SWEEP.replace("repeats: 7", "repeats: 1"))
    killed = 0
    with sim_lab(workspace):
        process = start(workspace, "run", "kill", "--plain")
        for _ in range(KILLS):
            text = kill_after(process, chance)
            assert "internal error" not in text, text
            killed += process.returncode == -signal.SIGKILL
            process = start(workspace, "resume", "last", "--plain")
        text, _ = process.communicate(timeout=120)
        assert process.returncode == 0, text
        check_each_once(workspace, 2 * 8)
    assert killed >= KILLS - 2, "the run was over before it was killed"


def test_a_crash_of_the_database_is_outlived(tmp_path: Path, server: PostgresServer) -> None:
    workspace = writing_workspace(tmp_path, 2, "1")
    with sim_lab(workspace):
        with run_until_held(workspace) as process:
            server.kill()
            let_go(workspace)
            text = read_until(process, "store waits")
            assert "waiting for the database" in text
            text = workspace.farm("results", "last", status=1)
            assert "Is the database up" in text
            assert "Traceback" not in text
            server.start()
            assert process.stdout is not None
            text = process.stdout.read()
            assert process.wait(timeout=60) == 0, text
        assert "store back" in text
        check_each_once(workspace, 8)
    with open_store(workspace.root / "results", database_url=server.url()) as store:
        told = [event.kind for event in store.events(store.find_run("last"))]
    assert told.count("store_waits") == told.count("store_back") == 1
