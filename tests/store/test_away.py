"""The database goes away in the middle: nothing acknowledged is lost, nothing is there twice."""

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Literal

import pytest

from farm.errors import StoreAwayError, StoreError
from farm.interfaces.sinks import RunEvent
from farm.model.attempt import TrialState
from farm.store.database import Store, open_store
from farm.store.engine import url_database
from tests.servers.cutting_proxy import CuttingProxy
from tests.servers.postgres import PostgresServer, postgres_server
from tests.store.builders import NOW, make_plan, make_record, new_run, run_attempt

LIMIT_S = 60.0

pytestmark = pytest.mark.timeout(300)  # it waits for servers, and for a busy machine
TRIALS = [trial.trial_id for trial in make_plan(trials=4, boards=1).trials]


class Told:
    """What the store says while it waits."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str]] = []
        self._came = asyncio.Event()

    def __call__(self, kind: str, text: str) -> None:
        self.lines.append((kind, text))
        self._came.set()

    async def wait(self, kind: str) -> None:
        async with asyncio.timeout(LIMIT_S):
            while kind not in [one for one, _ in self.lines]:
                self._came.clear()
                await self._came.wait()


@pytest.fixture
def proxy(postgres: PostgresServer) -> Iterator[CuttingProxy]:
    proxy = CuttingProxy(postgres.host, postgres.port)
    yield proxy
    proxy.close()


@pytest.fixture
def cut_store(
    postgres: PostgresServer, template: str, proxy: CuttingProxy, tmp_path: Path
) -> Iterator[Store]:
    """A store that is reached through the proxy."""
    name = postgres.new_database(template)
    with open_store(tmp_path / "results", database_url=postgres.url(name, proxy.port)) as store:
        yield store
    postgres.drop_database(name)


@pytest.fixture
def own_server() -> Iterator[PostgresServer]:
    """One that may be killed."""
    with postgres_server() as server:
        yield server


@pytest.mark.parametrize("when", ["before", "after"])
async def test_the_link_is_cut_at_each_commit(
    cut_store: Store, proxy: CuttingProxy, when: Literal["before", "after"]
) -> None:
    run_id = new_run(cut_store, make_plan(trials=4, boards=1))
    journal = cut_store.journal(run_id)
    told = Told()
    with cut_store.patience.granted(LIMIT_S, told, lambda: False):
        for trial in TRIALS:
            record = make_record(run_id, trial)
            proxy.cut_next = when
            journal.record(RunEvent(NOW, "note", text=f"begin {trial}"))
            await journal.begin_attempt(record.attempt_id, trial, record.board, 1, record.started)
            proxy.cut_next = when
            journal.record(RunEvent(NOW, "note", text=f"end {trial}"))
            await journal.finish_attempt(record, TrialState.DONE, None)
            proxy.cut_next = ""
        await journal.close()
    assert proxy.cuts == 2 * len(TRIALS)
    assert [record.trial_id for record in cut_store.attempts(run_id)] == TRIALS
    assert {one.state for one in cut_store.progress(run_id).values()} == {TrialState.DONE}
    assert {one.attempts for one in cut_store.progress(run_id).values()} == {1}
    noted = [event.text for event in cut_store.events(run_id, kinds=("note",))]
    assert noted == [f"{word} {trial}" for trial in TRIALS for word in ("begin", "end")]


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_run_whose_creation_is_cut_is_there_once(
    cut_store: Store, proxy: CuttingProxy, when: Literal["before", "after"]
) -> None:
    proxy.cut_next = when
    run_id = new_run(cut_store)
    assert proxy.cuts == 1
    assert [info.run_id for info in cut_store.runs()] == [run_id]


async def test_a_refusal_in_a_cut_transaction_is_told_to_who_is_refused(
    cut_store: Store, proxy: CuttingProxy
) -> None:
    run_id = new_run(cut_store, make_plan(trials=4, boards=1))
    journal = cut_store.journal(run_id)
    proxy.cut_next = "after"
    good, bad = await asyncio.gather(
        journal.set_trial_state(TRIALS[0], TrialState.SKIPPED, "x"),
        journal.set_trial_state("t-unknown", TrialState.SKIPPED, "x"),
        return_exceptions=True,
    )
    await journal.close()
    assert proxy.cuts == 1
    assert good is None
    assert isinstance(bad, StoreError)
    assert "not in the plan" in str(bad)
    assert cut_store.progress(run_id)[TRIALS[0]].state is TrialState.SKIPPED


async def test_a_killed_server_is_waited_for(own_server: PostgresServer, tmp_path: Path) -> None:
    told = Told()
    with open_store(tmp_path, database_url=own_server.url()) as store:
        run_id = new_run(store, make_plan(trials=4, boards=1))
        journal = store.journal(run_id)
        with store.patience.granted(LIMIT_S, told, lambda: False):
            await run_attempt(journal, make_record(run_id, TRIALS[0]))
            for trial in TRIALS[1:3]:
                told.lines.clear()
                own_server.kill()
                journal.record(RunEvent(NOW, "note", text=trial))
                record = make_record(run_id, trial)
                waiting = asyncio.create_task(run_attempt(journal, record))
                await told.wait("store_waits")
                assert not waiting.done()
                await asyncio.to_thread(own_server.start)
                await asyncio.wait_for(waiting, LIMIT_S)
                await told.wait("store_back")
                assert [kind for kind, _ in told.lines] == ["store_waits", "store_back"]
                assert told.lines[0][1].startswith("waiting for the database")
            await journal.close()
        assert [record.trial_id for record in store.attempts(run_id)] == TRIALS[:3]
        assert [event.text for event in store.events(run_id)] == TRIALS[1:3]


async def test_patience_ends_by_limit_by_stop_and_outside_of_a_run(
    own_server: PostgresServer, tmp_path: Path
) -> None:
    is_stopped = False
    with open_store(tmp_path, database_url=own_server.url()) as store:
        run_id = new_run(store, make_plan(trials=4, boards=1))
        journal = store.journal(run_id)
        own_server.kill()
        with pytest.raises(StoreAwayError, match="Is the database up"):
            await journal.set_trial_state(TRIALS[0], TrialState.SKIPPED, "x")
        with pytest.raises(StoreAwayError, match="Is the database up"):
            store.runs()
        with (
            store.patience.granted(1.0, Told(), lambda: False),
            pytest.raises(StoreAwayError, match=r"waited \d+ s \(limits: store_wait_s\)"),
        ):
            await journal.set_trial_state(TRIALS[1], TrialState.SKIPPED, "x")
        told = Told()
        with store.patience.granted(3600.0, told, lambda: is_stopped):
            own_server.start()
            await journal.set_trial_state(TRIALS[2], TrialState.SKIPPED, "x")
            own_server.kill()
            waiting = asyncio.create_task(
                journal.set_trial_state(TRIALS[3], TrialState.SKIPPED, "x")
            )
            await told.wait("store_waits")
            is_stopped = True
            with pytest.raises(StoreAwayError):
                await asyncio.wait_for(waiting, LIMIT_S)
        own_server.start()
        done = {t for t, one in store.progress(run_id).items() if one.state is TrialState.SKIPPED}
        assert done == {TRIALS[2]}
        await journal.close()


def test_a_reader_reads_and_is_told_that_it_may_not_write(
    postgres: PostgresServer, postgres_database: str, tmp_path: Path
) -> None:
    """The roles of docs/store.md."""
    with open_store(tmp_path, database_url=postgres_database) as store:
        run_id = new_run(store)
    name, role = postgres_database.rpartition("/")[2], "reader"
    postgres.run(f"CREATE ROLE {role} LOGIN")
    postgres.run(f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {role}", name)
    try:
        url = postgres_database.replace("postgres@", f"{role}@")
        with open_store(tmp_path, database_url=url, create=False) as store:
            assert [info.run_id for info in store.runs()] == [run_id]
            assert len(store.results(run_id)) == 8
            with pytest.raises(StoreError, match="This user may not do that"):
                store.set_run_state(run_id, "running")
    finally:
        postgres.run(f"DROP OWNED BY {role}", name)
        postgres.run(f"DROP ROLE {role}")


def test_half_open_links_are_noticed_by_the_kernel(postgres_database: str) -> None:
    def settings(url: str) -> dict[str, str]:
        with (
            closing(url_database(url)) as database,
            database.reading() as connection,
        ):
            found = connection.connection.driver_connection
            assert found is not None
            return dict(found.info.get_parameters())

    told = settings(postgres_database)
    assert told["tcp_user_timeout"] == "20000"
    assert told["keepalives_idle"] == "10"
    assert "statement_timeout" in told["options"]
    own = settings(postgres_database + "?tcp_user_timeout=5000")
    assert own["tcp_user_timeout"] == "5000"


HALF_OPEN = """
import asyncio, subprocess, sys
from pathlib import Path
from farm.store.database import open_store
from tests.servers.postgres import postgres_server
from tests.store.builders import make_plan, make_record, new_run, run_attempt
from tests.store.test_away import LIMIT_S, TRIALS, Told

