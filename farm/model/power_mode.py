"""Power modes: what a board offers, what was asked, what was read back."""

from typing import Annotated, Literal

from pydantic import Field

from farm.model.record import Record

ClockPolicy = Literal["default", "locked"]
FanPolicy = Literal["default", "max"] | Annotated[int, Field(ge=0, le=255)]
"""What the fan does: left as it is, or held at a duty of 255ths by farm (``max``: 255)."""


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
    """A power mode that was asked for, resolved, set and read back.

    `budget_w`: the watts that the mode promises to stay below, where its name or the profile
    tells; a label of the vendor's, no measurement.
    """

    asked: str
    name: str
    id: int | None = None
    budget_w: float | None = None
    clocks: ClockPolicy = "default"
    has_changed: bool = False
    has_rebooted: bool = False
    read_back: PowerModeState

    @property
    def pick_text(self) -> str:
        """What was asked and what it is here: ``maxq is 5W (1), 5 W, clocks locked``."""
        name = self.name if self.id is None else f"{self.name} ({self.id})"
        is_word = self.asked.lower() != self.name.lower()
        parts = [f"{self.asked} is {name}" if is_word else name]
        parts += [] if self.budget_w is None else [f"{self.budget_w:g} W"]
        parts += ["clocks locked"] if self.clocks == "locked" else []
        return ", ".join(parts)


class RestoreStep(Record):
    """One command of the list by which a board puts itself back without a host.

    `stdin` is text for it. It is good when it exits with 0, or, where `expects` is given, when
    it says that; `may_fail` where the proof is another step's.
    """

    argv: tuple[str, ...] = Field(min_length=1)
    needs_root: bool = False
    stdin: str = Field(default="", max_length=4096)
    timeout_s: float = Field(default=60.0, gt=0)
    expects: str = ""
    may_fail: bool = False
