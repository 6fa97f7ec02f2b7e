"""Values that come by themselves: each is handed out once, with the time of its arrival.

A value that came before the last one that was taken, or that is taken already, is never given
again: silence is silence, whatever was told before it.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace

from farm.drivers.meter_dialogue import Measured, NoReading


class Mailbox:
    """The newest value and whether it was taken. One taker at a time."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._newest: Measured | NoReading | Exception | None = None
        self._came = asyncio.Event()

    def put(self, value: Measured | NoReading | Exception) -> None:
        """Keep a value, or why there is none any more; the newest only."""
        if isinstance(value, Measured):
            value = replace(value, arrived_s=self._monotonic())
        self._newest = value
        self._came.set()

    def clear(self) -> None:
        """Forget what was not taken."""
        self._newest = None
        self._came.clear()

    async def take(self) -> Measured:
        """The newest value not taken yet; waits for one. Raises what was put."""
        await self._came.wait()
        value = self._newest
        self.clear()
        if isinstance(value, Measured):
            return value
        raise value or ConnectionError("nothing came")
