"""Faults of the whole lab: boards or meters that vanish together are not at fault themselves."""

import random
from collections.abc import Awaitable, Callable

from farm.execution.equipment import RunServices

SHARE, LEAST = 0.8, 3
"""So many of at least three, or all of at least two, are the lab and no coincidence (assumed)."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 2.0, 30.0
GRACE_S = 300.0
"""After a power cut boards come back one by one: so long the later ones may take (assumed)."""


class LabWatch:
    """Knows who was lost when, and tells ``lab_fault`` when it is the lab.

    Args:
        what: whom it watches, e.g. ``"boards"``.
        services: clock, limits, and where to tell.
    """

    def __init__(self, what: str, services: RunServices) -> None:
        self._what, self._services = what, services
        self._members: set[str] = set()
        self._lost: dict[str, float] = {}
        self._struck: set[str] = set()
        self._until_s = 0.0

    @property
    def is_fault(self) -> bool:
        """The lab, and not the single member, is at fault now."""
        return bool(self._struck)

    def may_be_lab(self, member: str) -> bool:
        """Others are watched, and may be found lost in a moment, too."""
        return member in self._members and len(self._members - self._lost.keys()) > 0

    def seen(self, member: str) -> None:
        """It is well."""
        self._members.add(member)
        self._lost.pop(member, None)
        back = self._struck - self._lost.keys()
        if self._struck and 2 * len(back) >= len(self._struck):
            self._over(f"{len(back)} of {len(self._struck)} {self._what} are back")

    def leave(self, member: str) -> None:
        """It has nothing more to do: what becomes of it tells nothing."""
        self._members.discard(member)
        self._lost.pop(member, None)
        self._struck.discard(member)

    def lose(self, member: str) -> None:
        """It is gone. A member that was never seen tells nothing of the lab."""
        if member not in self._members or member in self._lost:
            return
        self._lost[member] = self._services.clock.monotonic()
        recent = self._recent()
        before = self._lost.keys() - recent
        whole = len(self._members - before)
        is_all = len(recent) == whole > 1
        is_most = len(recent) >= LEAST and len(recent) >= SHARE * whole
        if self.is_fault:
            self._struck |= recent
        elif is_all or is_most:
            self._begin(recent, whole)

    async def wait_out(self, member: str, answers: Callable[[], Awaitable[bool]]) -> bool:
        """While the lab is at fault, ask with growing pauses whether the member is back.

        False when there is no fault, or the member was not back in time: then it is its own.
        """
        if member not in self._struck:
            return False
        clock, pause_s = self._services.clock, FIRST_PAUSE_S
        chance = random.Random(member)  # noqa: S311 - jitter, no secret
        grace_s: float | None = None
        while True:
            if await answers():
                self.seen(member)
                return True
            now_s = clock.monotonic()
            if self.is_fault and now_s >= self._until_s:
                self._over(f"waited {self._services.limits.recovery.lab_wait_s:g} s in vain")
                return False
            if not self.is_fault:
                grace_s = now_s + GRACE_S if grace_s is None else grace_s
                if now_s >= min(grace_s, self._until_s):
                    return False
            await clock.sleep(pause_s * (0.5 + 0.5 * chance.random()))
            pause_s = min(LONGEST_PAUSE_S, 1.5 * pause_s)

    def _recent(self) -> set[str]:
        if not self._lost:
            return set()
        together_s = self._services.limits.recovery.together_s
        newest_s = max(self._lost.values())
        return {name for name, lost_s in self._lost.items() if newest_s - lost_s <= together_s}

    def _begin(self, struck: set[str], whole: int) -> None:
        limit_s = self._services.limits.recovery.lab_wait_s
        self._struck = set(struck)
        self._until_s = self._services.clock.monotonic() + limit_s
        self._services.tell(
            "lab_fault",
            text=f"{len(struck)} of {whole} {self._what} vanished together: a switch, the power "
            f"or the network of the lab. Waiting up to {limit_s:g} s",
            what=self._what,
            members=sorted(struck),
        )

    def _over(self, text: str) -> None:
        self._struck = set()
        self._services.tell("lab_fault_over", text=f"{self._what}: {text}", what=self._what)
