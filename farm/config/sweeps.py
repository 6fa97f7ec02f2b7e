"""Sweep files become a `Sweep`; `check_sweep` then holds it against payloads and boards.

A single value may stand where the model has a list: ``batch: 8``, ``boards: tag:gpu``.
"""

from collections.abc import Container, Iterator, Mapping, Sequence
from pathlib import Path

from pydantic import JsonValue

from farm.config.document import Document, Location, Problem, Spot, config_error
from farm.config.manifest_checks import value_fault
from farm.config.model_errors import unknown
from farm.config.yaml_file import load_document
from farm.errors import ConfigError
from farm.model.board import Board
from farm.model.payload import Payload, PayloadManifest
from farm.model.profile import BoardProfile
from farm.model.record import Scalar
from farm.model.sweep import PayloadAxes, Sweep
from farm.planning.rules import RESERVED
from farm.planning.selection import select_boards

_LISTS = ("boards", "power_modes")
"""Keys, at the top and in each payload, whose single value stands for a list of one."""


def load_sweep(path: Path) -> Sweep:
    """Read a sweep file. Raises ConfigError with every problem at its line and column."""
    return load_sweep_document(path)[0]


def load_sweep_document(path: Path) -> tuple[Sweep, Document]:
    """Read a sweep file, and keep where everything stands. Raises ConfigError."""
    document = _with_lists(load_document(path))
    return document.validate((), Sweep), document


def check_sweep(
    document: Document,
    sweep: Sweep,
    payloads: Mapping[str, Payload],
    profiles: Mapping[str, BoardProfile],
    boards: Sequence[Board],
) -> None:
    """Hold a sweep against what it names.

    Args:
        document: from `load_sweep_document`; for the places.
        sweep: the sweep.
        payloads: all payloads by name.
        profiles: all profiles by name.
        boards: the inventory's boards.

    Raises:
        ConfigError: unknown payloads, parameters, boards, profiles or rule keys; values that
            the payload does not allow; values given twice; parameters left without a value.
    """
    names = {"board": [board.name for board in boards], "profile": list(profiles)}
    problems = list(_selection_problems(document, ("boards",), sweep.boards, boards))
    problems += _repeated(document, ("power_modes",), sweep.power_modes)
    for index, entry in enumerate(sweep.payloads):
        here: Location = ("payloads", index)
        problems += _selection_problems(document, (*here, "boards"), entry.boards, boards)
        problems += _repeated(document, (*here, "power_modes"), entry.power_modes or ())
        payload = payloads.get(entry.payload)
        if payload is None:
            message = unknown("payload", entry.payload, payloads)
            problems.append(document.problem((*here, "payload"), message))
        else:
            problems += _axes_problems(document, here, entry, payload.manifest)
            problems += _rule_problems(document, here, entry, payload.manifest, names)
    if problems:
        raise config_error(document.file, problems)


def _selection_problems(
    document: Document, here: Location, selectors: Sequence[str], boards: Sequence[Board]
) -> Iterator[Problem]:
    for index, selector in enumerate(selectors):
        try:
            select_boards(boards, [selector])
        except ConfigError as error:
            yield document.problem((*here, index), error.message)


def _axes_problems(
    document: Document, here: Location, entry: PayloadAxes, manifest: PayloadManifest
) -> Iterator[Problem]:
    for name, values in entry.axes.items():
        place: Location = (*here, "axes", name)
        if name not in manifest.parameters:
            yield document.problem(place, _unknown_parameter(name, manifest), at_key=True)
            continue
        if not values:
            yield document.problem(place, f'the axis "{name}" has no values')
        for index, value in enumerate(values):
            yield from _value_problems(document, (*place, index), manifest, name, value)
        yield from _repeated(document, place, values)
    yield from _unset_problems(document, (*here, "axes"), entry.axes, manifest)


def _rule_problems(
    document: Document,
    here: Location,
    entry: PayloadAxes,
    manifest: PayloadManifest,
    names: Mapping[str, Sequence[str]],
) -> Iterator[Problem]:
    """Keys and values of ``include`` and ``exclude``; `names` are what reserved keys may be."""
    rules: list[tuple[Location, Mapping[str, Scalar | tuple[Scalar, ...]]]] = []
    rules += [((*here, "include", index), rule) for index, rule in enumerate(entry.include)]
    rules += [((*here, "exclude", index), rule) for index, rule in enumerate(entry.exclude)]
    for place, rule in rules:
        if not rule:
            yield document.problem(place, "an empty rule means nothing")
        elif place[-2] == "include":
            yield from _unset_problems(document, place, rule, manifest)
        for key, wanted in rule.items():
            values = wanted if isinstance(wanted, tuple) else (wanted,)
            for index, value in enumerate(values):
                at = (*place, key, index) if isinstance(wanted, tuple) else (*place, key)
                if key in manifest.parameters:
                    yield from _value_problems(document, at, manifest, key, value)
                elif key not in RESERVED:
                    message = _unknown_parameter(key, manifest, RESERVED)
                    yield document.problem((*place, key), message, at_key=True)
                elif key in names and value not in names[key]:
                    yield document.problem(at, unknown(key, str(value), names[key]))


def _unset_problems(
    document: Document, here: Location, given: Container[str], manifest: PayloadManifest
) -> Iterator[Problem]:
    """Parameters without default that get no value here."""
    for name, parameter in manifest.parameters.items():
        if parameter.default is None and name not in given:
            message = f'the parameter "{name}" of {manifest.name} has no default: give it a value'
            yield document.problem(here, message, at_key=True)


def _value_problems(
    document: Document, place: Location, manifest: PayloadManifest, name: str, value: Scalar
) -> Iterator[Problem]:
    fault = value_fault(manifest, name, value)
    if fault is not None:
        yield document.problem(place, fault)


def _repeated(document: Document, here: Location, values: Sequence[Scalar]) -> Iterator[Problem]:
    """Values given twice: the same cells would be measured once, to the user's surprise."""
    seen = [(type(value), value) for value in values]
    for index, value in enumerate(seen):
        if value in seen[:index]:
            yield document.problem((*here, index), f'"{value[1]}" is given twice')


def _unknown_parameter(name: str, manifest: PayloadManifest, more: Sequence[str] = ()) -> str:
    return unknown(f"parameter of {manifest.name}", name, [*manifest.parameters, *more])


def _with_lists(document: Document) -> Document:
    """The document with each single value that may stand for a list made one."""
    data = dict(document.data)
    spots = dict(document.spots)
    _wrap(data, _LISTS, (), spots)
    entries = data.get("payloads")
    if isinstance(entries, list):
        data["payloads"] = [
            _entry_with_lists(entry, ("payloads", index), spots)
            for index, entry in enumerate(entries)
        ]
    return Document(document.file, data, spots)


def _entry_with_lists(entry: JsonValue, here: Location, spots: dict[Location, Spot]) -> JsonValue:
    if not isinstance(entry, dict):
        return entry
    copied = dict(entry)
    _wrap(copied, _LISTS, here, spots)
    axes = copied.get("axes")
    if isinstance(axes, dict):
        copied["axes"] = axes = dict(axes)
        _wrap(axes, tuple(axes), (*here, "axes"), spots)
    return copied


def _wrap(
    mapping: dict[str, JsonValue],
    keys: Sequence[str],
    here: Location,
    spots: dict[Location, Spot],
) -> None:
    for key in keys:
        value = mapping.get(key)
        if isinstance(value, str | int | float):
            mapping[key] = [value]
            spots[(*here, key, 0)] = spots[(*here, key)]
