"""Plans, records and traces for the store's tests."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

from farm.model.attempt import AttemptRecord, FileRecord, Outcome, TrialState
from farm.model.measurement import Measurement, PowerResult, Reason, Verdict, VerdictStatus
from farm.model.plan import Cell, Lane, Plan, Trial
from farm.model.power_mode import AppliedPowerMode, PowerModeState
from farm.model.record import Source
from farm.model.sweep import PayloadAxes, Sweep
from farm.store.database import Store
from farm.store.journal import StoreJournal

T = TypeVar("T")

NOW = datetime(2026, 11, 30, 22, 15, 3, 250_000, tzinfo=UTC)
VALID = Verdict(status=VerdictStatus.VALID)
INVALID = Verdict(
    status=VerdictStatus.INVALID, reasons=(Reason(code="short_window", text="3 s of 60 s"),)
)


def make_plan(trials: int = 4, boards: int = 2, name: str = "night") -> Plan:
    """`trials` a board: cells of two repeats."""
    lanes = []
    for number in range(boards):
        board = f"board-{number}"
        placed = []
        for index in range(trials):
            cell = Cell(
                cell_id=f"c{number:02}{index // 2:06}",
                target=board,
                is_any=False,
                profile="jetson-tx2",
                payload="matmul",
                payload_digest="ab" * 32,
                level=1,
                power_mode="MAXN",
                clocks="locked",
                parameters={"batch": index // 2 + 1, "precision": "fp16", "x": 1.0},
                priority=-1,
            )
            repeat = index % 2 + 1
            placed.append(Trial(f"{cell.cell_id}-r{repeat:02}", cell, repeat, board))
        lanes.append(Lane(board, "jetson-tx2", "meter-1", tuple(placed), 1, 0, 60.5 * trials))
    sweep = Sweep(name=name, payloads=(PayloadAxes(payload="matmul", axes={"batch": (1, 2)}),))
    return Plan(sweep, "cd" * 32, tuple(lanes), 60.5 * trials, ("board-9: no such mode",))


def new_run(store: Store, plan: Plan | None = None) -> str:
    return store.create_run(
        plan or make_plan(), inventory_digest="0123456789abcdef", tool_version="0.1", created=NOW
    )


def make_record(
    run_id: str,
    trial_id: str = "c00000000-r01",
    number: int = 1,
    *,
    board: str = "board-0",
    outcome: Outcome = Outcome.OK,
    verdict: Verdict = VALID,
    metrics: Mapping[str, Measurement] | None = None,
    power: PowerResult | None = None,
    files: tuple[FileRecord, ...] = (),
    reason: str = "",
) -> AttemptRecord:
    mode = AppliedPowerMode(
        asked="maxn", name="MAXN", id=0, read_back=PowerModeState(name="MAXN", id=0)
    )
    return AttemptRecord(
        attempt_id=f"{trial_id}-a{number}",
        trial_id=trial_id,
        run_id=run_id,
        board=board,
        number=number,
        outcome=outcome,
        reason=reason,
        source=Source.SIMULATED,
        started=NOW,
        ended=NOW + timedelta(seconds=61),
        payload="matmul",
        payload_digest="ab" * 32,
        parameters={"batch": 1, "precision": "fp16", "x": 1.0},
        power_mode=mode,
        metrics={"rate": Measurement(value=57.9, unit="images/s")} if metrics is None else metrics,
        power=power,
        verdict=verdict,
        files=files,
        tool_version="0.1",
    )


async def run_attempt(
    journal: StoreJournal,
    record: AttemptRecord,
    state: TrialState = TrialState.DONE,
) -> Path:
    folder = await journal.begin_attempt(
        record.attempt_id, record.trial_id, record.board, record.number, record.started
    )
    await journal.finish_attempt(record, state, None)
    return folder


def with_journal(store: Store, run_id: str, work: Callable[[StoreJournal], Awaitable[T]]) -> T:
    """Run `work` with the run's journal to its end, from a test without a loop."""

    async def run() -> T:
        journal = store.journal(run_id)
        try:
            return await work(journal)
        finally:
            await journal.close()

    return asyncio.run(run())
