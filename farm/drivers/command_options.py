"""What stands under ``options:`` of a ``command`` meter or outlet, and how its lines are read."""

import json
import re
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from farm.drivers.meter_dialogue import WATT_HOURS, WATTS, Measured, NoReading, brief
from farm.drivers.meter_dialogue import optional as maybe
from farm.drivers.meter_dialogue import required as number
from farm.drivers.meter_http import at_path
from farm.model.record import Record
from farm.model.trace import MissKind


class CommandOptions(Record):
    """`argv` measures; `on_argv`, `off_argv` and `state_argv` switch and tell.

    In ``oneshot`` mode `argv` is run for each reading and its last line counts, in ``stream``
    mode it runs on and each line counts. A line is a number, or `pattern` finds it (its group
    ``power`` or its first; a group ``energy`` if there is one), or it is JSON and `path` and
    `energy_path` lead to it.
    """

    argv: tuple[str, ...] = Field(min_length=1)
    mode: Literal["oneshot", "stream"] = "oneshot"
    pattern: str | None = None
    path: str | None = None
    energy_path: str | None = None
    unit: Literal["mW", "W", "kW"] = "W"
    energy_unit: Literal["mWh", "Wh", "kWh", "MWh", "J", "Wmin"] = "Wh"
    decimal: Literal[".", ","] = "."
    on_argv: tuple[str, ...] = ()
    off_argv: tuple[str, ...] = ()
    state_argv: tuple[str, ...] = ()

    @field_validator("argv", "on_argv", "off_argv", "state_argv")
    @classmethod
    def _starts(cls, argv: tuple[str, ...]) -> tuple[str, ...]:
        if any("\0" in word for word in argv) or argv[:1] == ("",):
            raise ValueError("should be a list: the program, then its arguments")
        return argv

    @field_validator("pattern")
    @classmethod
    def _compiles(cls, pattern: str | None) -> str | None:
        try:
            groups = re.compile(pattern or "()").groups
        except re.error as error:
            raise ValueError(f"is no regular expression: {error}") from error
        if not groups:
            raise ValueError("should have a group, such as (?P<power>[0-9.]+)")
        return pattern

    @model_validator(mode="after")
    def _has_one_way(self) -> Self:
        if self.pattern is not None and self.path is not None:
            raise ValueError('either "pattern" or "path"')
        return self

    def measured(self, line: str) -> Measured:
        """What a line says. Raises NoReading, ValueError."""
        power: object
        energy: object = None
        if self.path is not None:
            told = json.loads(line)
            power = at_path(told, self.path)
            energy = at_path(told, self.energy_path) if self.energy_path else None
        elif self.pattern is not None:
            match = re.search(self.pattern, line)
            if match is None:
                raise NoReading(MissKind.PROTOCOL, f"the pattern finds nothing in {brief(line)!r}")
            groups = match.groupdict()
            power, energy = groups.get("power", match[1]), groups.get("energy")
        else:
            power = line.strip()
        return Measured(
            number(self._plain(power), "power", WATTS[self.unit]),
            energy_wh=maybe(self._plain(energy), WATT_HOURS[self.energy_unit]),
        )

    def _plain(self, value: object) -> object:
        if self.decimal == "," and isinstance(value, str):
            return value.replace(".", "").replace(",", ".")
        return value
