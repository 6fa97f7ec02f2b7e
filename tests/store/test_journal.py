"""The journal: durable, idempotent, strict."""

import asyncio
import hashlib
import json
import math
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest
from sqlalchemy import select
from sqlalchemy.event import listen

from farm.errors import StoreError
from farm.interfaces.sinks import OpenAttempt, RunEvent, TrialProgress
from farm.model.attempt import FileRecord, Outcome, TrialState
from farm.model.measurement import Measurement
from farm.model.trace import MeterReading, PowerTrace
from farm.store.database import Store, open_store
from farm.store.journal import StoreJournal
from farm.store.schema import MEASUREMENTS
from farm.store.traces import TraceAnchor, TraceLog, host_boot_id, read_parquet
from tests.store.builders import INVALID, NOW, make_plan, make_record, new_run, run_attempt

TRIAL = "c00000000-r01"


@pytest.fixture
def run_id(store: Store) -> str:
    return new_run(store)


@pytest.fixture
async def journal(store: Store, run_id: str) -> AsyncIterator[StoreJournal]:
    journal = store.journal(run_id)
    yield journal
    await journal.close()


async def begin(journal: StoreJournal, trial: str = TRIAL, number: int = 1) -> Path:
    return await journal.begin_attempt(f"{trial}-a{number}", trial, "board-0", number, NOW)


async def eventually(holds: Callable[[], bool]) -> None:
    for _ in range(1000):
        if holds():
            return
        await asyncio.sleep(0.02)
    raise AssertionError("it did not come true")


async def test_begin_is_seen_by_another_process(
    reopen: Callable[[], Store], store: Store, run_id: str, journal: StoreJournal
) -> None:
    folder = await begin(journal)
    assert folder == store.results_folder / "runs" / run_id / "attempts" / f"{TRIAL}-a1"
    assert not folder.exists()
    other = reopen()
    assert other.progress(run_id)[TRIAL] == TrialProgress(TRIAL, TrialState.RUNNING, 1)
    assert other.attempts(run_id) == []
    opened = [OpenAttempt(f"{TRIAL}-a1", TRIAL, "board-0", 1, NOW)]
    assert await journal.open_attempts() == opened


async def test_finish_is_seen_by_another_process(
    reopen: Callable[[], Store], run_id: str, journal: StoreJournal
) -> None:
    record = make_record(run_id)
    await run_attempt(journal, record)
    other = reopen()
    assert other.progress(run_id)[TRIAL] == TrialProgress(TRIAL, TrialState.DONE, 1)
    assert other.attempts(run_id) == [record]
    assert await journal.open_attempts() == []


async def test_attempts_come_by_trial_and_number(
    store: Store, run_id: str, journal: StoreJournal
) -> None:
    second = make_record(run_id, "c00000000-r02")
    await run_attempt(journal, second)
    records = [make_record(run_id, number=n, reason=f"try {n}") for n in (1, 2, 10)]
    for record in records:
        await run_attempt(journal, record)
    assert store.attempts(run_id) == [*records, second]
    assert store.attempts(run_id, "c00000000-r02") == [second]
    assert store.attempts(run_id, "nope") == []
    assert store.progress(run_id)[TRIAL].attempts == 10


async def test_finishing_twice(store: Store, run_id: str, journal: StoreJournal) -> None:
    record = make_record(run_id)
    folder = await run_attempt(journal, record)
    manifest = (folder / "attempt.json").read_bytes()
    await journal.finish_attempt(record, TrialState.DONE, None)
    other = make_record(run_id, reason="something else")
    with pytest.raises(StoreError, match="finished before, with another record"):
        await journal.finish_attempt(other, TrialState.FAILED, None)
    assert store.attempts(run_id) == [record]
    assert store.progress(run_id)[TRIAL].state is TrialState.DONE
    assert (folder / "attempt.json").read_bytes() == manifest


async def test_beginning_twice(store: Store, run_id: str, journal: StoreJournal) -> None:
    await begin(journal)
    await begin(journal)
    assert store.progress(run_id)[TRIAL].attempts == 1
    with pytest.raises(StoreError, match="in the store already"):
        await journal.begin_attempt(f"{TRIAL}-a1", "c00000000-r02", "board-0", 1, NOW)
    with pytest.raises(StoreError):
        await journal.begin_attempt("other-id", TRIAL, "board-0", 1, NOW)
    await journal.finish_attempt(make_record(run_id), TrialState.DONE, None)
    with pytest.raises(StoreError, match="in the store already"):
        await begin(journal)


