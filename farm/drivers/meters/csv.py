"""A CSV file that another program writes while farm reads: each new line is a reading.

In the inventory::

    meters:
      logger-1:
        kind: csv
        options: {file: /var/log/watts.csv, power: "P1 [W]", delimiter: ";", decimal: ","}
        update_s: 1
        deadline_s: 3

``power`` and ``energy`` are columns: a name of the header line, or a number from 0 where there is
no header. A reading's time is when its line was seen, within `LOOK_S`; time columns are not used,
and what the file held before is no reading. A file that is replaced or cut is begun anew.
"""

import asyncio
import csv
import os
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Literal

from pydantic import Field

from farm.drivers.meter_dialogue import (
    WATT_HOURS,
    WATTS,
    Measured,
    NoReading,
    PolledMeter,
    optional,
    required,
)
from farm.interfaces.meter import MeterFacts
from farm.model.board import MeterSpec
from farm.model.record import Record
from farm.model.trace import MissKind

LOOK_S = 0.05
"""How often the file is looked at while a reading is waited for."""

MAX_BYTES = 1 << 20


class CsvOptions(Record):
    """Which file, and where in it."""

    file: Path
    power: str | int = Field(default=0)
    energy: str | int | None = None
    unit: Literal["mW", "W", "kW"] = "W"
    energy_unit: Literal["mWh", "Wh", "kWh", "MWh", "J", "Wmin"] = "Wh"
    delimiter: str = Field(default=",", min_length=1, max_length=1)
    decimal: Literal[".", ","] = "."

    @property
    def has_header(self) -> bool:
        """Columns by name need one."""
        return isinstance(self.power, str) or isinstance(self.energy, str)


class CsvMeter(PolledMeter):
    """One file that grows."""

    Options = CsvOptions
    needs_host = False

    def __init__(
        self,
        spec: MeterSpec,
        options: CsvOptions,
        secret: str | None,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(spec, monotonic=monotonic)
        del secret  # a file has no login
        self._options = options
        self._inode, self._place = -1, 0
        self._header: list[str] = []

    async def _identify(self) -> MeterFacts:
        self._begin(skip=True)
        return MeterFacts("CSV file", str(self._options.file.absolute()))

    async def _measure(self) -> Measured:
        while True:
            line = self._newest_line()
            if line is not None:
                return self._measured(line)
            await asyncio.sleep(LOOK_S)

    def _begin(self, *, skip: bool) -> None:
        """Take note of the file's header and its end: what is there already is old."""
        with self._opened() as file:
            facts = os.fstat(file.fileno())
            self._inode = facts.st_ino
            self._place = 0
            if self._options.has_header:
                header = file.readline(MAX_BYTES)
                if not header.endswith(b"\n"):
                    raise NoReading(MissKind.NO_DATA, f"{self._options.file} has no header line")
                self._header = [name.strip() for name in self._fields(header.rstrip(b"\r\n"))]
                self._place = file.tell()
            if skip:
                whole = facts.st_size
                file.seek(max(self._place, whole - MAX_BYTES))
                tail = file.read(MAX_BYTES)
                self._place = file.tell() - (len(tail) - tail.rfind(b"\n") - 1)

    def _newest_line(self) -> bytes | None:
        """The last complete line since the one before, or None."""
        facts = self._options.file.stat()
        if facts.st_ino != self._inode or facts.st_size < self._place:
            self._begin(skip=False)
        with self._opened() as file:
            size = os.fstat(file.fileno()).st_size
            start = max(self._place, size - MAX_BYTES)
            file.seek(start)
            added = file.read(MAX_BYTES)
        end = added.rfind(b"\n")
        if end < 0:
            if len(added) >= MAX_BYTES:
                raise NoReading(MissKind.PROTOCOL, f"a line of over {MAX_BYTES} bytes")
            return None
        self._place = start + end + 1
        lines = [line for line in added[:end].splitlines() if line.strip()]
        return lines[-1] if lines else None

    def _measured(self, line: bytes) -> Measured:
        fields = self._fields(line)
        return Measured(
            required(
                self._column(fields, self._options.power), "power", WATTS[self._options.unit]
            ),
            energy_wh=optional(
                self._column(fields, self._options.energy), WATT_HOURS[self._options.energy_unit]
            ),
        )

    def _column(self, fields: list[str], column: str | int | None) -> str | None:
        if column is None:
            return None
        if isinstance(column, str):
            if column not in self._header:
                known = ", ".join(self._header)[:200]
                raise NoReading(MissKind.NO_DATA, f"no column {column!r}; there are {known}")
            column = self._header.index(column)
        if column >= len(fields):
            raise NoReading(MissKind.PROTOCOL, f"a line of {len(fields)} columns")
        text = fields[column].strip()
        return text.replace(".", "").replace(",", ".") if self._options.decimal == "," else text

    def _fields(self, line: bytes) -> list[str]:
        try:
            text = line.decode("utf-8-sig", "replace")
            return next(csv.reader([text], delimiter=self._options.delimiter), [])
        except csv.Error as error:
            raise NoReading(MissKind.PROTOCOL, str(error)) from error

    def _opened(self) -> BinaryIO:
        """The file for reading. Raises OSError, also for what is no regular file."""
        descriptor = os.open(self._options.file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise OSError(f"{self._options.file} is no regular file")
        return os.fdopen(descriptor, "rb")

    async def _disconnect(self) -> None:
        """Nothing is kept open between readings, so that a replaced file is seen."""
