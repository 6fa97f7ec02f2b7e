"""Faults of the workspace's simulated lab: asked for, listed, healed; scenarios of them."""

from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError

from farm.config.document import Document, Location, Problem, config_error
from farm.config.model_errors import unknown
from farm.config.yaml_file import load_document
from farm.errors import ConfigError, FarmError
from farm.pipeline.lab import Lab
from farm.pipeline.sim import lab_is_up, lab_root
from farm.planning.selection import select_boards
from farm.simulation.fault_control import FaultRow, Request, ask_lab
from farm.simulation.fault_kinds import PARAMETERS, FaultKind
from farm.simulation.faults import (
    Fault,
    Scenario,
    draw_faults,
    kind_named,
    why_not,
)


def start_fault(lab: Lab, boards: str, kind: str, wish: dict[str, object]) -> list[FaultRow]:
    """Have a fault on boards.

    Args:
        lab: the workspace.
        boards: a selector: a name, ``tag:T``, ``all``.
        kind: a fault's name.
        wish: the other fields of `Fault`: `after_s`, `for_s`, `parameters`.

    Raises:
        ConfigError: no such board or kind, or they cannot have it.
        FarmError: the lab is not up.
    """
    named = kind_named(kind)
    faults = []
    for name in _boards(lab, [boards]):
        try:
            fault = Fault.model_validate({"board": name, "kind": named, **wish})
        except ValueError as error:
            raise ConfigError(_first_line(error)) from None
        reason = why_not(fault, lab.inventory)
        if reason:
            raise ConfigError(reason)
        faults.append(fault)
    return tell_lab(lab, faults)


def tell_lab(lab: Lab, faults: Sequence[Fault]) -> list[FaultRow]:
    """Hand faults to the lab that is up; their times begin now. Raises ConfigError, FarmError."""
    return ask_lab(_root(lab), Request(ask="fault", faults=tuple(faults)))


def list_faults(lab: Lab) -> list[FaultRow]:
    """All that the lab was told of since it is up. Raises FarmError."""
    return ask_lab(_root(lab), Request(ask="faults"))


def heal(lab: Lab, boards: str | None) -> list[FaultRow]:
    """End the faults of these boards, or all, and forget the planned ones. Raises FarmError."""
    names = _boards(lab, [boards]) if boards else ()
    return ask_lab(_root(lab), Request(ask="heal", boards=tuple(names)))


def load_scenario(lab: Lab, path: Path) -> list[Fault]:
    """The faults of a scenario file, drawn ones too, by their beginning.

    Raises:
        ConfigError: with every problem at its line and column.
    """
    document = load_document(path)
    problems = [*_kind_problems(document)]
    if problems:
        raise config_error(document.file, problems)
    scenario = document.validate((), Scenario)
    faults: list[Fault] = []
    for index, fault in enumerate(scenario.faults):
        here: Location = ("faults", index)
        try:
            meant = [
                fault.model_copy(update={"board": name}) for name in _boards(lab, [fault.board])
            ]
        except ConfigError as error:
            problems.append(document.problem((*here, "board"), error.message))
            continue
        reasons = [reason for one in meant if (reason := why_not(one, lab.inventory))]
        problems += [document.problem((*here, "board"), reason) for reason in reasons[:1]]
        faults += meant
    faults += _drawn(lab, scenario, document, problems)
    if problems:
        raise config_error(document.file, problems)
    if not faults:
        raise document.error((), "no faults: give `faults` or `random`")
    return sorted(faults, key=lambda one: one.after_s)


def _drawn(
    lab: Lab, scenario: Scenario, document: Document, problems: list[Problem]
) -> list[Fault]:
    wish = scenario.random
    if wish is None:
        return []
    try:
        return draw_faults(wish, lab.inventory, _boards(lab, wish.boards))
    except ConfigError as error:
        problems.append(document.problem(("random", "boards"), error.message))
        return []


def _kind_problems(document: Document) -> list[Problem]:
    """Unknown kinds and parameters, told with the nearest word and where they stand."""
    problems = []
    for place, word in _kinds_in(document):
        if not isinstance(word, str):
            continue  # the model tells
        if word not in list(FaultKind):
            problems.append(document.problem(place, unknown("fault", word, list(FaultKind))))
        elif place[0] == "faults":
            problems += _parameter_problems(document, place[:-1], FaultKind(word))
    return problems


def _kinds_in(document: Document) -> list[tuple[Location, object]]:
    found: list[tuple[Location, object]] = []
    faults = document.get(("faults",))
    if isinstance(faults, list):
        places: list[Location] = [("faults", index, "kind") for index in range(len(faults))]
        found += [(place, document.get(place)) for place in places]
    kinds = document.get(("random", "kinds"))
    if isinstance(kinds, list):
        found += [(("random", "kinds", index), word) for index, word in enumerate(kinds)]
    return found


def _parameter_problems(document: Document, here: Location, kind: FaultKind) -> list[Problem]:
    given = document.get((*here, "parameters"))
    if not isinstance(given, dict):
        return []
    known = PARAMETERS.get(kind, {})
    problems = []
    for name, value in given.items():
        place: Location = (*here, "parameters", name)
        limits = known.get(name)
        if limits is None:
            message = unknown(f"parameter of {kind}", name, known)
            problems.append(document.problem(place, message, at_key=True))
        elif isinstance(value, int | float) and not limits.least <= value <= limits.most:
            message = f"{name} should be {limits.least:g} to {limits.most:g}"
            problems.append(document.problem(place, message))
    return problems


def _boards(lab: Lab, selectors: Sequence[str]) -> list[str]:
    """Names; a selector of several boards leaves out those that are not simulated."""
    boards = select_boards(lab.inventory.boards, selectors)
    return [one.name for one in boards if one.simulation or one.name in selectors]


def _root(lab: Lab) -> Path:
    if not lab_is_up(lab):
        msg = "the simulated lab is not up; start it with `farm sim up`"
        raise FarmError(msg)
    return lab_root(lab)


def _first_line(error: ValueError) -> str:
    """Pydantic's complaint in one line, as a user may read it."""
    if not isinstance(error, ValidationError):
        return str(error)
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    text = str(first["msg"]).removeprefix("Value error, ")
    return f"{where}: {text}" if where else text
