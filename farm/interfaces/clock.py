"""Time, handed in so that tests are exact."""

from abc import abstractmethod
from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """Monotonic seconds for durations, UTC for records, and waiting."""

    @abstractmethod
    def monotonic(self) -> float:
        """Seconds on the host's monotonic clock."""

    @abstractmethod
    def now(self) -> datetime:
        """The present time, in UTC."""

    @abstractmethod
    async def sleep(self, seconds: float) -> None:
        """Wait."""
