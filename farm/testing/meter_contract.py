"""What every meter owes, as a suite that a driver's test inherits.

A driver's author writes a *rig*: a server (or another stand-in) that speaks the device's
protocol on loopback and can misbehave, and a class::

    class TestMyPlug(MeterContract):
        def open_rig(self):
            return MyPlugRig()          # an async context manager, a MeterRig inside

The tests are coroutines: run them with pytest-asyncio in auto mode. Failures raise
AssertionError with what was expected and what came.
"""

import asyncio
from abc import abstractmethod
from collections.abc import Awaitable
from contextlib import AbstractAsyncContextManager
from math import isfinite
from typing import ClassVar, Literal, Protocol, TypeVar

from farm.errors import MeterError
from farm.interfaces.meter import Meter
from farm.model.trace import MeterMiss, MeterReading, MissKind

_T = TypeVar("_T")

Fault = Literal["none", "hang", "refuse", "unauthorized", "garbage", "nan", "negative", "spike"]

DEADLINE_S = 0.3
"""The meters get this deadline where a peer hangs, so that it costs little."""

BOUND_S = 30.0
"""No step may take longer than this, however slow the machine."""

AMPLE_S = 10.0
"""The deadline where nothing hangs; a busy machine needs it."""

RESOLUTION_W = 0.5
"""A meter may round the power that the rig was told to show by so much."""


class MeterRig(Protocol):
    """One device that can misbehave."""

    @abstractmethod
    def meter(self, deadline_s: float) -> Meter:
        """A meter for the device, not opened; readings over 3700 W are out of range."""

    @abstractmethod
    async def set_fault(self, fault: Fault) -> None:
        """What the device does from now on.

        hang: accepts and never answers; refuse: nobody listens, and what was connected is
        cut; unauthorized: no login is good; garbage: an answer that does not parse; nan,
        negative, spike: a number that is none, below zero, above 3700 W.
        """

    @abstractmethod
    def set_power(self, power_w: float) -> None:
        """The power that the device shows."""

    @property
    @abstractmethod
    def requests(self) -> int:
        """Requests seen so far."""

    @property
    @abstractmethod
    def most_at_once(self) -> int:
        """The largest number of requests that were open at the same time."""


