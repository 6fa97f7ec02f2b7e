"""What a board says of itself while it works. Implementations: `farm/drivers/telemetry/`."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Protocol


class Telemetry(Protocol):
    """Turns a tool's lines into channels, e.g. ``temperature_c:GPU``; missing is unknown."""

    @abstractmethod
    def parse(self, line: str) -> Mapping[str, float]:
        """Channels of one line; unknown fields are left out, never fatal."""
