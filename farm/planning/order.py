"""The order of one board's trials: few mode changes, fewest reboots, drift spread over all cells.

Where a reboot is needed `BoardProfile.needs_reboot` tells. A mode of which it does not know
leaves the board's GPU as it is.
"""

from collections.abc import Iterable, Sequence
from itertools import groupby
from random import Random

from farm.errors import UnsupportedPowerModeError
from farm.model.mode_words import resolve_mode
from farm.model.plan import Cell, Trial
from farm.model.power_mode import PowerMode, PowerModeState, PowerModeTable
from farm.model.profile import BoardProfile
from farm.model.sweep import Sweep
from farm.planning.expand import PlannedCell

CURRENT = "current"
"""The mode that the board is found in."""


def order_trials(
    planned: Sequence[PlannedCell], board: str, sweep: Sweep, profile: BoardProfile
) -> tuple[Trial, ...]:
    """All trials of one board in the order they run.

    ``grouped``: each power mode once, in the order of `order_modes`. Inside a mode the higher
    priority comes first; cells of one priority take turns: repeat 1 of all, then repeat 2.

    ``shuffled``: block r holds repeat r of all cells. In each block the modes, and the cells
    in each mode, are in random order by the sweep's seed and the board's name. Chance leaves
    no choice, so priority does not count.
    """
    if sweep.order == "shuffled":
        return tuple(_shuffled(planned, board, sweep.seed))
    by_mode = _by_mode(planned)
    modes = order_modes([item.cell for item in planned], profile)
    return tuple(
        trial for mode in modes for trial in _interleaved_by_priority(by_mode[mode], board)
    )


def order_modes(cells: Iterable[Cell], profile: BoardProfile) -> list[str]:
    """The cells' power modes as asked, in lower case, each once, with the fewest reboots.

    Modes that need no reboot between them stand together. Those of the mode that the board
    starts with, ``current``, come first, or else of the profile's default mode. What is left
    open goes by priority, then by first appearance.
    """
    priority: dict[str, int] = {}
    for cell in cells:
        mode = cell.power_mode.lower()
        priority[mode] = max(priority.get(mode, cell.priority), cell.priority)
    places = {mode: (mode != CURRENT, -priority[mode], at) for at, mode in enumerate(priority)}
    start = meant_mode(CURRENT, profile)
    kinds: list[tuple[PowerMode | None, tuple[bool, bool, int, int]]] = []
    ranks: dict[str, tuple[bool, bool, int, int]] = {}
    for mode in sorted(places, key=places.__getitem__):
        meant, place = meant_mode(mode, profile), places[mode]
        known = next((rank for kind, rank in kinds if _is_one_kind(kind, meant, profile)), None)
        if known is None:
            known = (place[0], not _is_one_kind(start, meant, profile), place[1], place[2])
            kinds.append((meant, known))
        ranks[mode] = known
    return sorted(places, key=lambda mode: (ranks[mode], places[mode]))


def meant_mode(asked: str, profile: BoardProfile) -> PowerMode | None:
    """The mode of the profile that `asked` means, or None if that is unknown.

    By the rules of `resolve_mode` on the profile's table; ``current`` is taken for its default
    mode, and a board with one fixed mode is always in that. The board's own table decides
    when the plan runs; a wrong guess costs a reboot more, not a trial.
    """
    if profile.power_controller == "fixed":
        return next(iter(profile.power_modes), None)
    default = profile.default_power_mode
    if asked.lower() == CURRENT:
        return None if default is None else profile.mode(default)
    table = PowerModeTable(modes=profile.power_modes, default=default)
    try:
        return resolve_mode(asked, table, PowerModeState(name=default or ""))
    except UnsupportedPowerModeError:
        return None


def mask_of(asked: str, profile: BoardProfile) -> int | None:
    """The TPC mask of the mode that `asked` means by the profile, or None if that is unknown."""
    mode = meant_mode(asked, profile)
    return None if mode is None else mode.tpc_mask


def count_changes(trials: Iterable[Trial], profile: BoardProfile) -> tuple[int, int]:
    """Mode changes between the trials, and all reboots of the lane.

    The board is taken to stand in the profile's default mode; the reboots into the first mode
    and back at the end count, too.
    """
    asked = [mode for mode, _ in groupby(trial.cell.power_mode.lower() for trial in trials)]
    meant = {mode: meant_mode(mode, profile) for mode in {*asked, CURRENT}}
    reboots = 0
    standing = meant[CURRENT]
    for mode in [*asked, CURRENT] if asked else []:
        wanted = meant[mode]
        if wanted is None:
            continue
        needed = standing is not None and profile.needs_reboot(standing.name, wanted.name)
        reboots += needed is True
        if needed is not None or standing is None or standing.tpc_mask is None:
            standing = wanted
    return max(0, len(asked) - 1), reboots


def _is_one_kind(first: PowerMode | None, second: PowerMode | None, profile: BoardProfile) -> bool:
    """Whether no reboot is needed between the modes; all unknown ones are one kind."""
    if first is None or second is None:
        return first is second
    return profile.needs_reboot(first.name, second.name) is False


def _by_mode(planned: Iterable[PlannedCell]) -> dict[str, list[PlannedCell]]:
    found: dict[str, list[PlannedCell]] = {}
    for item in planned:
        found.setdefault(item.cell.power_mode.lower(), []).append(item)
    return found


def _interleaved_by_priority(planned: Sequence[PlannedCell], board: str) -> Iterable[Trial]:
    by_priority: dict[int, list[PlannedCell]] = {}
    for item in planned:
        by_priority.setdefault(item.cell.priority, []).append(item)
    for priority in sorted(by_priority, reverse=True):
        for repeat, block in _blocks(by_priority[priority]):
            for item in block:
                yield _trial(item.cell, repeat, board)


def _shuffled(planned: Sequence[PlannedCell], board: str, seed: int) -> Iterable[Trial]:
    # Seeded by text: Random takes its SHA-512, which is the same in every process.
    random = Random(f"{seed}/{board}")  # noqa: S311 - an order, not a secret
    for repeat, block in _blocks(planned):
        by_mode = _by_mode(block)
        modes = list(by_mode)
        random.shuffle(modes)
        for mode in modes:
            cells = by_mode[mode]
            random.shuffle(cells)
            for item in cells:
                yield _trial(item.cell, repeat, board)


def _blocks(planned: Sequence[PlannedCell]) -> Iterable[tuple[int, list[PlannedCell]]]:
    """For each repeat from 1 the cells that run so often."""
    left = list(planned)
    repeat = 1
    while left:
        yield repeat, left
        repeat += 1
        left = [item for item in left if item.repeats >= repeat]


def _trial(cell: Cell, repeat: int, board: str) -> Trial:
    return Trial(f"{cell.cell_id}-r{repeat:02d}", cell, repeat, board)
