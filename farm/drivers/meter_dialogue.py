"""What all meters do alike: one request in flight, a deadline for each, and no answer trusted.

A driver says how to identify the device and how to measure once; deadlines, reconnecting after a
fault, the pause after a refused login, the range of a reading and the words of an error are here.
"""

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from math import isfinite, nan
from typing import TypeVar

from farm.errors import MeterError
from farm.interfaces.meter import Meter, MeterFacts
from farm.model.board import MeterSpec
from farm.model.trace import MeterMiss, MeterReading, MissKind

AUTH_BACKOFF_S = (30.0, 300.0)
"""First and largest pause after a refused login: repeated tries make devices lock us out."""

WATTS = {"mW": 1e-3, "W": 1.0, "kW": 1e3}
"""What a power unit is in watts; the names are those of Home Assistant."""

WATT_HOURS = {"mWh": 1e-3, "Wh": 1.0, "kWh": 1e3, "MWh": 1e6, "J": 1 / 3600, "Wmin": 1 / 60}
"""What an energy unit is in watt-hours."""

_T = TypeVar("_T")


class NoReading(Exception):  # noqa: N818 - not an error of the program: it becomes a typed miss
    """The device gave no number; `kind` says why."""

    def __init__(self, kind: MissKind, text: str) -> None:
        super().__init__(text)
        self.kind, self.text = kind, text


@dataclass(frozen=True, slots=True)
class Measured:
    """Watts, Wh, volts, amperes; NaN is unknown. `arrived_s`: when a pushed value came."""

    power_w: float
    energy_wh: float = nan
    voltage_v: float = nan
    current_a: float = nan
    is_output_on: bool | None = None
    arrived_s: float | None = None


