"""The host's own clock."""

import asyncio
import time
from datetime import UTC, datetime

from farm.interfaces.clock import Clock


class SystemClock(Clock):
    """Monotonic time, UTC, and asyncio's sleep."""

    def monotonic(self) -> float:
        """Seconds on CLOCK_MONOTONIC."""
        return time.monotonic()

    def now(self) -> datetime:
        """The present time, in UTC."""
        return datetime.now(UTC)

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)
