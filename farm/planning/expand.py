"""Sweep x boards x payloads -> cells, each with its id, its repeats and its boards."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from farm.errors import ConfigError
from farm.model.board import Board
from farm.model.parameters import canonical_json, short_id
from farm.model.payload import Payload, PayloadManifest
from farm.model.plan import Cell
from farm.model.power_mode import ClockPolicy
from farm.model.profile import BoardProfile
from farm.model.record import Scalar
from farm.model.sweep import PayloadAxes, Sweep
from farm.planning.rules import RESERVED, is_excluded
from farm.planning.selection import boards_in_maintenance, nearest, select_boards
from farm.planning.values import fill_parameters


@dataclass(frozen=True, slots=True)
class PlannedCell:
    """A cell, how often it runs, and the boards that may run it (one with ``spread: every``)."""

    cell: Cell
    repeats: int
    boards: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Expansion:
    """All cells of a sweep, and in words what it names and does not run."""

    cells: tuple[PlannedCell, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Combination:
    """Parameters with their power modes; `only` narrows by board, profile or payload."""

    parameters: Mapping[str, Scalar]
    power_modes: tuple[str, ...]
    only: Mapping[str, Scalar]


@dataclass(frozen=True, slots=True)
class _Target:
    """What cells are for: one board, or with ``spread: any`` a profile and its boards."""

    name: str
    profile: str
    boards: tuple[str, ...]


def expand_sweep(
    sweep: Sweep,
    boards: Sequence[Board],
    profiles: Mapping[str, BoardProfile],
    payloads: Mapping[str, Payload],
) -> Expansion:
    """Cross product of the axes plus `include`, minus `exclude`; equal cells once.

    Cells that two entries give are one cell, with the larger number of repeats and the
    higher priority. Axes are combined in the order of their names, the last one fastest, so
    that equal sweeps give equal plans whatever the order of keys in the file. With
    ``spread: any`` a rule on `board` keeps the cell off that board only.

    Raises:
        ConfigError: an unknown board, profile, payload or parameter, a value that the
            payload does not allow, an axis without values.
    """
    selected = select_boards(boards, sweep.boards)
    _check_profiles(selected, profiles)
    notes = [
        f"board {board.name}: in maintenance"
        for board in boards_in_maintenance(boards, sweep.boards)
    ]
    rank = {board.name: at for at, board in enumerate(boards)}
    cells: dict[str, PlannedCell] = {}
    for entry in sweep.payloads:
        payload = _payload(entry, payloads)
        chosen = _narrow(selected, boards, entry)
        if not chosen:
            notes.append(f"payload {entry.payload}: none of its boards is selected")
        notes += _rule_notes(entry, payload.manifest)
        combinations = _combinations(sweep, entry, payload.manifest)
        for target in _targets(sweep, chosen):
            for planned in _cells_of(sweep, entry, payload, target, combinations):
                _add(cells, planned, rank)
    choices = {planned.boards for planned in cells.values()}
    used = {name for choice in choices for name in choice}
    notes += [f"board {b.name}: no cell for it" for b in selected if b.name not in used]
    return Expansion(tuple(cells.values()), tuple(notes))


def _check_profiles(boards: Sequence[Board], profiles: Mapping[str, BoardProfile]) -> None:
    for board in boards:
        if board.profile not in profiles:
            raise ConfigError(
                f"board {board.name}: no profile {board.profile!r}"
                f"{nearest(board.profile, list(profiles))}"
            )


def _payload(entry: PayloadAxes, payloads: Mapping[str, Payload]) -> Payload:
    if entry.payload not in payloads:
        known = list(payloads)
        raise ConfigError(f"no payload {entry.payload!r}{nearest(entry.payload, known)}")
    return payloads[entry.payload]


def _narrow(
    selected: Sequence[Board], boards: Sequence[Board], entry: PayloadAxes
) -> tuple[Board, ...]:
    if not entry.boards:
        return tuple(selected)
    wanted = {board.name for board in select_boards(boards, entry.boards)}
    return tuple(board for board in selected if board.name in wanted)


def _rule_notes(entry: PayloadAxes, manifest: PayloadManifest) -> list[str]:
    known = {*RESERVED, *manifest.parameters}
    return [
        f"payload {entry.payload}: an exclude rule matches nothing: no parameter {key!r}"
        f"{nearest(key, sorted(known))}"
        for rule in entry.exclude
        for key in rule
        if key not in known
    ]


def _targets(sweep: Sweep, boards: Sequence[Board]) -> list[_Target]:
    if sweep.spread == "every":
        return [_Target(board.name, board.profile, (board.name,)) for board in boards]
    by_profile: dict[str, list[str]] = {}
    for board in boards:
        by_profile.setdefault(board.profile, []).append(board.name)
    return [_Target(profile, profile, tuple(names)) for profile, names in by_profile.items()]


def _combinations(
    sweep: Sweep, entry: PayloadAxes, manifest: PayloadManifest
) -> list[_Combination]:
    modes = sweep.power_modes if entry.power_modes is None else entry.power_modes
    names = sorted(entry.axes)
    for name in names:
        if not entry.axes[name]:
            raise ConfigError(f"payload {entry.payload}: axis {name!r} has no values")
    found = [
        _Combination(fill_parameters(manifest, dict(zip(names, values, strict=True))), modes, {})
        for values in product(*(entry.axes[name] for name in names))
    ]
    for extra in entry.include:
        only = {key: extra[key] for key in RESERVED if key in extra}
        mode = only.pop("power_mode", None)
        given = {key: value for key, value in extra.items() if key not in RESERVED}
        parameters = fill_parameters(manifest, given)
        found.append(_Combination(parameters, modes if mode is None else (str(mode),), only))
    return found


def _cells_of(
    sweep: Sweep,
    entry: PayloadAxes,
    payload: Payload,
    target: _Target,
    combinations: Sequence[_Combination],
) -> Iterator[PlannedCell]:
    repeats = sweep.repeats if entry.repeats is None else entry.repeats
    for combination in combinations:
        for mode in combination.power_modes:
            allowed = _allowed_boards(entry, target, combination, mode)
            if allowed:
                content = _content(
                    target=target.name,
                    payload=entry.payload,
                    payload_digest=payload.digest,
                    power_mode=mode,
                    clocks=sweep.clocks,
                    parameters=combination.parameters,
                )
                cell = Cell(
                    cell_id=short_id(content),
                    target=target.name,
                    is_any=sweep.spread == "any",
                    profile=target.profile,
                    payload=entry.payload,
                    payload_digest=payload.digest,
                    level=payload.manifest.level,
                    power_mode=mode,
                    clocks=sweep.clocks,
                    parameters=combination.parameters,
                    priority=entry.priority,
                )
                yield PlannedCell(cell, repeats, allowed)


def _allowed_boards(
    entry: PayloadAxes, target: _Target, combination: _Combination, mode: str
) -> tuple[str, ...]:
    if not entry.exclude and not combination.only:
        return target.boards
    facts = {"profile": target.profile, "power_mode": mode, "payload": entry.payload}
    if "board" not in combination.only and not any("board" in rule for rule in entry.exclude):
        return target.boards if _is_meant(entry, combination, facts) else ()
    return tuple(
        board
        for board in target.boards
        if _is_meant(entry, combination, {**facts, "board": board})
    )


def _is_meant(entry: PayloadAxes, combination: _Combination, facts: Mapping[str, str]) -> bool:
    if any(facts[key] != value for key, value in combination.only.items()):
        return False
    return not is_excluded(entry.exclude, facts, combination.parameters)


def _content(
    *,
    target: str,
    payload: str,
    payload_digest: str,
    power_mode: str,
    clocks: ClockPolicy,
    parameters: Mapping[str, Scalar],
) -> dict[str, object]:
    """What the id is made of. Priority and repeats may change in a resumed night: not here."""
    return {
        "target": target,
        "payload": payload,
        "payload_digest": payload_digest,
        "power_mode": power_mode.lower(),
        "clocks": clocks,
        "parameters": parameters,
    }


def _add(cells: dict[str, PlannedCell], planned: PlannedCell, rank: Mapping[str, int]) -> None:
    """Add the cell, or merge it with the equal cell that is there."""
    cell = planned.cell
    cell_id = cell.cell_id
    known = cells.get(cell_id)
    if known is not None and not _is_same(known.cell, cell):
        # 10 digits are 40 bits: among 100,000 cells two differ in content and share an id
        # once in 200 plans. 20 digits settle it, and no cell is lost.
        content = _content(
            target=cell.target,
            payload=cell.payload,
            payload_digest=cell.payload_digest,
            power_mode=cell.power_mode,
            clocks=cell.clocks,
            parameters=cell.parameters,
        )
        cell_id = short_id(content, 20)
        known = cells.get(cell_id)
        planned = replace(planned, cell=replace(cell, cell_id=cell_id))
    if known is None:
        cells[cell_id] = planned
        return
    priority = max(known.cell.priority, planned.cell.priority)
    cells[cell_id] = PlannedCell(
        replace(known.cell, priority=priority),
        max(known.repeats, planned.repeats),
        tuple(sorted({*known.boards, *planned.boards}, key=rank.__getitem__)),
    )


def _is_same(one: Cell, other: Cell) -> bool:
    """Whether two cells of one id are equal in what the id is made of."""
    # Python holds 1, 1.0 and True equal; the text of the id does not.
    return (
        one.target == other.target
        and one.payload == other.payload
        and one.power_mode.lower() == other.power_mode.lower()
        and canonical_json(one.parameters) == canonical_json(other.parameters)
    )