class MeterContract:
    """Inherit, implement `open_rig`, and pytest runs these on your driver.

    Set `has_login` to False where there is none to refuse, `refused` to TIMEOUT where nobody
    can tell a silent peer from an absent one (UDP), and `is_pushed` where values come by
    themselves: what was on its way when the device changed may then still be read once.
    """

    has_login: ClassVar[bool] = True
    refused: ClassVar[MissKind] = MissKind.REFUSED
    is_pushed: ClassVar[bool] = False

    def open_rig(self) -> AbstractAsyncContextManager[MeterRig]:
        """Start a device for one test."""
        raise NotImplementedError

    async def test_open_tells_who_answers(self) -> None:
        """The device has a model and an identity of its own."""
        async with self.open_rig() as rig:
            meter = rig.meter(AMPLE_S)
            facts = await _soon(meter.open())
            _demand(bool(facts.model), f"a model, not {facts.model!r}")
            _demand(bool(facts.identity), f"an identity, not {facts.identity!r}")
            await meter.close()

    async def test_read_gives_watts_and_both_times(self) -> None:
        """The power shown, stamped before and after the request."""
        async with self.open_rig() as rig:
            rig.set_power(12.5)
            meter = await _opened(rig)
            reading = await _reading(meter)
            _demand(abs(reading.power_w - 12.5) <= RESOLUTION_W, f"12.5 W, not {reading.power_w}")
            _demand(reading.sent_s <= reading.received_s, "sent before received")
            await meter.close()

    async def test_close_is_final_and_can_be_repeated(self) -> None:
        """A closed meter gives misses."""
        async with self.open_rig() as rig:
            meter = await _opened(rig)
            await _soon(meter.close())
            await _soon(meter.close())
            got = await _soon(meter.read())
            _demand(isinstance(got, MeterMiss), f"a miss after close, not {got}")

    async def test_open_fails_in_time_and_with_words(self) -> None:
        """Whatever is wrong, open raises MeterError that says so."""
        faults: tuple[Fault, ...] = ("refuse", "hang", "garbage", "unauthorized")
        async with self.open_rig() as rig:
            for fault in faults:
                if fault == "unauthorized" and not self.has_login:
                    continue
                await rig.set_fault(fault)
                meter = rig.meter(DEADLINE_S)
                try:
                    await _soon(meter.open())
                except MeterError as error:
                    _demand(bool(error.seen) and bool(error.remedy), f"{fault}: seen and remedy")
                else:
                    _demand(False, f"MeterError for {fault}")
                await _soon(meter.close())
                await rig.set_fault("none")

    async def test_hanging_device_costs_the_deadline_only(self) -> None:
        """A timeout is a miss, and the late answer is never taken for the next one."""
        async with self.open_rig() as rig:
            rig.set_power(20.0)
            meter = await _opened(rig, DEADLINE_S)
            await rig.set_fault("hang")
            await self._miss(meter, MissKind.TIMEOUT)
            await self._miss(meter, MissKind.TIMEOUT)
            rig.set_power(40.0)
            await rig.set_fault("none")
            reading = await _reading(meter)
            _demand(
                abs(reading.power_w - 40.0) <= RESOLUTION_W, f"the new 40 W, not {reading.power_w}"
            )
            await meter.close()

    async def test_refused_connection_is_a_miss_and_recovers(self) -> None:
        """The plug's Wi-Fi goes and comes back."""
        async with self.open_rig() as rig:
            is_silent = self.refused is MissKind.TIMEOUT  # then each miss costs the deadline
            meter = await _opened(rig, DEADLINE_S if is_silent else AMPLE_S)
            await rig.set_fault("refuse")
            await self._miss(meter, self.refused)
            await rig.set_fault("none")
            await _reading(meter)
            await meter.close()

    async def test_refused_login_is_not_hammered(self) -> None:
        """The password changed: every read is an AUTH miss, few of them ask the device."""
        if not self.has_login:
            return
        async with self.open_rig() as rig:
            meter = await _opened(rig)
            await rig.set_fault("unauthorized")
            await self._miss(meter, MissKind.AUTH)
            before = rig.requests
            for _ in range(20):
                await self._miss(meter, MissKind.AUTH)
            asked = rig.requests - before
            _demand(asked <= 2, f"at most 2 requests in 20 reads, not {asked}")  # noqa: PLR2004
            await meter.close()

    async def test_what_is_no_power_is_a_typed_miss(self) -> None:
        """Never a number, never an exception; and the next good answer is a reading."""
        wanted: dict[Fault, MissKind] = {
            "garbage": MissKind.PROTOCOL,
            "nan": MissKind.OUT_OF_RANGE,
            "negative": MissKind.OUT_OF_RANGE,
            "spike": MissKind.OUT_OF_RANGE,
        }
        async with self.open_rig() as rig:
            meter = await _opened(rig)
            for fault, kind in wanted.items():
                await rig.set_fault(fault)
                await self._miss(meter, kind)
                await rig.set_fault("none")
                await _reading(meter)
            await meter.close()

    async def test_one_request_in_flight(self) -> None:
        """Reads at the same time wait for each other: plugs choke on more."""
        async with self.open_rig() as rig:
            meter = rig.meter(BOUND_S)
            await _soon(meter.open())
            await _soon(asyncio.gather(*(meter.read() for _ in range(5))))
            _demand(rig.most_at_once == 1, f"one request at once, not {rig.most_at_once}")
            await meter.close()

    async def _miss(self, meter: Meter, kind: MissKind) -> None:
        """The next reading is a miss of that kind."""
        got = await _soon(meter.read())
        for _ in range(10):
            is_late = isinstance(got, MeterMiss) and got.kind is MissKind.TIMEOUT is not kind
            is_old = self.is_pushed and isinstance(got, MeterReading)
            if not is_late and not is_old:
                break
            got = await _soon(meter.read())
        is_right = isinstance(got, MeterMiss) and got.kind is kind
        _demand(is_right, f"a miss {kind.value}, not {got}")


async def _opened(rig: MeterRig, deadline_s: float = AMPLE_S) -> Meter:
    """An open meter; a busy machine may make a short deadline pass a few times."""
    for _ in range(10):
        meter = rig.meter(deadline_s)
        try:
            await _soon(meter.open())
        except MeterError as error:
            await _soon(meter.close())
            if f"{MissKind.TIMEOUT.value}:" not in error.seen:
                raise
        else:
            return meter
    raise AssertionError(f"expected to open it within {deadline_s} s in ten tries")


async def _reading(meter: Meter) -> MeterReading:
    """A reading; a busy machine may make a short deadline pass a few times."""
    got: MeterReading | MeterMiss | None = None
    for _ in range(10):
        got = await _soon(meter.read())
        if isinstance(got, MeterReading) and isfinite(got.power_w):
            return got
        if isinstance(got, MeterMiss) and got.kind is not MissKind.TIMEOUT:
            break
    raise AssertionError(f"expected a reading, not {got}")


async def _soon(step: Awaitable[_T]) -> _T:
    """Its result, within `BOUND_S`."""
    async with asyncio.timeout(BOUND_S):
        return await step


def _demand(condition: bool, wanted: str) -> None:
    if not condition:
        raise AssertionError(f"expected {wanted}")
