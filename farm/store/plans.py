"""A plan as rows, and back: what was stored is what is loaded, field by field."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Literal, cast

from pydantic import TypeAdapter
from sqlalchemy import Connection, Row, func, insert, select

from farm.errors import StoreError
from farm.interfaces.sinks import TrialProgress
from farm.model.attempt import TrialState
from farm.model.plan import Cell, Lane, Plan, Trial
from farm.model.record import Scalar
from farm.model.sweep import Sweep
from farm.store.documents import document, read_document, to_text
from farm.store.schema import CELLS, LANES, RUNS, TRIALS

_PARAMETERS = TypeAdapter(dict[str, Scalar])
_SKIPPED = TypeAdapter(tuple[str, ...])
_UNDECIDED = (TrialState.PENDING.value, TrialState.RUNNING.value)
_MOST_NAMED = 500  # SQLite takes some thousand parameters; beyond, all cells are read
_BATCH = 5_000  # rows a statement: a night of 100,000 trials never lies twice in memory


def insert_plan(
    connection: Connection,
    plan: Plan,
    *,
    run_id: str,
    inventory_digest: str,
    tool_version: str,
    created: datetime,
    left_out: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Write a run with its whole plan. Raises StoreError for a plan with two of one id.

    `left_out`: trials that are skipped from the start, and why.
    """
    cells = _distinct_cells(plan)
    found = connection.execute(
        insert(RUNS).values(
            run_id=run_id,
            sweep=plan.sweep.name,
            state="running",
            created=created,
            heartbeat=created,
            tool_version=tool_version,
            inventory_digest=inventory_digest,
            plan_digest=plan.digest,
            estimate_s=plan.estimate_s,
            sweep_document=document(plan.sweep),
            skipped_document=to_text(list(plan.skipped)),
        )
    ).inserted_primary_key
    if found is None:
        raise StoreError(f"{run_id}: the database gave the run no number")
    run_key = int(found[0])
    for table, rows in (
        (LANES, _lane_rows(run_key, plan)),
        (CELLS, (_cell_row(run_key, cell) for cell in cells.values())),
        (TRIALS, _trial_rows(run_key, plan, left_out)),
    ):
        for batch in _batches(rows):
            connection.execute(insert(table), batch)


@dataclass(frozen=True, slots=True)
class Rest:
    """What is left of a run: a plan of the trials that are not decided, and how those stand.

    `decided` counts the others of each lane's board, and how many of them failed. The lanes are
    all there; their estimates are cut to their share.
    """

    plan: Plan
    known: Mapping[str, TrialProgress]
    decided: Mapping[str, tuple[int, int]]


def read_plan(connection: Connection, run_key: int) -> Plan:
    """The plan of a run, with one object a cell, as the planner makes it."""
    cells = read_cells(connection, run_key)
    trials: dict[int, list[Trial]] = {}
    rows = connection.execute(
        select(TRIALS.c.lane, TRIALS.c.trial_id, TRIALS.c.cell_id, TRIALS.c.repeat, TRIALS.c.board)
        .where(TRIALS.c.run_key == run_key)
        .order_by(TRIALS.c.position)
    )
    for lane, trial_id, cell_id, repeat, board in rows:
        trials.setdefault(lane, []).append(Trial(trial_id, cells[cell_id], repeat, board))
    return _plan(connection, run_key, trials, {})


def read_rest(connection: Connection, run_key: int, *, is_counted: bool = True) -> Rest:
    """What is left of a run. Its cost goes with that, but for one count of all trials.

    Without it nothing is known of the decided ones, and the lanes' estimates are whole.
    """
    is_open = (TRIALS.c.run_key == run_key) & TRIALS.c.state.in_(_UNDECIDED)
    rows = connection.execute(select(TRIALS).where(is_open).order_by(TRIALS.c.position)).all()
    cells = read_cells(connection, run_key, [row.cell_id for row in rows])
    trials: dict[int, list[Trial]] = {}
    known = {}
    for row in rows:
        trial = Trial(row.trial_id, cells[row.cell_id], row.repeat, row.board)
        trials.setdefault(row.lane, []).append(trial)
        state = TrialState(row.state)
        known[row.trial_id] = TrialProgress(row.trial_id, state, row.attempts)
    decided = _decided(connection, run_key) if is_counted else {}
    plan = _plan(connection, run_key, trials, decided)
    boards = {plan.lanes[lane].board: counts for lane, counts in decided.items()}
    return Rest(plan, known, boards)


def _decided(connection: Connection, run_key: int) -> dict[int, tuple[int, int]]:
    """By lane: how many trials are decided, and how many of them failed."""
    decided: dict[int, tuple[int, int]] = {}
    for lane, state, count in connection.execute(
        select(TRIALS.c.lane, TRIALS.c.state, func.count())
        .where(TRIALS.c.run_key == run_key)
        .group_by(TRIALS.c.lane, TRIALS.c.state)
    ):
        if state not in _UNDECIDED:
            ended, failed = decided.get(lane, (0, 0))
            bad = count if state == TrialState.FAILED.value else 0
            decided[lane] = ended + count, failed + bad
    return decided


