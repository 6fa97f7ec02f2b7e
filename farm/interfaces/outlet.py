"""A switchable outlet. Implementations: `farm/drivers/outlets/`."""

from abc import abstractmethod
from typing import Protocol


class Outlet(Protocol):
    """Switches electricity. All may raise MeterError."""

    @abstractmethod
    async def is_on(self) -> bool:
        """Read the state."""

    @abstractmethod
    async def switch(self, *, to_on: bool) -> bool:
        """Switch, read back, return the state read."""
