"""A plan as rows, and back: what was stored is what is loaded, field by field."""

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Literal, cast

from pydantic import TypeAdapter
from sqlalchemy import Connection, Row, insert, select

from farm.errors import StoreError
from farm.model.attempt import TrialState
from farm.model.plan import Cell, Lane, Plan, Trial
from farm.model.record import Scalar
from farm.model.sweep import Sweep
from farm.store.documents import document, read_document, to_text
from farm.store.schema import CELLS, LANES, RUNS, TRIALS

_PARAMETERS = TypeAdapter(dict[str, Scalar])
_SKIPPED = TypeAdapter(tuple[str, ...])
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


def read_plan(connection: Connection, run_key: int) -> Plan:
    """The plan of a run, with one object a cell, as the planner makes it."""
    run = connection.execute(select(RUNS).where(RUNS.c.key == run_key)).one()
    cells = read_cells(connection, run_key)
    trials: dict[int, list[Trial]] = {}
    rows = connection.execute(
        select(TRIALS.c.lane, TRIALS.c.trial_id, TRIALS.c.cell_id, TRIALS.c.repeat, TRIALS.c.board)
        .where(TRIALS.c.run_key == run_key)
        .order_by(TRIALS.c.position)
    )
    for lane, trial_id, cell_id, repeat, board in rows:
        trials.setdefault(lane, []).append(Trial(trial_id, cells[cell_id], repeat, board))
    lanes = connection.execute(
        select(LANES).where(LANES.c.run_key == run_key).order_by(LANES.c.lane)
    )
    return Plan(
        sweep=read_document(Sweep, run.sweep_document),
        digest=run.plan_digest,
        lanes=tuple(
            Lane(
                board=row.board,
                profile=row.profile,
                meter=row.meter,
                trials=tuple(trials.get(row.lane, ())),
                mode_changes=row.mode_changes,
                reboots=row.reboots,
                estimate_s=row.estimate_s,
            )
            for row in lanes
        ),
        estimate_s=run.estimate_s,
        skipped=_SKIPPED.validate_json(run.skipped_document),
    )


def read_cells(connection: Connection, run_key: int) -> dict[str, Cell]:
    """The cells of a run by id."""
    rows = connection.execute(select(CELLS).where(CELLS.c.run_key == run_key))
    return {row.cell_id: _cell(row) for row in rows}


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
