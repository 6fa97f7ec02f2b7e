"""A run whose tables lie in PostgreSQL: its host is killed, and so is the database."""

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from farm.store.database import open_store
from tests.night.host_kills import SWEEP, check_each_once, run_with_kills
from tests.night.test_full_disks import (
    let_go,
    run_until_held,
    writing_workspace,
)
from tests.servers.postgres import PostgresServer, postgres_server
from tests.servers.printed import lines_until
from tests.servers.sim_workspace import SimWorkspace, make_sim_workspace, sim_lab

KILLS = 3
pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[PostgresServer]:
    """All commands keep their results there."""
    with postgres_server() as server:
        monkeypatch.setenv("FARM_DATABASE_URL", server.url())
        yield server


def check_all_stored(workspace: SimWorkspace, trials: int) -> None:
    """Each trial was done once, and nothing lies in a file instead."""
    check_each_once(workspace, trials)
    assert not (workspace.root / "results" / "farm.db").exists()


def test_kills_of_the_host_lose_and_repeat_nothing(tmp_path: Path, server: PostgresServer) -> None:
    chance = random.Random(os.environ.get("FARM_TEST_SEED", "20261130"))
    workspace = make_sim_workspace(tmp_path, boards=2)
    workspace.write_sweep("kill", SWEEP.replace("repeats: 7", "repeats: 1"))
    with sim_lab(workspace):
        killed = run_with_kills(workspace, KILLS, chance, timeout_s=120)
        check_all_stored(workspace, 2 * 8)
    assert killed >= KILLS - 2, "the run was over before it was killed"


def test_a_crash_of_the_database_is_outlived(tmp_path: Path, server: PostgresServer) -> None:
    workspace = writing_workspace(tmp_path, 2, "1")
    with sim_lab(workspace):
        with run_until_held(workspace) as process:
            server.kill()
            let_go(workspace)
            text = lines_until(process, "store waits")
            assert "waiting for the database" in text
            text = workspace.farm("results", "last", status=1)
            assert "Is the database up" in text
            assert "Traceback" not in text
            server.start()
            assert process.stdout is not None
            text = process.stdout.read()
            assert process.wait(timeout=60) == 0, text
        assert "store back" in text
        check_all_stored(workspace, 8)
    with open_store(workspace.root / "results", database_url=server.url()) as store:
        told = [event.kind for event in store.events(store.find_run("last"))]
    assert told.count("store_waits") == told.count("store_back") == 1
