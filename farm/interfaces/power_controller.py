"""The operating mode of a board. Implementations: `farm/drivers/power_modes/`."""

from abc import abstractmethod
from typing import Protocol

from farm.model.power_mode import AppliedPowerMode, ClockPolicy, PowerModeState, PowerModeTable


class PowerController(Protocol):
    """Sets a board's power mode and proves it. All may raise PowerModeError and TransportError."""

    @abstractmethod
    async def modes(self) -> PowerModeTable:
        """The board's own table."""

    @abstractmethod
    async def current(self) -> PowerModeState:
        """Read the present mode and whether clocks are locked."""

    @abstractmethod
    async def apply(self, asked: str, clocks: ClockPolicy) -> AppliedPowerMode:
        """Resolve `asked` (a name, ``maxn``, ``maxq``, ``maxp``, ``current``), set, read back.

        Raises UnsupportedPowerModeError with the list of what exists, PowerModeError when
        something else was read back or the board asks for a reboot.
        """

    @abstractmethod
    async def restore(self, original: PowerModeState) -> None:
        """Put back what `current` told before the run; read back."""
