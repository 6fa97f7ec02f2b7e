"""Runs: their ids, how far they are, and which one the user means."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from sqlalchemy import Connection, Select, func, select, update

from farm.errors import StoreError
from farm.model.attempt import TrialState
from farm.model.record import Source
from farm.store.schema import ATTEMPTS, RUNS, TRIALS

RunState = Literal["running", "finished", "interrupted"]
RUN_STATES: tuple[RunState, ...] = ("running", "finished", "interrupted")

_SAFE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,199}")
_SHOWN = 5  # candidates in a message


@dataclass(frozen=True, slots=True)
class RunInfo:
    """One run and how far it is. Times are UTC; `counts` leaves out states that no trial is in.

    `state` is what was last written: a run whose process was killed still says ``running``,
    `Store.run_holder` tells whether somebody works on it. `heartbeat`: when somebody took the
    run, on a shared database also when he last showed that he lives.
    """

    run_id: str
    sweep: str
    created: datetime
    state: RunState
    counts: Mapping[TrialState, int]
    sources: tuple[Source, ...]
    heartbeat: datetime | None
    tool_version: str
    inventory_digest: str
    plan_digest: str

    @property
    def source(self) -> Source | None:
        """The source of all its figures; None while there are none, or if they are mixed."""
        return self.sources[0] if len(self.sources) == 1 else None


def safe_name(name: str, what: str) -> str:
    """The name, if it can be a folder's. Raises StoreError."""
    if not _SAFE_NAME.fullmatch(name):
        raise StoreError(f"{what} {name!r} cannot be a folder's name")
    return name


def make_run_id(sweep: str, digest: str, created: datetime, taken: int) -> str:
    """``20261130-2215-night-3f2a``: when (UTC), what, and four digits made from the content.

    `taken` counts the ids that were found in use: each gives other digits.
    """
    slug = re.sub(r"[^a-z0-9]+", "-", sweep.lower()).strip("-")[:40].strip("-") or "sweep"
    utc = created.astimezone(UTC)
    seed = f"{sweep}\n{digest}\n{utc.isoformat()}\n{taken}"
    return f"{utc:%Y%m%d-%H%M}-{slug}-{hashlib.sha256(seed.encode()).hexdigest()[:4]}"


def has_run(connection: Connection, run_id: str) -> bool:
    """True if a run of that id is stored."""
    found = connection.execute(select(RUNS.c.key).where(RUNS.c.run_id == run_id))
    return found.first() is not None


def run_key(connection: Connection, run_id: str) -> int:
    """The number of a run. Raises StoreError if there is none of that id."""
    key = connection.execute(select(RUNS.c.key).where(RUNS.c.run_id == run_id)).scalar()
    if key is None:
        raise StoreError(f"no run {run_id!r}; `farm runs list` shows what there is")
    return int(key)


def find_run(connection: Connection, ref: str) -> str:
    """A run by id, unique beginning, or ``last``. Raises StoreError with the candidates."""
    newest_first = select(RUNS.c.run_id).order_by(RUNS.c.key.desc())
    if ref == "last":
        newest = connection.execute(newest_first.limit(1)).scalar()
        if newest is None:
            raise StoreError("there are no runs yet; `farm run SWEEP` makes one")
        return str(newest)
    names = [str(name) for name in connection.execute(newest_first).scalars()]
    matching = [name for name in names if name.startswith(ref)] if ref else []
    if ref in matching:
        return ref
    if len(matching) == 1:
        return matching[0]
    if matching:
        raise StoreError(f"{ref!r} begins {len(matching)} runs: {_shown(matching)}")
    known = f"; there are: {_shown(names)}" if names else "; there are none yet"
    raise StoreError(f"no run {ref!r}{known}")


def read_runs(connection: Connection, run_id: str | None = None) -> list[RunInfo]:
    """All runs (or the one), oldest first."""
    wanted: Select[tuple[int]] = select(RUNS.c.key)
    if run_id is not None:
        wanted = wanted.where(RUNS.c.run_id == run_id)
    counts: dict[int, dict[TrialState, int]] = {}
    for key, state, count in connection.execute(
        select(TRIALS.c.run_key, TRIALS.c.state, func.count())
        .where(TRIALS.c.run_key.in_(wanted))
        .group_by(TRIALS.c.run_key, TRIALS.c.state)
    ):
        counts.setdefault(key, {})[TrialState(state)] = count
    sources: dict[int, list[Source]] = {}
    for key, source in connection.execute(
        select(ATTEMPTS.c.run_key, ATTEMPTS.c.source)
        .where(ATTEMPTS.c.run_key.in_(wanted), ATTEMPTS.c.source.is_not(None))
        .distinct()
        .order_by(ATTEMPTS.c.source)
    ):
        sources.setdefault(key, []).append(Source(source))
    rows = connection.execute(select(RUNS).where(RUNS.c.key.in_(wanted)).order_by(RUNS.c.key))
    return [
        RunInfo(
            run_id=row.run_id,
            sweep=row.sweep,
            created=row.created,
            state=row.state,
            counts=counts.get(row.key, {}),
            sources=tuple(sources.get(row.key, ())),
            heartbeat=row.heartbeat,
            tool_version=row.tool_version,
            inventory_digest=row.inventory_digest,
            plan_digest=row.plan_digest,
        )
        for row in rows
    ]


def set_state(connection: Connection, run_id: str, state: str) -> None:
    """Set a run's state. Raises StoreError if one of them is unknown."""
    if state not in RUN_STATES:
        raise StoreError(f"no such state of a run: {state!r}")
    connection.execute(
        update(RUNS).where(RUNS.c.key == run_key(connection, run_id)).values(state=state)
    )


def _shown(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
