"""What a board says of itself while it works. Implementations: `farm/drivers/telemetry/`."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from farm.model.telemetry import ForeignLoad


class Telemetry(Protocol):
    """Turns a tool's lines into channels, e.g. ``temperature_c:GPU``; missing is unknown.

    One object sees the lines of one process of the tool, in their order.
    """

    @abstractmethod
    def parse(self, line: str) -> Mapping[str, float]:
        """Channels of one line; unknown fields are left out, never fatal."""

    def command(self, interval_s: float) -> tuple[str, ...]:
        """The tool and its arguments for a line each `interval_s`; () if there is none.

        A board that does not have the tool tells what its files hold.
        """
        return ()


@dataclass(frozen=True, slots=True)
class TelemetryReading:
    """Channels that the agent read from files at `t_s` (board boot-time seconds)."""

    t_s: float
    values: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class TelemetryLine:
    """A line that the tool printed; `t_s` is when the agent read it."""

    t_s: float
    text: str


@dataclass(frozen=True, slots=True)
class TelemetryBatch:
    """What came at once, by time. `dropped`: so many were lost on the board since the last."""

    source: Literal["tool", "files"]
    items: tuple[TelemetryReading | TelemetryLine | ForeignLoad, ...]
    dropped: int = 0
