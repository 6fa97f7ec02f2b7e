"""Laboratory instruments that speak SCPI on a raw TCP socket.

In the inventory::

    meters:
      analyser:
        kind: scpi
        host: 192.0.2.40
        port: 10001
        options: {preset: yokogawa-wt3xx, element: 1}
        accuracy: {gain_pct: 0.1}
      other:
        kind: scpi
        host: 192.0.2.41
        options: {preset: generic, query_power: "MEAS:POW?", init: ["CONF:POW"]}

Ranges: fix them for a run (the instrument's own commands, in ``init``): while an instrument
changes its range it measures nothing. An instrument that offers VXI-11, USB or GPIB alone is
reached by a ``command`` meter. Tried on a protocol server, not on a real instrument yet.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from farm.drivers.meter_dialogue import WATTS, Measured, NoReading, PolledMeter, brief, required
from farm.drivers.meter_lines import LineConnection
from farm.interfaces.meter import MeterFacts
from farm.model.board import MeterSpec
from farm.model.record import Record
from farm.model.trace import MissKind

RAW_SOCKET_PORT = 5025
"""IANA's scpi-raw; the usual port of instruments with a raw socket."""


@dataclass(frozen=True, slots=True)
class _Preset:
    query_power: str
    init: tuple[str, ...] = ()


_PRESETS = {
    "generic": _Preset(""),
    # WT310E, WT332E, WT333E: of the default list of ten items an element, the third is P, as
    # MLCommons' power-dev reads it (ptd_client_server, sources/); elements 2 and 3: 13 and 23.
    "yokogawa-wt3xx": _Preset(":NUMERIC:NORMAL:VALUE? {item}", (":NUMERIC:FORMAT ASCII",)),
}
_ITEMS_AN_ELEMENT, _P_AMONG_THEM = 10, 3


class ScpiOptions(Record):
    """`field`: which of several values, with commas between, an answer's power is; from 0."""

    preset: Literal["generic", "yokogawa-wt3xx"] = "generic"
    element: int = Field(default=1, ge=1, le=3)
    query_power: str = ""
    init: tuple[str, ...] = ()
    field: int = Field(default=0, ge=0, le=255)
    unit: Literal["mW", "W", "kW"] = "W"

    @field_validator("query_power", "init")
    @classmethod
    def _is_a_line(cls, value: str | tuple[str, ...]) -> str | tuple[str, ...]:
        lines = (value,) if isinstance(value, str) else value
        if any(not line.isprintable() for line in lines):
            raise ValueError("a command should be one printable line")
        return value

    @model_validator(mode="after")
    def _has_its_question(self) -> Self:
        if not self.power_query.endswith("?") and "? " not in self.power_query:
            raise ValueError('"query_power" should be a query, such as "MEAS:POW?"')
        return self

    @property
    def power_query(self) -> str:
        """The user's, or the preset's."""
        item = (self.element - 1) * _ITEMS_AN_ELEMENT + _P_AMONG_THEM
        return self.query_power or _PRESETS[self.preset].query_power.format(item=item)

    @property
    def init_lines(self) -> tuple[str, ...]:
        """The preset's, then the user's."""
        return _PRESETS[self.preset].init + self.init


class ScpiMeter(PolledMeter):
    """One instrument."""

    Options = ScpiOptions

    def __init__(
        self,
        spec: MeterSpec,
        options: ScpiOptions,
        secret: str | None,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(spec, monotonic=monotonic)
        del secret  # a raw socket has no login
        self._options = options
        self._line = LineConnection(spec, port=RAW_SOCKET_PORT)
        self._identity = ""

    async def _identify(self) -> MeterFacts:
        parts = [part.strip()[:100] for part in (await self._connect()).split(",")]
        if len(parts) < 4:  # noqa: PLR2004 - maker, model, serial, firmware: IEEE 488.2
            raise NoReading(MissKind.PROTOCOL, f"no answer to *IDN?: {brief(','.join(parts))}")
        maker, model, serial, firmware = parts[:4]
        return MeterFacts(f"{maker} {model}".strip(), serial or self._identity, firmware)

    async def _measure(self) -> Measured:
        if not self._line.is_connected:
            told = await self._connect()
            if told != self._identity:
                raise NoReading(MissKind.PROTOCOL, f"another instrument answers: {brief(told)}")
        values = (await self._line.ask(self._options.power_query)).split(",")
        value = values[self._options.field].strip() if self._options.field < len(values) else None
        return Measured(required(value, "power", WATTS[self._options.unit]))

    async def _connect(self) -> str:
        await self._line.close()
        await self._line.connect()
        told = await self._line.ask("*IDN?")
        self._identity = self._identity or told
        for words in self._options.init_lines:
            await self._line.send(words)
        return told

    async def _disconnect(self) -> None:
        await self._line.close()
