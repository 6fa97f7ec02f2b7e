"""Power modes: what a board offers, what was asked, what was read back."""

from typing import Literal

from pydantic import Field

from farm.model.record import Record

ClockPolicy = Literal["default", "locked"]


class PowerMode(Record):
    """A named operating mode. None is "no cap" or unknown; clocks in MHz, budget in watts."""

    name: str
    id: int | None = None
    online_cores: int | None = None
    cpu_mhz: float | None = None
    gpu_mhz: float | None = None
    emc_mhz: float | None = None
    tpc_mask: int | None = None
    budget_w: float | None = None
    source: str = ""


class PowerModeTable(Record):
    """The modes of one board, from the board itself. `digest` names this very table."""

    modes: tuple[PowerMode, ...]
    default: str | None = None
    digest: str = ""

    def by_name(self, name: str) -> PowerMode | None:
        """The mode with exactly that name, upper or lower case, or None."""
        for mode in self.modes:
            if mode.name.lower() == name.lower():
                return mode
        return None


class PowerModeState(Record):
    """What the board says it is in now. `is_locked`: clocks pinned to the mode's top."""

    name: str
    id: int | None = None
    is_locked: bool = False
    detail: dict[str, str] = Field(default_factory=dict)


class AppliedPowerMode(Record):
    """A power mode that was asked for, resolved, set and read back."""

    asked: str
    name: str
    id: int | None = None
    clocks: ClockPolicy = "default"
    has_changed: bool = False
    has_rebooted: bool = False
    read_back: PowerModeState
