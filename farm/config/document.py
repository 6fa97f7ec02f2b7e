"""A file's data with the place of every value, so that each fault names line and column.

In: plain data (from `farm.config.yaml_file`) and positions. Out: validated models, or
`ConfigError` with all that is wrong. Lines and columns count from 1.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from pydantic import BaseModel, JsonValue, ValidationError

from farm.config.model_errors import has_step, model_faults, take_step
from farm.errors import ConfigError

Location = tuple[str | int, ...]
"""The way from the top of the file to a value: keys and list indexes."""

ModelT = TypeVar("ModelT", bound=BaseModel)

MAX_SHOWN = 20
"""Problems printed at once; a file of another kind would fill the screen."""


class Spot(NamedTuple):
    """Where a value stands: (line, column) of its key (or list item) and of the value itself."""

    key: tuple[int, int]
    value: tuple[int, int]


class Problem(NamedTuple):
    """One thing that is wrong in a file, and where."""

    line: int
    column: int
    message: str


def config_error(file: str, problems: Iterable[Problem]) -> ConfigError:
    """One error for all problems: the first in the file's order leads, the others follow."""
    ordered = sorted(set(problems))
    first, others = ordered[0], ordered[1:MAX_SHOWN]
    lines = [first.message]
    lines += [f"{file}:{other.line}:{other.column}: {other.message}" for other in others]
    if len(ordered) > MAX_SHOWN:
        lines.append(f"and {len(ordered) - MAX_SHOWN} more problems")
    return ConfigError("\n".join(lines), file=file, line=first.line, column=first.column)


@dataclass(frozen=True)
class Document:
    """One file: its name as the user gave it, plain data, and where each value stands."""

    file: str
    data: dict[str, JsonValue]
    spots: Mapping[Location, Spot] = field(default_factory=dict)

    def get(self, location: Location) -> JsonValue:
        """The value at a location, None where nothing is."""
        value: JsonValue = self.data
        for step in location:
            if not has_step(value, step):
                return None
            value = take_step(value, step)
        return value

    def mapping(self, location: Location) -> dict[str, JsonValue]:
        """The mapping at a location, empty where nothing is. Raises ConfigError."""
        value = self.get(location)
        if value is None:
            return {}
        if not isinstance(value, dict):
            name = location[-1] if location else "the file"
            raise self.error(location, f'"{name}" should be a mapping (lines of "key: value")')
        return value

    def position(self, location: Location, *, at_key: bool = False) -> tuple[int, int]:
        """Line and column of a value or its key; of the nearest parent where it is absent."""
        if location in self.spots:
            spot = self.spots[location]
            return spot.key if at_key else spot.value
        for length in range(len(location) - 1, -1, -1):
            if location[:length] in self.spots:
                return self.spots[location[:length]].key
        return (1, 1)

    def problem(self, location: Location, message: str, *, at_key: bool = False) -> Problem:
        """A problem at that place."""
        line, column = self.position(location, at_key=at_key)
        return Problem(line, column, message)

    def error(self, location: Location, message: str, *, at_key: bool = False) -> ConfigError:
        """An error at that place, ready to be raised."""
        return config_error(self.file, [self.problem(location, message, at_key=at_key)])

    def parse(
        self,
        location: Location,
        model: type[ModelT],
        *,
        given: Mapping[str, JsonValue] | None = None,
        also_valid: tuple[str, ...] = (),
    ) -> tuple[ModelT | None, list[Problem]]:
        """Validate the mapping at a location.

        Args:
            location: where it stands; nothing there counts as an empty mapping.
            model: what it should be.
            given: fields that come from elsewhere, not from the file (a board's name).
            also_valid: keys that the file may have there though the model has not; told
                in messages about unknown keys only.

        Returns:
            The model, or None with all problems.
        """
        given = given or {}
        value = self.mapping(location)
        problems = [
            self.problem(
                (*location, key), f'"{key}" is not set here: it is the key above', at_key=True
            )
            for key in given
            if key in value
        ]
        whole = {**value, **given}
        try:
            # JSON mode is strict about types, yet takes lists as tuples and text as paths.
            parsed = model.model_validate_json(json.dumps(whole), strict=True)
        except ValidationError as error:
            faults = model_faults(error, model, whole, hidden=tuple(given), also_valid=also_valid)
            problems += [
                self.problem((*location, *fault.location), fault.message, at_key=fault.at_key)
                for fault in faults
            ]
            return None, problems
        return (None if problems else parsed), problems

    def validate(self, location: Location, model: type[ModelT]) -> ModelT:
        """The mapping at a location as a model, e.g. a meter driver's options.

        Raises ConfigError with every problem at its line and column.
        """
        parsed, problems = self.parse(location, model)
        if parsed is None:
            raise config_error(self.file, problems)
        return parsed
