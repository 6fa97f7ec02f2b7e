"""The way in: a sweep, the inventory's boards, profiles and payloads -> a plan. Pure."""

from collections.abc import Iterable, Mapping, Sequence

from farm.errors import ConfigError
from farm.model.board import Board
from farm.model.history import History
from farm.model.parameters import short_id
from farm.model.payload import Payload
from farm.model.plan import Lane, Plan
from farm.model.profile import BoardProfile
from farm.model.sweep import Sweep
from farm.planning.estimate import sharing
from farm.planning.expand import expand_sweep
from farm.planning.lanes import make_lanes, place_cells
from farm.planning.pace import NO_HISTORY, Pace


def make_plan(
    sweep: Sweep,
    boards: Sequence[Board],
    profiles: Mapping[str, BoardProfile],
    payloads: Mapping[str, Payload],
    history: History = NO_HISTORY,
) -> Plan:
    """All trials of `sweep`, in order, a lane a board.

    Args:
        sweep: what to run; its selectors choose among `boards`.
        boards: all boards of the inventory, in its order.
        profiles: by name; those of the selected boards must be there.
        payloads: by name; those of the sweep must be there.
        history: how long things took before; it changes the estimates, never the trials.

    Raises:
        ConfigError: something that the sweep names does not exist or is not allowed, or
            nothing is left to run.
    """
    expansion = expand_sweep(sweep, boards, profiles, payloads)
    if not expansion.cells:
        reasons = "; ".join(expansion.notes)
        raise ConfigError(f"sweep {sweep.name}: nothing to run{': ' if reasons else ''}{reasons}")
    placed = place_cells(expansion.cells, sweep, profiles)
    lanes = make_lanes(placed, boards, pace_of(sweep, boards, history), profiles)
    estimate_s = max(sum(lane.estimate_s for lane in group) for group in sharing(lanes, sweep))
    return Plan(sweep, _digest(sweep, lanes), lanes, estimate_s, expansion.notes)


def pace_of(sweep: Sweep, boards: Iterable[Board], history: History = NO_HISTORY) -> Pace:
    """How long things take with these boards."""
    return Pace(sweep, history, {board.name for board in boards if board.simulation is not None})


def _digest(sweep: Sweep, lanes: Sequence[Lane]) -> str:
    order = [
        [lane.board, lane.profile, lane.meter, [trial.trial_id for trial in lane.trials]]
        for lane in lanes
    ]
    return short_id({"sweep": sweep.model_dump(mode="json"), "lanes": order}, 16)
