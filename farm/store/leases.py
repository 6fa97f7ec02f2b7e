"""Board leases: two runs, also of two hosts on one database, never use one board at once."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, delete, insert, select, update

from farm.errors import RunHeldError
from farm.store.locks import this_process
from farm.store.schema import BOARD_LEASES


@dataclass(frozen=True, slots=True)
class BoardLease:
    """Who uses a board, until when. `board` is its ``host:port``; times are UTC."""

    board: str
    run_id: str
    holder_host: str
    holder_pid: int
    taken: datetime
    expires: datetime


def take_board(
    connection: Connection, board: str, run_id: str, now: datetime, ttl_s: float
) -> None:
    """Take or renew the board for a run. Raises RunHeldError while another run has it."""
    found = read_lease(connection, board, for_update=True)
    if found is not None and found.run_id != run_id and found.expires > now:
        raise RunHeldError(
            f"board {board} is used by run {found.run_id} (process {found.holder_pid} on "
            f"{found.holder_host}) until {found.expires.isoformat(timespec='seconds')} at least"
        )
    owner = this_process()
    values = {
        "run_id": run_id,
        "holder_host": owner.host,
        "holder_pid": owner.pid,
        "expires": now + timedelta(seconds=ttl_s),
    }
    if found is None:
        connection.execute(insert(BOARD_LEASES).values(board=board, taken=now, **values))
        return
    taken = found.taken if found.run_id == run_id else now
    connection.execute(
        update(BOARD_LEASES).where(BOARD_LEASES.c.board == board).values(taken=taken, **values)
    )


def release_board(connection: Connection, board: str, run_id: str) -> None:
    """Give the board back; not ours is no error."""
    connection.execute(
        delete(BOARD_LEASES).where(BOARD_LEASES.c.board == board, BOARD_LEASES.c.run_id == run_id)
    )


def read_lease(
    connection: Connection, board: str, *, for_update: bool = False
) -> BoardLease | None:
    """The board's lease, also an expired one."""
    query = select(BOARD_LEASES).where(BOARD_LEASES.c.board == board)
    row = connection.execute(query.with_for_update() if for_update else query).one_or_none()
    if row is None:
        return None
    return BoardLease(
        row.board, row.run_id, row.holder_host, row.holder_pid, row.taken, row.expires
    )
