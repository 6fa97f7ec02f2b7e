"""Polls one meter on a fixed grid and keeps its trace; all times host monotonic seconds."""

import asyncio
from collections.abc import Callable

from farm.analysis.windows import margin_s
from farm.errors import MeterError
from farm.interfaces.clock import Clock
from farm.interfaces.meter import Meter, MeterFacts
from farm.interfaces.sinks import TraceSink
from farm.model.board import MeterSpec
from farm.model.trace import MeterReading, PowerTrace

SILENT_AFTER_S = 10.0
"""A meter without a reading for so long is not measuring (assumed: ten times a plug's period)."""


class MeterFeed:
    """One meter, polled while it is open, for whoever needs its trace.

    `lock` is held by the board that measures with it: a meter that feeds two boards can
    only tell them apart when one of them works at a time.
    """

    def __init__(
        self, spec: MeterSpec, meter: Meter, clock: Clock, *, is_shared: bool = False
    ) -> None:
        self.spec = spec
        self.is_shared = is_shared
        self.lock = asyncio.Lock()
        self.trace = PowerTrace(spec.name)
        self.facts: MeterFacts | None = None
        self.sinks: list[TraceSink] = []
        self.on_watts: list[Callable[[float], None]] = []
        self._meter = meter
        self._clock = clock
        self._task: asyncio.Task[None] | None = None
        self._opening = asyncio.Lock()
        self._tick = asyncio.Event()
        self._last_reading_s = 0.0

    @property
    def margin_s(self) -> float:
        """How far a trace must reach beyond a window: five refreshes and the lag, at most 5 s."""
        return margin_s(self.spec)

    async def open(self) -> MeterFacts:
        """Identify the meter and begin to poll; done once. Raises MeterError."""
        async with self._opening:
            if self.facts is None:
                self.facts = await self._meter.open()
            if self._task is None:
                self._last_reading_s = self._clock.monotonic()
                self._task = asyncio.create_task(self._poll(), name=f"meter {self.spec.name}")
        return self.facts

    async def close(self) -> None:
        """Stop polling and close the meter."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
        for sink in self.sinks:
            sink.close()
        self.sinks.clear()
        await self._meter.close()
        self.facts = None

    def check_alive(self) -> None:
        """Raise MeterError when no reading came for `SILENT_AFTER_S`."""
        silent_s = self._clock.monotonic() - self._last_reading_s
        if silent_s > SILENT_AFTER_S:
            last = self.trace.misses[-1] if self.trace.misses else None
            why = f" ({last.kind.value}: {last.text})" if last else ""
            raise MeterError(
                "meter",
                f"{self.spec.name} gave no reading for {silent_s:.0f} s{why}",
                remedy=f"Look at the plug {self.spec.host or self.spec.name}, then `farm resume`.",
            )

    async def wait_past(self, t_s: float, timeout_s: float) -> bool:
        """Wait until a sample later than `t_s` is there. False when time ran out."""
        deadline = self._clock.monotonic() + timeout_s
        while not (len(self.trace) and self.trace.t_s[-1] >= t_s):
            left_s = deadline - self._clock.monotonic()
            if left_s <= 0:
                return False
            self._tick.clear()
            try:
                await asyncio.wait_for(self._tick.wait(), left_s)
            except TimeoutError:
                return False
        return True

    async def _poll(self) -> None:
        period_s = 1.0 / self.spec.poll_hz
        start_s = self._clock.monotonic()
        tick = 0
        while True:
            sample = await self._meter.read()
            if isinstance(sample, MeterReading):
                self.trace.append(sample)
                self._last_reading_s = sample.received_s
                for told in self.on_watts:
                    told(sample.power_w)
            else:
                self.trace.misses.append(sample)
            for sink in self.sinks:
                sink.append(sample)
            self._tick.set()
            # An absolute grid: a slow answer costs the polls that it covers, not the phase.
            now_s = self._clock.monotonic()
            tick = max(tick + 1, int((now_s - start_s) / period_s) + 1)
            await self._clock.sleep(max(0.0, start_s + tick * period_s - now_s))