class Dialogue:
    """Requests to one device, one after the other."""

    def __init__(
        self,
        spec: MeterSpec,
        disconnect: Callable[[], Awaitable[None]],
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._spec, self._disconnect, self._monotonic = spec, disconnect, monotonic
        self._turn = asyncio.Lock()
        self._refused_until_s = 0.0
        self._backoff_s = AUTH_BACKOFF_S[0]
        self.is_open = False

    async def ask(self, request: Callable[[], Awaitable[_T]]) -> _T:
        """The request's answer within the deadline.

        After a fault the connection is closed, so that a late answer is never taken for the next
        one's. Raises NoReading, and nothing else for what a device can do.
        """
        if not self.is_open:
            raise NoReading(MissKind.REFUSED, "the meter is not open")
        if self._monotonic() < self._refused_until_s:
            raise NoReading(MissKind.AUTH, "the login was refused; not asked again yet")
        try:
            async with asyncio.timeout(self._spec.deadline_s), self._turn:
                answer = await self._alone(request)
        except NoReading as miss:
            if miss.kind is MissKind.AUTH:
                self._refused_until_s = self._monotonic() + self._backoff_s
                self._backoff_s = min(2 * self._backoff_s, AUTH_BACKOFF_S[1])
            raise
        except TimeoutError as error:
            text = f"no answer within {self._spec.deadline_s:g} s"
            raise NoReading(MissKind.TIMEOUT, text) from error
        except (OSError, EOFError) as error:
            raise NoReading(MissKind.REFUSED, brief(error)) from error
        except (ValueError, LookupError, OverflowError, RecursionError) as error:
            raise NoReading(MissKind.PROTOCOL, brief(error)) from error
        self._backoff_s = AUTH_BACKOFF_S[0]
        return answer

    async def _alone(self, request: Callable[[], Awaitable[_T]]) -> _T:
        """The request; after whatever ends it badly, also a cancellation, the connection goes."""
        try:
            return await request()
        except BaseException as error:
            kind = error.kind if isinstance(error, NoReading) else None
            if kind not in (MissKind.NO_DATA, MissKind.OUT_OF_RANGE):
                await self._disconnect()
            raise

    async def close(self) -> None:
        """Close; may be repeated."""
        self.is_open = False
        await self._disconnect()

    def error(self, step: str, miss: NoReading) -> MeterError:
        """The miss as an error for the user, with what to do."""
        remedy = {
            MissKind.AUTH: "Check the meter's secret and user in the inventory.",
            MissKind.REFUSED: "Is the device powered and in the network, and is the port right?",
            MissKind.TIMEOUT: "Is the device in the network? A larger deadline_s may help.",
            MissKind.NO_DATA: "Check the meter's options in the inventory: see docs/meters.md.",
            MissKind.OUT_OF_RANGE: "Check the unit, and the meter's min_w and max_w.",
        }.get(miss.kind, "Check the meter's host, port, kind and options in the inventory.")
        if not self._spec.host and miss.kind in (MissKind.REFUSED, MissKind.TIMEOUT):
            remedy = "Look at the meter's program or file, its options and its deadline_s."
        where = f" at {self._spec.host}" if self._spec.host else ""
        seen = f"{self._spec.name}{where}: {miss.kind.value}: {miss.text}"
        return MeterError(step, seen, remedy=remedy)


class PolledMeter(Meter, ABC):
    """A meter that is asked. A driver implements `_identify`, `_measure` and `_disconnect`."""

    needs_host = True
    hint = ""
    """What else a device that does not answer may mean."""

    def __init__(
        self, spec: MeterSpec, *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._spec, self._monotonic = spec, monotonic
        self._dialogue = Dialogue(spec, self._disconnect, monotonic=monotonic)

    @abstractmethod
    async def _identify(self) -> MeterFacts:
        """Connect and say who answers. Raises NoReading, OSError, ValueError."""

    @abstractmethod
    async def _measure(self) -> Measured:
        """One measurement, connecting if need be. Raises NoReading, OSError, ValueError."""

    @abstractmethod
    async def _disconnect(self) -> None:
        """Drop what is connected, if anything; never raises."""

    async def open(self) -> MeterFacts:
        """Identify the device and see that it measures. Raises MeterError."""
        if self.needs_host and not self._spec.host:
            raise MeterError(
                "open meter",
                f"{self._spec.name} has no host",
                remedy="Give the meter a host in the inventory.",
            )
        self._dialogue.is_open = True
        try:
            facts = await self._dialogue.ask(self._identify)
            await self._dialogue.ask(self._measure)
        except NoReading as miss:
            await self.close()
            error = self._dialogue.error("open meter", miss)
            if self.hint and miss.kind is MissKind.TIMEOUT:
                error.remedy = f"{error.remedy} {self.hint}"
            raise error from miss
        return facts

    async def read(self) -> MeterReading | MeterMiss:
        """One reading, or why there is none."""
        sent_s = self._monotonic()
        try:
            got = await self._dialogue.ask(self._measure)
        except NoReading as miss:
            return MeterMiss(sent_s, miss.kind, miss.text)
        received_s = self._monotonic()
        if got.arrived_s is not None:
            sent_s = received_s = got.arrived_s
        # A switched-off outlet may be under the meter's floor; what it says of itself counts.
        low = 0.0 if got.is_output_on is False else max(self._spec.min_w, 0.0)
        if not low <= got.power_w <= self._spec.max_w:
            return MeterMiss(sent_s, MissKind.OUT_OF_RANGE, f"{got.power_w:g} W")
        return MeterReading(
            sent_s=sent_s,
            received_s=received_s,
            power_w=got.power_w,
            energy_wh=got.energy_wh,
            voltage_v=got.voltage_v,
            current_a=got.current_a,
            is_output_on=got.is_output_on,
        )

    async def close(self) -> None:
        """Close; never raises."""
        await self._dialogue.close()


def required(value: object, what: str, scale: float = 1.0) -> float:
    """A number, or text that is one, times `scale`; NaN and infinity are left to the range.

    Raises NoReading: NO_DATA when it is absent, PROTOCOL when it is no number (true is none).
    """
    if value is None:
        raise NoReading(MissKind.NO_DATA, f"the answer holds no {what}")
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise NoReading(MissKind.PROTOCOL, f"{what} is no number: {brief(value)}")
    try:
        return float(value) * scale
    except (ValueError, OverflowError) as error:
        raise NoReading(MissKind.PROTOCOL, f"{what} is no number: {brief(value)}") from error


def optional(value: object, scale: float = 1.0) -> float:
    """A finite number, or text that is one, times `scale`; anything else is unknown, NaN."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return nan
    try:
        found = float(value) * scale
    except (ValueError, OverflowError):
        return nan
    return found if isfinite(found) else nan


def brief(value: object) -> str:
    """What a device said, short and on one line, for a message."""
    if isinstance(value, BaseException):
        value = f"{type(value).__name__}: {value}"
    return repr(value)[:160] if not isinstance(value, str) else " ".join(value.split())[:160]
