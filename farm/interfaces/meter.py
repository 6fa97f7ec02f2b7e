"""A meter. Implementations: `farm/drivers/meters/`; contract: `farm.testing.meter_contract`."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Protocol

from farm.model.trace import MeterMiss, MeterReading


@dataclass(frozen=True, slots=True)
class MeterFacts:
    """Who answers: `identity` names this very device (serial, MAC)."""

    model: str
    identity: str
    firmware: str = ""
    is_simulated: bool = False


class Meter(Protocol):
    """Reads electricity. One request in flight at a time; the driver keeps its own deadline."""

    @abstractmethod
    async def open(self) -> MeterFacts:
        """Connect and identify. Raises MeterError with what was seen and what to do."""

    @abstractmethod
    async def read(self) -> MeterReading | MeterMiss:
        """One reading, or a typed miss; never raises for what a device can do wrong."""

    @abstractmethod
    async def close(self) -> None:
        """Close; never raises."""