def _plan(
    connection: Connection,
    run_key: int,
    trials: Mapping[int, list[Trial]],
    decided: Mapping[int, tuple[int, int]],
) -> Plan:
    """The plan with these trials by lane; `decided` are those of the lane that are not there."""
    run = connection.execute(select(RUNS).where(RUNS.c.key == run_key)).one()
    rows = connection.execute(
        select(LANES).where(LANES.c.run_key == run_key).order_by(LANES.c.lane)
    )
    lanes = []
    for row in rows:
        found = tuple(trials.get(row.lane, ()))
        whole = len(found) + decided.get(row.lane, (0, 0))[0]
        estimate_s = row.estimate_s if len(found) == whole else row.estimate_s * len(found) / whole
        lanes.append(
            Lane(
                board=row.board,
                profile=row.profile,
                meter=row.meter,
                trials=found,
                mode_changes=row.mode_changes,
                reboots=row.reboots,
                estimate_s=estimate_s,
            )
        )
    return Plan(
        sweep=read_document(Sweep, run.sweep_document),
        digest=run.plan_digest,
        lanes=tuple(lanes),
        estimate_s=run.estimate_s,
        skipped=_SKIPPED.validate_json(run.skipped_document),
    )


def read_cells(
    connection: Connection, run_key: int, only: Sequence[str] | None = None
) -> dict[str, Cell]:
    """The cells of a run by id; `only` some of them, if few are given."""
    query = select(CELLS).where(CELLS.c.run_key == run_key)
    if only is not None and len(only) <= _MOST_NAMED:
        query = query.where(CELLS.c.cell_id.in_(set(only)))
    return {row.cell_id: _cell(row) for row in connection.execute(query)}


def _cell(row: Row[tuple[object, ...]]) -> Cell:
    return Cell(
        cell_id=row.cell_id,
        target=row.target,
        is_any=row.is_any,
        profile=row.profile,
        payload=row.payload,
        payload_digest=row.payload_digest,
        level=row.level,
        power_mode=row.power_mode,
        clocks=cast(Literal["default", "locked"], row.clocks),
        parameters=_PARAMETERS.validate_json(row.parameters_document),
        priority=row.priority,
    )


def _distinct_cells(plan: Plan) -> Mapping[str, Cell]:
    cells: dict[str, Cell] = {}
    for trial in plan.trials:
        cell = cells.setdefault(trial.cell.cell_id, trial.cell)
        if cell is not trial.cell and cell != trial.cell:
            raise StoreError(f"cell {cell.cell_id} stands for two different things in the plan")
    return cells


def _lane_rows(run_key: int, plan: Plan) -> Iterator[dict[str, object]]:
    for number, lane in enumerate(plan.lanes):
        yield {
            "run_key": run_key,
            "lane": number,
            "board": lane.board,
            "profile": lane.profile,
            "meter": lane.meter,
            "mode_changes": lane.mode_changes,
            "reboots": lane.reboots,
            "estimate_s": lane.estimate_s,
        }


def _cell_row(run_key: int, cell: Cell) -> dict[str, object]:
    return {
        "run_key": run_key,
        "cell_id": cell.cell_id,
        "target": cell.target,
        "is_any": cell.is_any,
        "profile": cell.profile,
        "payload": cell.payload,
        "payload_digest": cell.payload_digest,
        "level": cell.level,
        "power_mode": cell.power_mode,
        "clocks": cell.clocks,
        "priority": cell.priority,
        "parameters_document": json.dumps(dict(cell.parameters)),
    }


def _trial_rows(
    run_key: int, plan: Plan, left_out: Mapping[str, str]
) -> Iterator[dict[str, object]]:
    position = 0
    for number, lane in enumerate(plan.lanes):
        for trial in lane.trials:
            reason = left_out.get(trial.trial_id)
            state = TrialState.PENDING if reason is None else TrialState.SKIPPED
            yield {
                "run_key": run_key,
                "trial_id": trial.trial_id,
                "lane": number,
                "position": position,
                "cell_id": trial.cell.cell_id,
                "repeat": trial.repeat,
                "board": trial.board,
                "state": state.value,
                "reason": reason or "",
                "attempts": 0,
            }
            position += 1


def _batches(rows: Iterator[dict[str, object]]) -> Iterator[list[dict[str, object]]]:
    batch: list[dict[str, object]] = []
    for row in rows:
        batch.append(row)
        if len(batch) == _BATCH:
            yield batch
            batch = []
    if batch:
        yield batch
