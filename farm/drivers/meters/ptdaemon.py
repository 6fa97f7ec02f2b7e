"""SPEC PTDaemon, which drives the power analysers of SPEC and MLPerf runs.

In the inventory::

    meters:
      analyser:
        kind: ptdaemon
        host: 192.0.2.50
        port: 8888
        options: {range_v: 300, range_a: 1}     # fixed ranges: auto range leaves holes

The daemon is started by its owner (it needs SPEC's licence). Lines as public clients of it send
and read them: ``Identify``, ``SR,V,...``, ``Go,MS,0,MARK``, ``RL,*``, ``Stop``. A measurement that
somebody else started is not touched. Its time stamps are local time and not used: a sample's time
is when it was handed over. Negative values are its word for a failed sample. Tried on a protocol
server, not on a real PTDaemon yet.
"""

import contextlib
import time
from collections.abc import Callable

from pydantic import Field

from farm.drivers.meter_dialogue import Measured, NoReading, PolledMeter, brief, optional, required
from farm.drivers.meter_lines import LineConnection
from farm.interfaces.meter import MeterFacts
from farm.model.board import MeterSpec
from farm.model.record import Record
from farm.model.trace import MissKind

PORT = 8888
MAX_SAMPLES = 10_000
"""Of one answer; a night's worth at one a second would be fewer than 50 000."""


class PtdaemonOptions(Record):
    """Ranges in volts and amperes, fixed if given; `sample_ms` 0 is the analyser's own pace."""

    range_v: float | None = Field(default=None, gt=0)
    range_a: float | None = Field(default=None, gt=0)
    sample_ms: int = Field(default=0, ge=0, le=60_000)
    mark: str = Field(default="farm", pattern=r"^[A-Za-z0-9_.-]{1,64}$")


class PtdaemonMeter(PolledMeter):
    """One daemon with one analyser."""

    Options = PtdaemonOptions

    def __init__(
        self,
        spec: MeterSpec,
        options: PtdaemonOptions,
        secret: str | None,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(spec, monotonic=monotonic)
        del secret  # the daemon has no login
        self._options = options
        self._line = LineConnection(spec, port=PORT, end="\r\n")

    async def _identify(self) -> MeterFacts:
        told = await self._connect()
        facts = told.split(",")
        version = next((f for f in facts if f.startswith("version=")), "version=")
        return MeterFacts(
            model=facts[0][:100],
            identity=f"{self._spec.host}:{self._spec.port or PORT}/{facts[0][:100]}",
            firmware=version.removeprefix("version=")[:100],
        )

    async def _measure(self) -> Measured:
        if not self._line.is_connected:
            await self._connect()
        told = await self._line.ask("RL,*")
        if "unread" in told and not told.startswith("Last"):
            raise NoReading(MissKind.NO_DATA, "no sample since the last one")
        count = told.removeprefix("Last ").partition(" ")[0]
        if not told.startswith("Last ") or not count.isdecimal():
            raise NoReading(MissKind.PROTOCOL, f"no samples: {brief(told)}")
        if not 0 < int(count) <= MAX_SAMPLES:
            raise NoReading(MissKind.PROTOCOL, f"{count} samples")
        newest = ""
        for _ in range(int(count)):
            newest = await self._line.line()
        return _sample(newest)

    async def _connect(self) -> str:
        await self._line.close()
        await self._line.connect()
        told = await self._line.ask("Identify")
        if told.count(",") < 3 or "version=" not in told:  # noqa: PLR2004 - name and flags
            raise NoReading(MissKind.PROTOCOL, f"no answer to Identify: {brief(told)}")
        for unit, value in (("V", self._options.range_v), ("A", self._options.range_a)):
            if value is not None:
                await self._demand(f"SR,{unit},{value:g}", f"Range {unit} changed")
        mark = self._options.mark
        await self._demand(f"Go,{self._options.sample_ms},0,{mark}", "Starting untimed")
        return told

    async def _demand(self, words: str, wanted: str) -> None:
        told = await self._line.ask(words)
        if not told.startswith(wanted):
            text = f"{words!r} was answered {brief(told)!r}; does another run use it?"
            raise NoReading(MissKind.PROTOCOL, text)

    async def close(self) -> None:
        """End the measurement that was started here; never raises."""
        if self._line.is_connected and self._dialogue.is_open:
            with contextlib.suppress(NoReading):  # it is gone, and with it its reader
                await self._dialogue.ask(self._stop)
        await super().close()

    async def _stop(self) -> None:
        await self._line.ask("Stop")

    async def _disconnect(self) -> None:
        await self._line.close()


def _sample(line: str) -> Measured:
    """``Time,11-30-2026 12:00:00.123,Watts,22.95,Volts,228.57,Amps,0.2,PF,0.48,Mark,farm``."""
    parts = line.split(",")
    fields = dict(zip(parts[::2], parts[1::2], strict=False))
    if "Time" not in fields:
        raise NoReading(MissKind.PROTOCOL, f"no sample: {brief(line)}")
    return Measured(
        required(fields.get("Watts"), "Watts"),
        voltage_v=optional(fields.get("Volts")),
        current_a=optional(fields.get("Amps")),
    )
