"""A killed writer and a full disk: what was acknowledged stays, nothing is half."""

import asyncio
import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from farm.errors import StoreError
from farm.interfaces.sinks import RunEvent
from farm.model.attempt import TrialState
from farm.store.database import open_store
from farm.store.journal import StoreJournal
from tests.store.builders import NOW, make_plan, make_record, new_run, run_attempt

WRITE = """
import asyncio, sys
from farm.model.attempt import TrialState
from farm.store.database import open_store
from tests.store.builders import make_plan, make_record

async def lane(journal, run_id, lane):
    for trial in lane.trials:
        record = make_record(run_id, trial.trial_id, board=trial.board)
        await journal.begin_attempt(
            record.attempt_id, trial.trial_id, trial.board, 1, record.started)
        print("begun", trial.trial_id, flush=True)
        await journal.finish_attempt(record, TrialState.DONE, None)
        print("done", trial.trial_id, flush=True)

async def main():
    with open_store(sys.argv[1], database_url=sys.argv[3] or None) as store:
        journal = store.journal(sys.argv[2])
        lanes = make_plan(trials=2000, boards=4).lanes
        await asyncio.gather(*(lane(journal, sys.argv[2], one) for one in lanes))

asyncio.run(main())
"""


def write_until_killed(results: Path, run_id: str, lines: int, url: str = "") -> list[list[str]]:
    """Run a writer, kill it after so many acknowledgements; all it acknowledged."""
    with subprocess.Popen(
        [sys.executable, "-c", WRITE, str(results), run_id, url],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    ) as process:
        assert process.stdout is not None
        told = [process.stdout.readline() for _ in range(lines)]
        process.kill()
        told += process.stdout.read().splitlines(keepends=True)
        process.wait()
    assert process.returncode == -9, "it ended by itself"
    return [line.split() for line in told if line.endswith("\n")]


def check_kept(results: Path, run_id: str, told: list[list[str]], url: str = "") -> None:
    with open_store(results, create=False, database_url=url or None) as store:
        progress = store.progress(run_id)
        records = {record.trial_id: record for record in store.attempts(run_id)}
        begun = {trial for word, trial in told if word == "begun"}
        done = {trial for word, trial in told if word == "done"}
        assert begun
        for trial in begun:
            assert progress[trial].state in (TrialState.RUNNING, TrialState.DONE)
        assert done <= set(records)
        for trial, state in progress.items():
            assert (trial in records) == (state.state is TrialState.DONE)
        for trial, record in records.items():
            assert record == make_record(run_id, trial, board=record.board)
            folder = store.attempt_folder(run_id, record.attempt_id)
            manifest = json.loads((folder / "attempt.json").read_text("utf-8"))
            assert manifest["record"]["attempt_id"] == record.attempt_id
        # It goes on: an attempt that the killed process left open is finished now.
        journal = store.journal(run_id)

        async def resume() -> None:
            for left in await journal.open_attempts():
                record = make_record(run_id, left.trial_id, board=left.board)
                await journal.finish_attempt(record, TrialState.DONE, None)
            assert await journal.open_attempts() == []
            await journal.close()

        asyncio.run(resume())


@pytest.mark.parametrize("seed", range(4))
def test_kill_at_a_random_point(tmp_path: Path, seed: int) -> None:
    with open_store(tmp_path) as store:
        run_id = new_run(store, make_plan(trials=2000, boards=4))
    lines = random.Random(seed).randrange(1, 120)
    check_kept(tmp_path, run_id, write_until_killed(tmp_path, run_id, lines))


def test_kill_on_postgresql(tmp_path: Path, postgres_database: str) -> None:
    with open_store(tmp_path, database_url=postgres_database) as store:
        run_id = new_run(store, make_plan(trials=2000, boards=4))
    told = write_until_killed(tmp_path, run_id, 50, postgres_database)
    check_kept(tmp_path, run_id, told, postgres_database)


CREATE = """
import sys
from farm.store.database import open_store
from tests.store.builders import make_plan, new_run
with open_store(sys.argv[1]) as store:
    plan = make_plan(trials=2000, boards=4)
    print("open", flush=True)
    while True:
        print(new_run(store, plan), flush=True)
"""


def test_kill_while_a_run_is_made(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", CREATE, str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    ) as process:
        assert process.stdout is not None
        told = [process.stdout.readline().strip() for _ in range(3)]
        process.kill()
        told += process.stdout.read().split()
        process.wait()
    with open_store(tmp_path, create=False) as store:
        known = [info.run_id for info in store.runs()]
        assert set(told[1:]) <= set(known)
        for info in store.runs():
            assert info.counts == {TrialState.PENDING: 8000}


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 2 MB."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("mounting a small file system needs root")
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "farm-test", str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode != 0:
        pytest.skip(f"mounting a small file system: {mounted.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(folder: Path) -> Path:
    path = folder / "ballast"
    with path.open("wb", buffering=0) as file:
        for size in (4096, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                continue
    return path


async def run_attempts(
    journal: StoreJournal, run_id: str, trials: list[str], done: list[str]
) -> None:
    """One after another; some fit yet, into pages that the WAL's file has already."""
    for trial in trials:
        await run_attempt(journal, make_record(run_id, trial))
        done.append(trial)


async def test_a_full_disk_is_told_and_outlived(small_disk: Path) -> None:
    with open_store(small_disk / "results") as store:
        run_id = new_run(store, make_plan(trials=100, boards=1))
        journal = store.journal(run_id)
        trials = [trial.trial_id for trial in make_plan(trials=100, boards=1).trials]
        await run_attempt(journal, make_record(run_id, trials[0]))
        ballast = fill(small_disk)
        done = [trials[0]]
        with pytest.raises(StoreError, match="the disk is full") as told:
            await run_attempts(journal, run_id, trials[1:], done)
        assert "farm resume" in str(told.value)
        journal.record(RunEvent(NOW, "note", text="while it was full"))
        assert [r.trial_id for r in store.attempts(run_id)] == done
        ballast.unlink()
        refused = trials[len(done)]
        await run_attempt(journal, make_record(run_id, refused))
        await journal.close()
        assert [r.trial_id for r in store.attempts(run_id)] == [*done, refused]
        assert [event.text for event in store.events(run_id)] == ["while it was full"]


async def test_a_full_disk_under_the_database_alone(small_disk: Path, tmp_path: Path) -> None:
    """Attempt folders have room, the database has none: the commit itself fails."""
    with open_store(small_disk) as store:
        (tmp_path / "runs").mkdir()
        (small_disk / "runs").symlink_to(tmp_path / "runs")
        run_id = new_run(store, make_plan(trials=500, boards=1))
        journal = store.journal(run_id)
        trials = [trial.trial_id for trial in make_plan(trials=500, boards=1).trials]
        ballast = fill(small_disk)
        done: list[str] = []
        with pytest.raises(StoreError, match="the disk is full"):
            await run_attempts(journal, run_id, trials, done)
        ballast.unlink()
        refused = trials[len(done)]
        await run_attempt(journal, make_record(run_id, refused))
        await journal.close()
        assert [r.trial_id for r in store.attempts(run_id)] == [*done, refused]
    with open_store(small_disk, create=False) as store:
        assert len(store.attempts(run_id)) == len(done) + 1
