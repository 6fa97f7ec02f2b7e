"""What the words for power modes in a plan mean on its boards, by their profiles. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from farm.model.plan import Plan
from farm.model.power_mode import PowerMode
from farm.model.profile import BoardProfile
from farm.planning.order import CURRENT, meant_mode


@dataclass(frozen=True, slots=True)
class ModePick:
    """The mode that a word means on the boards of a profile; None if the profile cannot tell.

    `offered` are the modes that the profile knows, none where boards alone know them.
    """

    profile: str
    asked: str
    mode: PowerMode | None
    offered: tuple[str, ...]

    @property
    def text(self) -> str:
        """``MAXN_SUPER (2)``, or why there is none."""
        if self.mode is not None:
            return self.mode.name + ("" if self.mode.id is None else f" ({self.mode.id})")
        if self.asked == CURRENT or not self.offered:
            return "the board decides"
        return f"unsupported; it has {', '.join(self.offered)}"


def pick_modes(plan: Plan, profiles: Mapping[str, BoardProfile]) -> tuple[ModePick, ...]:
    """One pick for each profile and word of the plan, in the plan's order.

    Each board's own table decides when the plan runs; this is what to expect.
    """
    asked = dict.fromkeys((t.cell.profile, t.cell.power_mode.lower()) for t in plan.trials)
    return tuple(
        ModePick(
            name,
            word,
            meant_mode(word, profiles[name]),
            tuple(mode.name for mode in profiles[name].power_modes),
        )
        for name, word in asked
    )