async def test_what_is_unknown_is_refused(
    store: Store, run_id: str, journal: StoreJournal
) -> None:
    with pytest.raises(StoreError, match="not in the plan"):
        await begin(journal, "nope-r01")
    with pytest.raises(StoreError, match="not in the plan"):
        await journal.set_trial_state("nope-r01", TrialState.SKIPPED, "")
    with pytest.raises(StoreError, match="never begun"):
        await journal.finish_attempt(make_record(run_id), TrialState.DONE, None)
    with pytest.raises(StoreError, match="belongs to run other"):
        await journal.finish_attempt(make_record("other"), TrialState.DONE, None)
    with pytest.raises(StoreError, match="folder's name"):
        await journal.begin_attempt("../x", TRIAL, "board-0", 1, NOW)
    with pytest.raises(StoreError):
        await journal.begin_attempt("x", TRIAL, "board-0", 1, NOW.replace(tzinfo=None))
    assert set(store.progress(run_id).values()) == {
        TrialProgress(trial.trial_id, TrialState.PENDING, 0) for trial in make_plan().trials
    }


async def test_a_refused_change_does_not_undo_its_neighbours(
    store: Store, run_id: str, journal: StoreJournal
) -> None:
    trials = [trial.trial_id for trial in make_plan().trials]
    outcomes = await asyncio.gather(
        *(begin(journal, trial) for trial in (*trials, "nope-r01", TRIAL)), return_exceptions=True
    )
    refused = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
    assert [type(error) for error in refused] == [StoreError]
    assert all(trial.state is TrialState.RUNNING for trial in store.progress(run_id).values())


@asynccontextmanager
async def held_writer(store: Store) -> AsyncIterator[None]:
    """The writer's thread stays in one change until the block ends."""
    entered, gate = threading.Event(), threading.Event()

    def job(connection: object) -> None:
        entered.set()
        gate.wait(30)

    held = asyncio.get_running_loop().run_in_executor(None, store._writer.write_now, job)
    await eventually(entered.is_set)
    try:
        yield
    finally:
        gate.set()
        await held


async def test_what_waits_is_committed_together(store: Store, journal: StoreJournal) -> None:
    commits = 0

    def count(connection: object) -> None:
        nonlocal commits
        commits += 1

    async with held_writer(store):
        waiting = [asyncio.create_task(begin(journal, t.trial_id)) for t in make_plan().trials]
        await eventually(lambda: len(store._writer._tickets) == len(waiting))
        listen(store._database.engine, "commit", count)
    await asyncio.gather(*waiting)
    assert commits == 2  # the one that was held, and one for all others


async def test_a_cancelled_caller_does_not_undo_the_change(
    store: Store, run_id: str, journal: StoreJournal
) -> None:
    async with held_writer(store):
        task = asyncio.create_task(begin(journal))
        await eventually(lambda: len(store._writer._tickets) == 1)
        task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await journal.flush()
    assert store.progress(run_id)[TRIAL].state is TrialState.RUNNING


async def test_a_trial_without_an_attempt(
    store: Store, run_id: str, journal: StoreJournal
) -> None:
    await journal.set_trial_state(TRIAL, TrialState.UNSUPPORTED, "no such mode\0")
    assert store.progress(run_id)[TRIAL] == TrialProgress(TRIAL, TrialState.UNSUPPORTED, 0)
    assert store.results(run_id)[0].reason == "no such mode\N{REPLACEMENT CHARACTER}"


async def test_measurements_are_rows(store: Store, run_id: str, journal: StoreJournal) -> None:
    metrics = {
        "rate": Measurement(value=57.9, unit="images/s", window="measured"),
        "broken": Measurement(value=math.nan, unit="s", scope="attempt"),
    }
    await run_attempt(journal, make_record(run_id, metrics=metrics))
    with store._database.reading() as connection:
        rows = connection.execute(select(MEASUREMENTS).order_by(MEASUREMENTS.c.name)).all()
    assert [tuple(row)[1:] for row in rows] == [
        (f"{TRIAL}-a1", "broken", None, "s", "attempt", None),
        (f"{TRIAL}-a1", "rate", 57.9, "images/s", "window", "measured"),
    ]


