"""Two hosts on one PostgreSQL never work on one run; a dead host's run may be taken over."""

import os
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import Connection, update

from farm.errors import RunHeldError
from farm.store import claims
from farm.store.database import Store, open_store
from farm.store.locks import Holder, this_process
from farm.store.schema import RUNS
from tests.store.builders import new_run

HERE = this_process()
ELSEWHERE = Holder("host-b", 77, "2026-11-30T22:15:03+00:00", "another-boot", 5, "aa")


@pytest.fixture
def hosts(postgres_database: str, tmp_path: Path) -> Iterator[tuple[Store, Store]]:
    """One database, two results folders: as two hosts have them."""
    with (
        open_store(tmp_path / "a", database_url=postgres_database) as one,
        open_store(tmp_path / "b", database_url=postgres_database) as two,
    ):
        yield one, two


def claim(store: Store, run_id: str, owner: Holder, silent_s: float = 0.0) -> None:
    """As if `owner` had taken the run, and beat `silent_s` ago."""

    def job(connection: Connection) -> None:
        beat = claims.database_now(connection) - timedelta(seconds=silent_s)
        values = {"claim_document": owner.to_json(), "heartbeat": beat}
        connection.execute(update(RUNS).where(RUNS.c.run_id == run_id).values(values))

    store._writer.write_now(job)


def test_another_host_is_refused_and_told_who_and_what_to_do(hosts: tuple[Store, Store]) -> None:
    one, two = hosts
    run_id = new_run(one)
    claim(one, run_id, ELSEWHERE)
    with pytest.raises(RunHeldError, match=r"process 77 on host-b since 2026.*on host-b"):  # noqa: SIM117
        with two.lock_run(run_id):
            pass
    assert two.run_holder(run_id) == ELSEWHERE


def test_a_process_of_this_host_is_refused_in_another_folder(hosts: tuple[Store, Store]) -> None:
    one, two = hosts
    run_id = new_run(one)
    with one.lock_run(run_id), pytest.raises(RunHeldError, match=f"process {os.getpid()} "):  # noqa: SIM117
        with two.lock_run(run_id):
            pass
    with two.lock_run(run_id) as owner:
        assert one.run_holder(run_id) == owner


@pytest.mark.parametrize(
    ("owner", "silent_s"),
    [(ELSEWHERE, claims.STALE_S + 1), (replace(HERE, started=HERE.started - 1), 0.0)],
    ids=["silent for long", "its process is gone"],
)
def test_a_dead_hosts_run_is_taken_over(
    hosts: tuple[Store, Store], owner: Holder, silent_s: float
) -> None:
    one, two = hosts
    run_id = new_run(one)
    claim(one, run_id, owner, silent_s)
    assert two.run_holder(run_id) is None
    assert two.last_holder(run_id) == owner
    with two.lock_run(run_id) as taker:
        two.beat(run_id, taker)
        assert one.run_holder(run_id) == taker


def test_who_was_replaced_learns_it_at_the_next_beat(hosts: tuple[Store, Store]) -> None:
    one, two = hosts
    run_id = new_run(one)
    with one.lock_run(run_id) as owner:
        one.beat(run_id, owner)
        claim(two, run_id, ELSEWHERE)
        with pytest.raises(RunHeldError, match="taken over by process 77 on host-b"):
            one.beat(run_id, owner)
    assert one.last_holder(run_id) == ELSEWHERE  # what is not ours is not given back


def test_in_a_folder_the_lock_alone_decides(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        run_id = new_run(store)
        claim(store, run_id, ELSEWHERE)  # of an earlier boot of this host, a moment ago
        assert store.run_holder(run_id) is None
        with store.lock_run(run_id) as owner:
            store.beat(run_id, owner)
