"""A trial that goes to another board of its run."""

from sqlalchemy import Connection, select, update

from farm.errors import StoreError
from farm.model.attempt import TrialState
from farm.store.schema import LANES, TRIALS


def move_trial(
    connection: Connection, run_key: int, trial_id: str, board: str, reason: str
) -> None:
    """The trial is pending in the lane of `board`, at its place in the plan's order.

    Raises StoreError for an unknown trial and for a board that has no lane in the plan.
    """
    lane = connection.execute(
        select(LANES.c.lane).where(LANES.c.run_key == run_key, LANES.c.board == board)
    ).scalar()
    if lane is None:
        raise StoreError(f"board {board} has no lane in the plan of this run")
    moved = connection.execute(
        update(TRIALS)
        .where(TRIALS.c.run_key == run_key, TRIALS.c.trial_id == trial_id)
        .values(lane=lane, board=board, state=TrialState.PENDING.value, reason=reason)
    )
    if moved.rowcount == 0:
        raise StoreError(f"trial {trial_id} is not in the plan of this run")