async def test_hostile_text_is_stored(store: Store, run_id: str, journal: StoreJournal) -> None:
    long = "n" * 300
    metrics = {
        "a\0b": Measurement(value=math.inf, unit="\ud800"),
        f"{long}1": Measurement(value=1, unit="u"),
        f"{long}2": Measurement(value=2, unit="u"),
    }
    reason = "'); DROP TABLE trials; -- \0 \ud800 \N{SNOWMAN}"
    record = make_record(
        run_id, metrics=metrics, reason=reason, outcome=Outcome.FAILED, verdict=INVALID
    )
    await run_attempt(journal, record, TrialState.FAILED)
    await journal.finish_attempt(record, TrialState.FAILED, None)
    journal.record(
        RunEvent(NOW, "note\0", text=reason, data={"t": "\ud800\0", "when": NOW, "n": math.nan})
    )
    await journal.flush()
    stored = store.attempts(run_id)[0]
    assert stored.reason == reason.replace("\ud800", "?")
    assert stored.metrics["a\0b"].value == math.inf
    event = store.events(run_id)[0]
    assert event.text == reason.replace("\ud800", "?").replace("\0", "\N{REPLACEMENT CHARACTER}")
    assert event.data["t"] == "?\0"
    assert event.data["when"] == str(NOW)


async def test_events(store: Store, run_id: str, journal: StoreJournal) -> None:
    other = store.journal(new_run(store))
    events = [
        RunEvent(NOW, kind, "board-0", TRIAL, f"{TRIAL}-a1", f"step {number}", {"n": [number]})
        for number, kind in enumerate(("connected", "mode_set", "connected"))
    ]
    for event in events:
        journal.record(event)
        other.record(event)
    await other.close()
    found = store.events(run_id)
    assert [one.text for one in found] == [one.text for one in events]
    assert (found[1].time, found[1].kind, found[1].data) == (NOW, "mode_set", {"n": [1]})
    assert [one.text for one in store.events(run_id, kinds=["connected"])] == ["step 0", "step 2"]
    assert [one.text for one in store.events(run_id, limit=1)] == ["step 0"]
    assert store.events(run_id, after=found[1].number) == found[2:]


async def test_events_are_written_without_a_change(
    store: Store, run_id: str, journal: StoreJournal
) -> None:
    journal.record(RunEvent(NOW, "note", text="alone"))
    await eventually(lambda: len(store.events(run_id)) == 1)


async def test_closing_writes_the_last_events(store: Store, run_id: str) -> None:
    journal = store.journal(run_id)
    journal.record(RunEvent(NOW, "note", text="last"))
    await journal.close()
    await journal.close()
    assert [event.text for event in store.events(run_id)] == ["last"]


async def test_the_manifest_has_hashes(run_id: str, journal: StoreJournal) -> None:
    folder = await begin(journal)
    (folder / "artifacts").mkdir(parents=True)
    data = {"stdout.log": b"hello\n", "artifacts/a.bin": b"\0" * 5000}
    for name, content in data.items():
        (folder / name).write_bytes(content)
    (folder / "link").symlink_to("/etc/passwd")
    told = tuple(
        FileRecord(path=n, size=len(c), sha256=hashlib.sha256(c).hexdigest(), cut_bytes=7)
        for n, c in data.items()
    )
    record = make_record(run_id, files=told)
    await journal.finish_attempt(record, TrialState.DONE, power_trace())
    manifest = json.loads((folder / "attempt.json").read_text("utf-8"))
    assert manifest["record"] == json.loads(record.model_dump_json())
    files = {entry["path"]: entry for entry in manifest["files"]}
    assert sorted(files) == ["artifacts/a.bin", "power.parquet", "stdout.log"]
    assert files["stdout.log"] == told[0].model_dump()
    parquet = (folder / "power.parquet").read_bytes()
    assert files["power.parquet"]["sha256"] == hashlib.sha256(parquet).hexdigest()
    assert not list(folder.rglob("*.part"))


@pytest.mark.parametrize("content", [None, b"hellO\n"])
async def test_files_that_did_not_arrive_are_no_finish(
    store: Store, run_id: str, journal: StoreJournal, content: bytes | None
) -> None:
    folder = await begin(journal)
    folder.mkdir(parents=True)
    if content is not None:
        (folder / "stdout.log").write_bytes(content)
    told = FileRecord(path="stdout.log", size=6, sha256=hashlib.sha256(b"hello\n").hexdigest())
    record = make_record(run_id, files=(told,))
    with pytest.raises(StoreError, match=r"stdout\.log: (missing|not what the board sent)"):
        await journal.finish_attempt(record, TrialState.DONE, None)
    assert store.attempts(run_id) == []
    assert store.progress(run_id)[TRIAL].state is TrialState.RUNNING
    (folder / "stdout.log").write_bytes(b"hello\n")
    await journal.finish_attempt(record, TrialState.DONE, None)
    assert store.attempts(run_id) == [record]


