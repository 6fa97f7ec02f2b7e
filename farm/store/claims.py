"""Who works on a run, in the database: keeps two hosts that share one from taking one run.

A host that was suspended, or cut off, may come back after another took its run over. It finds
that out at its next heartbeat and stops; on the boards an attempt is started only once anyway,
whoever asks for it.
"""

from datetime import UTC, datetime, timedelta

from sqlalchemy import Connection, func, select, update

from farm.errors import RunHeldError
from farm.store.locks import Holder, held_text, read_holder
from farm.store.runs import run_key
from farm.store.schema import RUNS

STALE_S = 90.0
"""A claim without a heartbeat for so long may be taken over. Eighteen heartbeats: what is worked
on must survive a database that restarts and a network that changes."""


def claim_run(connection: Connection, run_id: str, owner: Holder, *, is_shared: bool) -> None:
    """Write down that `owner` works on the run.

    `is_shared`: other hosts may use the database. Raises RunHeldError while one of them works
    on the run. In a file of this host its lock has decided before.
    """
    known = read_claim(connection, run_id, for_update=True)
    if is_shared and known is not None and not is_gone(connection, *known):
        raise RunHeldError(held_text(f"run {run_id}", known[0]))
    _set(connection, run_id, owner.to_json())


def beat_claim(connection: Connection, run_id: str, owner: Holder) -> None:
    """Renew the claim. Raises RunHeldError if it is not ours any more."""
    known = read_claim(connection, run_id, for_update=True)
    if known is None or known[0].token != owner.token:
        taker = "nobody" if known is None else str(known[0])
        raise RunHeldError(
            f"run {run_id} was taken over by {taker} while this host was silent for more than "
            f"{STALE_S:g} s; stopped here"
        )
    _set(connection, run_id, owner.to_json())


def release_claim(connection: Connection, run_id: str, owner: Holder) -> None:
    """Nobody works on the run any more; not ours is no error."""
    known = read_claim(connection, run_id, for_update=True)
    if known is not None and known[0].token == owner.token:
        _set(connection, run_id, None)


def read_claim(
    connection: Connection, run_id: str, *, for_update: bool = False
) -> tuple[Holder, datetime] | None:
    """Who works on the run, or was killed at it, and the last heartbeat. Raises StoreError."""
    query = select(RUNS.c.claim_document, RUNS.c.heartbeat).where(
        RUNS.c.key == run_key(connection, run_id)
    )
    row = connection.execute(query.with_for_update() if for_update else query).one()
    if row.claim_document is None or row.heartbeat is None:
        return None
    return read_holder(row.claim_document), row.heartbeat


def is_gone(connection: Connection, owner: Holder, beat: datetime) -> bool:
    """Whether a claim's process is surely or most likely dead."""
    return owner.is_dead or database_now(connection) - beat > timedelta(seconds=STALE_S)


def database_now(connection: Connection) -> datetime:
    """The time by the database's clock, which is the same for all hosts; UTC."""
    if connection.dialect.name == "sqlite":
        return datetime.now(UTC)
    moment = connection.execute(select(func.clock_timestamp())).scalar_one()
    return moment.astimezone(UTC) if isinstance(moment, datetime) else datetime.now(UTC)


def _set(connection: Connection, run_id: str, document: str | None) -> None:
    connection.execute(
        update(RUNS)
        .where(RUNS.c.key == run_key(connection, run_id))
        .values(claim_document=document, heartbeat=database_now(connection))
    )
