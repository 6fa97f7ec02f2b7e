"""The inventory's short form unfolds: ranges become names, layers become whole entries. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from pydantic import JsonValue

from farm.config.document import Document, Location, Problem, Spot
from farm.config.layers import Layered
from farm.config.model_errors import unknown
from farm.config.ranges import RangeName, expand_name
from farm.model.board import Board, MeterSpec

Entries = dict[str, JsonValue]
AS_THEY_ARE = ("limits", "notify")
"""Sections without ranges and layers."""


@dataclass
class Expansion:
    """The unfolded file so far, and what was wrong in it."""

    source: Document
    spots: dict[Location, Spot] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    used_groups: set[str] = field(default_factory=set)

    def complain(self, location: Location, message: str, *, at_key: bool = False) -> None:
        """Note a problem at a place of the file."""
        self.problems.append(self.source.problem(location, message, at_key=at_key))

    def keep(self, layered: Layered, location: Location, origin: Location) -> JsonValue:
        """Take over an entry: its places and problems; its data is returned."""
        self.spots[location] = self.source.spots[origin]
        self.spots.update(layered.spots(location))
        self.problems += layered.problems
        return layered.data


def expand_inventory(source: Document) -> tuple[Document, list[Problem]]:
    """Unfold an inventory.

    Returns:
        A document with ``boards``, ``meters``, ``limits`` as whole entries by name, and
        ``groups`` with the groups that no board uses (so that they can be checked too);
        and the problems found on the way. Every value keeps its place in the file.
    """
    expansion = Expansion(source)
    boards: Entries = {}
    for name, origin in _names(expansion, "boards"):
        layered = Layered(source, Board, name)
        layered.add(("defaults",))
        for group in _groups_of(expansion, (*origin, "group")):
            layered.add(("groups", group), without=("groups",))
        layered.add(origin, without=("group",))
        boards[name.name] = expansion.keep(layered, ("boards", name.name), origin)
    meters: Entries = {}
    for name, origin in _names(expansion, "meters"):
        layered = Layered(source, MeterSpec, name)
        layered.add(("meter_defaults",))
        layered.add(origin)
        meters[name.name] = expansion.keep(layered, ("meters", name.name), origin)
    data: dict[str, JsonValue] = {
        "boards": boards,
        "meters": meters,
        "groups": _unused_groups(expansion),
        **{section: source.get((section,)) for section in AS_THEY_ARE},
    }
    kept = {place: spot for place, spot in source.spots.items() if place[0] in AS_THEY_ARE}
    document = Document(source.file, data, {**kept, **expansion.spots})
    return document, expansion.problems


def _names(expansion: Expansion, section: str) -> Iterator[tuple[RangeName, Location]]:
    """Each name of a section with the place of the key it comes from, none twice."""
    seen: dict[str, Location] = {}
    for key in expansion.source.mapping((section,)):
        origin: Location = (section, key)
        try:
            names = expand_name(key)
        except ValueError as error:
            expansion.complain(origin, str(error), at_key=True)
            continue
        for name in names:
            if name.name in seen:
                first = seen[name.name]
                line = expansion.source.position(first, at_key=True)[0]
                expansion.complain(
                    origin,
                    f'"{name.name}" is given twice: also by "{first[1]}" in line {line}',
                    at_key=True,
                )
                continue
            seen[name.name] = origin
            yield name, origin


def _groups_of(
    expansion: Expansion, location: Location, path: tuple[str, ...] = ()
) -> Iterator[str]:
    """The groups that a ``group``/``groups`` key names, parents first, lowest rank first."""
    value = expansion.source.get(location)
    entries: list[tuple[Location, JsonValue]] = [(location, value)]
    if isinstance(value, list):
        entries = [((*location, index), entry) for index, entry in enumerate(value)]
    known = expansion.source.mapping(("groups",))
    for place, name in entries:
        if name is None:
            continue
        if not isinstance(name, str):
            expansion.complain(place, "a group should be named by text, or by a list of names")
        elif name not in known:
            expansion.complain(place, unknown("group", name, known))
        elif name in path:
            expansion.complain(place, f"groups go in a circle: {' > '.join((*path, name))}")
        else:
            expansion.used_groups.add(name)
            yield from _groups_of(expansion, ("groups", name, "groups"), (*path, name))
            yield name


def _unused_groups(expansion: Expansion) -> Entries:
    """The groups that no board uses, as they would look on a board ``x1``."""
    used = set(expansion.used_groups)
    unused: Entries = {}
    for name in expansion.source.mapping(("groups",)):
        if name in used:
            continue
        layered = Layered(expansion.source, Board, RangeName("x1", "1"))
        for parent in _groups_of(expansion, ("groups", name, "groups"), (name,)):
            layered.add(("groups", parent), without=("groups",))
        layered.add(("groups", name), without=("groups",))
        unused[name] = expansion.keep(layered, ("groups", name), ("groups", name))
    return unused
