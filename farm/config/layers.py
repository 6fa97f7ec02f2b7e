"""One entry made of layers: defaults, groups, the entry itself. Later layers win.

Mappings are merged key by key, tags are united, everything else is replaced as a whole. For
each value it is kept where in the file it came from. Pure.
"""

import re
from collections.abc import Mapping, Sequence

from pydantic import BaseModel, JsonValue

from farm.config.document import Document, Location, Problem, Spot
from farm.config.model_errors import annotations_at
from farm.config.ranges import RangeName, fill, has_placeholder

UNITED = "tags"
"""The one key whose lists are united over the layers."""


class Layered:
    """An entry in the making: its data, and for each value below it the place in the file.

    Args:
        document: the file.
        model: what the entry will be; tells where a number made of text is wanted.
        name: the entry's name and its number in the range.
    """

    def __init__(self, document: Document, model: type[BaseModel], name: RangeName) -> None:
        self.document, self.model, self.name = document, model, name
        self.data: dict[str, JsonValue] = {}
        self.origins: dict[Location, Location] = {}
        self.problems: list[Problem] = []

    def add(self, location: Location, *, without: Sequence[str] = ()) -> None:
        """Lay the mapping at `location` of the file over what is there."""
        layer = self.document.mapping(location)
        fields = {key: value for key, value in layer.items() if key not in without}
        self._merge(self.data, fields, (), location)

    def spots(self, location: Location) -> dict[Location, Spot]:
        """Where everything stands, as if the entry stood at `location`."""
        spots = self.document.spots
        return {
            (*location, *place): spots[origin]
            for place, origin in self.origins.items()
            if origin in spots
        }

    def _merge(
        self,
        into: dict[str, JsonValue],
        layer: Mapping[str, JsonValue],
        place: Location,
        origin: Location,
    ) -> None:
        for key, value in layer.items():
            here, there = (*place, key), (*origin, key)
            old = into.get(key)
            if isinstance(old, dict) and isinstance(value, dict):
                self.origins[here] = there
                self._merge(old, value, here, there)
            elif here == (UNITED,) and isinstance(old, list) and isinstance(value, list):
                self._unite(old, value, here, there)
            else:
                self._forget(here)
                into[key] = self._filled(value, here, there)

    def _unite(
        self, old: list[JsonValue], more: list[JsonValue], place: Location, origin: Location
    ) -> None:
        for index, value in enumerate(more):
            filled = self._filled(value, (*place, len(old)), (*origin, index))
            if filled not in old:
                old.append(filled)

    def _forget(self, place: Location) -> None:
        """Drop the places below a value that is replaced."""
        if place in self.origins:
            length = len(place)
            for known in [known for known in self.origins if known[:length] == place]:
                del self.origins[known]

    def _filled(self, value: JsonValue, place: Location, origin: Location) -> JsonValue:
        """A copy of the value with its placeholders replaced, its places remembered."""
        self.origins[place] = origin
        if isinstance(value, dict):
            return {
                key: self._filled(inner, (*place, key), (*origin, key))
                for key, inner in value.items()
            }
        if isinstance(value, list):
            return [
                self._filled(inner, (*place, index), (*origin, index))
                for index, inner in enumerate(value)
            ]
        if not isinstance(value, str) or not has_placeholder(value):
            return value
        try:
            text = fill(value, self.name.number)
        except ValueError as error:
            self.problems.append(self.document.problem(origin, str(error)))
            return value
        return int(text) if self._is_number(text, place) else text

    def _is_number(self, text: str, place: Location) -> bool:
        """Whether a filled text is meant as a number: by its look and by what the model wants."""
        if not re.fullmatch(r"-?\d{1,18}", text):
            return False
        wanted = annotations_at(self.model, place)
        if int in wanted or float in wanted:
            return True
        # Free values (a driver's options): "01" stays text, for it may be part of a name.
        return str not in wanted and str(int(text)) == text
