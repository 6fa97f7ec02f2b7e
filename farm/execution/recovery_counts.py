"""What recovery has used up in a run, counted from its journal, so that a resume goes on."""

from collections import Counter
from collections.abc import Iterable

from farm.interfaces.sinks import RunEvent

RECOVERY = "recovery"
"""The kind of the journal's event for a step: data has `step`, `reason` and `outcome`."""
BEGUN = "begun"
REBOOT, POWER_CYCLE = "reboot", "power_cycle"


class Spent:
    """Reboots and power cycles by board; outlets that an earlier host may have left off."""

    def __init__(self, past: Iterable[RunEvent] = ()) -> None:
        self.reboots: Counter[str] = Counter()
        self.power_cycles: Counter[str] = Counter()
        self.left_off: set[str] = set()
        for event in past:
            if event.kind == RECOVERY:
                self._count(event)

    def _count(self, event: RunEvent) -> None:
        step, is_begin = event.data.get("step"), event.data.get("outcome") == BEGUN
        if step == REBOOT and is_begin:
            self.reboots[event.board] += 1
        if step == POWER_CYCLE and is_begin:
            self.power_cycles[event.board] += 1
            self.left_off.add(event.board)
        if step == POWER_CYCLE and event.data.get("is_on") is True:
            self.left_off.discard(event.board)