def link(state):
    subprocess.run(["ip", "link", "set", "lo", state], check=True)

async def main(url, folder):
    told = Told()
    with open_store(folder, database_url=url) as store:
        run_id = new_run(store, make_plan(trials=4, boards=1))
        journal = store.journal(run_id)
        with store.patience.granted(LIMIT_S, told, lambda: False):
            await run_attempt(journal, make_record(run_id, TRIALS[0]))
            link("down")
            waiting = asyncio.create_task(run_attempt(journal, make_record(run_id, TRIALS[1])))
            await told.wait("store_waits")
            assert not waiting.done()
            link("up")
            await asyncio.wait_for(waiting, LIMIT_S)
            await journal.close()
        assert [record.trial_id for record in store.attempts(run_id)] == TRIALS[:2]
    print("done", told.lines)

link("up")
with postgres_server() as server:
    quick = "?tcp_user_timeout=1000&keepalives_idle=1&keepalives_interval=1&keepalives_count=1"
    asyncio.run(main(server.url() + quick + "&connect_timeout=2", Path(sys.argv[1])))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="a network of its own needs root")
def test_a_pulled_cable(postgres: PostgresServer, tmp_path: Path) -> None:
    """No packet comes through, and nobody says so."""
    if shutil.which("unshare") is None or shutil.which("ip") is None:
        pytest.skip("a network of its own needs unshare and ip")
    script = tmp_path / "half_open.py"
    script.write_text(HALF_OPEN)
    done = subprocess.run(
        ["unshare", "--net", sys.executable, str(script), str(tmp_path / "results")],
        capture_output=True,
        text=True,
        check=False,
        timeout=4 * LIMIT_S,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "waiting for the database" in done.stdout