def power_trace() -> PowerTrace:
    trace = PowerTrace("meter-1")
    for second in range(5):
        trace.append(MeterReading(second, second + 0.01, 10.0 + second))
    return trace


async def test_the_trace_becomes_parquet(store: Store, run_id: str, journal: StoreJournal) -> None:
    folder = await begin(journal)
    folder.mkdir(parents=True)
    log = folder / "power.jsonl"
    with TraceLog(log, "meter-1") as lines:
        lines.append(MeterReading(1.0, 1.01, 99.0))
    running = store.read_trace(run_id, f"{TRIAL}-a1")
    assert running is not None
    assert list(running.power_w) == [99.0]
    await journal.finish_attempt(make_record(run_id), TrialState.DONE, power_trace())
    assert not log.exists()
    trace, anchor = read_parquet(folder / "power.parquet")
    assert anchor.boot_id == host_boot_id()
    read = store.read_trace(run_id, f"{TRIAL}-a1")
    assert read is not None
    assert (read.t_s, read.power_w) == (trace.t_s, trace.power_w)
    assert list(trace.power_w) == [10.0, 11.0, 12.0, 13.0, 14.0]
    assert store.read_trace(run_id, "nope-a1") is None


async def test_a_killed_hosts_samples_become_the_trace(
    store: Store, run_id: str, journal: StoreJournal
) -> None:
    folder = await begin(journal)
    folder.mkdir(parents=True)
    anchor = TraceAnchor("earlier-boot", 1000.0, NOW)
    with TraceLog(folder / "power.jsonl", "meter-1", anchor) as lines:
        lines.append(MeterReading(1001.0, 1001.01, 7.5))
    record = make_record(run_id, outcome=Outcome.LOST, verdict=INVALID)
    await journal.finish_attempt(record, TrialState.PENDING, None)
    trace, found = read_parquet(folder / "power.parquet")
    assert found == anchor
    assert (trace.meter, list(trace.power_w)) == ("meter-1", [7.5])
    assert store.progress(run_id)[TRIAL] == TrialProgress(TRIAL, TrialState.PENDING, 1)


async def test_samples_of_an_earlier_boot_are_kept_beside(
    run_id: str, journal: StoreJournal
) -> None:
    folder = await begin(journal)
    folder.mkdir(parents=True)
    with TraceLog(folder / "power.jsonl", "m", TraceAnchor("earlier-boot", 1000.0, NOW)) as lines:
        lines.append(MeterReading(1001.0, 1001.01, 7.5))
    await journal.finish_attempt(make_record(run_id), TrialState.DONE, power_trace())
    assert b"1001.01, 7.5" in (folder / "power-earlier-boot.jsonl").read_bytes()


async def test_a_lock_is_waited_for_and_then_told(tmp_path: Path) -> None:
    with open_store(tmp_path, busy_timeout_s=0.05) as store:
        journal = store.journal(new_run(store))
        with closing(sqlite3.connect(tmp_path / "farm.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(StoreError, match="another process keeps the database locked"):
                await begin(journal)
            other.execute("ROLLBACK")
        await begin(journal)
        await journal.close()


async def test_reading_while_writing(
    reopen: Callable[[], Store], store: Store, run_id: str, journal: StoreJournal
) -> None:
    """A reader sees each trial either running and open, or done with its record."""
    other = reopen()
    is_over = threading.Event()

    def read() -> int:
        seen = 0
        while not is_over.is_set():
            results = other.results(run_id)
            assert len(results) == 8
            assert all((r.outcome is not None) == (r.state is TrialState.DONE) for r in results)
            seen += 1
        return seen

    reading = asyncio.get_running_loop().run_in_executor(None, read)
    try:
        for trial in make_plan().trials:
            record = make_record(run_id, trial.trial_id, board=trial.board)
            await run_attempt(journal, record)
    finally:
        is_over.set()
        assert await reading > 0
    assert other.run(run_id).counts == {TrialState.DONE: 8}
