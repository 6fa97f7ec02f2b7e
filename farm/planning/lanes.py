"""Cells -> lanes: which board runs which cell, and one lane a board."""

from collections.abc import Iterable, Mapping, Sequence

from farm.model.board import Board
from farm.model.plan import Lane
from farm.model.profile import BoardProfile
from farm.model.sweep import Sweep
from farm.planning.estimate import slot_lengths, trial_s
from farm.planning.expand import PlannedCell
from farm.planning.order import count_changes, order_modes, order_trials
from farm.planning.pace import Pace


def place_cells(
    planned: Iterable[PlannedCell], sweep: Sweep, profiles: Mapping[str, BoardProfile]
) -> dict[str, list[PlannedCell]]:
    """Board -> its cells. All repeats of a cell run on one board.

    Cells that may run on one board only come first, then those with more choice. Cells with
    the same choice are laid out in the order of their power modes, and that line is cut into
    one piece a board, so long that all these boards are busy equally long. So a board is at
    most one cell from its share, and of m modes on n boards at most n - 1 are cut, each cut
    being one mode visited on one board more. Mode changes do not count in the lengths.
    """
    placed: dict[str, list[PlannedCell]] = {}
    busy_s: dict[str, float] = {}
    by_choice: dict[tuple[str, ...], list[PlannedCell]] = {}
    for item in planned:
        by_choice.setdefault(item.boards, []).append(item)
    for boards in sorted(by_choice, key=len):
        items = (
            _in_mode_order(by_choice[boards], profiles) if len(boards) > 1 else by_choice[boards]
        )
        for board, item in _cut(items, boards, busy_s, trial_s(sweep)):
            placed.setdefault(board, []).append(item)
            busy_s[board] = busy_s.get(board, 0.0) + item.repeats * trial_s(sweep)
    return placed


def make_lanes(
    placed: Mapping[str, Sequence[PlannedCell]],
    boards: Sequence[Board],
    pace: Pace,
    profiles: Mapping[str, BoardProfile],
) -> tuple[Lane, ...]:
    """One lane for each board that has cells, in the order of `boards`."""
    return tuple(
        _make_lane(placed[board.name], board, pace, profiles[board.profile])
        for board in boards
        if placed.get(board.name)
    )


def _make_lane(
    cells: Sequence[PlannedCell], board: Board, pace: Pace, profile: BoardProfile
) -> Lane:
    trials = order_trials(cells, board.name, pace.sweep, profile)
    changes, reboots = count_changes(trials, profile)
    lengths = slot_lengths(trials, pace, has_meter=board.meter is not None, reboots=reboots)
    return Lane(board.name, board.profile, board.meter, trials, changes, reboots, sum(lengths))


def _in_mode_order(
    items: Sequence[PlannedCell], profiles: Mapping[str, BoardProfile]
) -> list[PlannedCell]:
    modes = order_modes([item.cell for item in items], profiles[items[0].cell.profile])
    rank = {mode: at for at, mode in enumerate(modes)}
    return sorted(items, key=lambda item: rank[item.cell.power_mode.lower()])


def _cut(
    items: Sequence[PlannedCell],
    boards: Sequence[str],
    busy_s: Mapping[str, float],
    one_trial_s: float,
) -> list[tuple[str, PlannedCell]]:
    """Give each item to the board whose piece of the line holds the item's middle."""
    if len(boards) == 1:
        return [(boards[0], item) for item in items]
    lengths = [item.repeats * one_trial_s for item in items]
    loads = [busy_s.get(board, 0.0) for board in boards]
    level_s = _water_level(loads, sum(lengths))
    ends: list[float] = []
    for load in loads:
        ends.append((ends[-1] if ends else 0.0) + max(0.0, level_s - load))
    cut: list[tuple[str, PlannedCell]] = []
    begin_s, at = 0.0, 0
    for item, length in zip(items, lengths, strict=True):
        while at < len(boards) - 1 and begin_s + length / 2 > ends[at]:
            at += 1
        cut.append((boards[at], item))
        begin_s += length
    return cut


def _water_level(loads: Sequence[float], total: float) -> float:
    """The level to which `total` fills boards that stand at `loads`, all in seconds."""
    filled = 0.0
    ordered = sorted(loads)
    for count, load in enumerate(ordered, start=1):
        filled += load
        level = (filled + total) / count
        if count == len(ordered) or level <= ordered[count]:
            return level
    return 0.0
