"""The operating mode of a board. Implementations: `farm/drivers/power_modes/`."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from farm.model.power_mode import (
    AppliedPowerMode,
    ClockPolicy,
    FanPolicy,
    PowerModeState,
    PowerModeTable,
    RestoreStep,
)


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

        Raises UnsupportedPowerModeError with the list of what exists, RebootNeededError when
        the board asks for a reboot, PowerModeError when something else was read back.
        """

    @abstractmethod
    async def restore(self, original: PowerModeState) -> None:
        """Put back what `current` told before the run; read back."""


@runtime_checkable
class RebootingController(Protocol):
    """What a controller can do besides whose board changes into some modes by a reboot."""

    @abstractmethod
    async def request_reboot_into(self, asked: str) -> bool:
        """Let the board go down and come back in the mode; called after RebootNeededError.

        True when it goes down, False when it changed live after all. The link may drop before
        the answer: LinkLostError and CommandTimeoutError then tell the same as True. Raises
        PowerModeError when the board refused. What it came back in is for `apply` to prove.
        """


@runtime_checkable
class UnattendedController(Protocol):
    """What a controller can do besides whose changes the board can undo without a host."""

    @abstractmethod
    async def restore_steps(self, original: PowerModeState) -> Sequence[RestoreStep]:
        """The commands that put `original` back, told before anything is changed."""


@runtime_checkable
class FanController(Protocol):
    """What a controller can do besides whose board has a fan that can be set.

    `PowerController.restore` puts it back where the original's detail has ``fan``.
    """

    @abstractmethod
    async def fan_state(self) -> str:
        """How it is turned now, as a text for the detail ``fan``; "" where there is none."""

    @abstractmethod
    async def set_fan(self, policy: FanPolicy) -> None:
        """Hold the fan and read it back; ``default`` changes nothing.

        Raises UnsupportedPowerModeError where there is none, PowerModeError when it did not
        take the value.
        """
