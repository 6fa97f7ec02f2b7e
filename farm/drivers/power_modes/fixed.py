"""Boards with one operating mode and nothing to set: a PC, an FPGA board, a Raspberry Pi as is.

In a device profile::

    power_controller: fixed
    power_modes:
      - name: default
"""

from farm.errors import PowerModeError, UnsupportedPowerModeError
from farm.interfaces.agent import BoardCommands
from farm.interfaces.power_controller import PowerController
from farm.model.parameters import short_id
from farm.model.power_mode import (
    AppliedPowerMode,
    ClockPolicy,
    PowerMode,
    PowerModeState,
    PowerModeTable,
)
from farm.model.profile import BoardProfile

_ALIASES = frozenset({"maxn", "maxq", "maxp", "current"})


class FixedPowerController(PowerController):
    """One mode, named by the profile's first power mode, else ``default``."""

    def __init__(self, commands: BoardCommands, profile: BoardProfile) -> None:
        del commands  # nothing on the board is asked or set
        modes = profile.power_modes
        self._mode = modes[0] if modes else PowerMode(name="default", source="the board's only")

    async def modes(self) -> PowerModeTable:
        """The one mode."""
        return PowerModeTable(
            modes=(self._mode,),
            default=self._mode.name,
            digest=short_id([self._mode.model_dump(mode="json")]),
        )

    async def current(self) -> PowerModeState:
        """The one mode, clocks free."""
        return PowerModeState(name=self._mode.name, id=self._mode.id)

    async def apply(self, asked: str, clocks: ClockPolicy) -> AppliedPowerMode:
        """Accept the mode's name and the aliases. Raises UnsupportedPowerModeError."""
        if asked.lower() not in _ALIASES | {self._mode.name.lower()}:
            raise UnsupportedPowerModeError(
                "power mode", f"no {asked!r}; the board has {self._mode.name} only"
            )
        if clocks == "locked":
            raise UnsupportedPowerModeError(
                "lock clocks", "the board offers no way to lock its clocks"
            )
        state = await self.current()
        return AppliedPowerMode(
            asked=asked, name=state.name, id=state.id, clocks=clocks, read_back=state
        )

    async def restore(self, original: PowerModeState) -> None:
        """There is nothing to put back. Raises PowerModeError for another board's state."""
        if original.name != self._mode.name:
            raise PowerModeError(
                "restore", f"the board has {self._mode.name} only, not {original.name}"
            )
