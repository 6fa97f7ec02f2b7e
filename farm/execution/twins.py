"""With ``spread: any``, a lost board's trials go to another board of the same kind."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Protocol

from farm.execution.equipment import RunServices
from farm.execution.trial import Ticket
from farm.interfaces.sinks import RunEvent
from farm.model.attempt import BoardFingerprint

MOVED = "trial_moved"
MEMORY_SHARE = 0.02
"""Boards of one type differ by less in what the kernel leaves of their memory (assumed)."""


class TwinLane(Protocol):
    """What moving trials needs to know of a lane."""

    board: str
    profile: str
    left: list[Ticket]
    is_replaced: bool

    @property
    def fingerprint(self) -> BoardFingerprint | None:
        """What the board was found to be; None when it was never reached."""

    @property
    def is_fit(self) -> bool:
        """It was reached, and neither rests nor has given up."""

    async def abandon(self, ticket: Ticket, reason: str) -> None:
        """Close a trial's open attempt."""


def are_twins(one: BoardFingerprint | None, other: BoardFingerprint | None) -> bool:
    """Same module, memory and L4T (or kernel, where there is no L4T).

    A board that was never reached has no results that another's could be taken for: the plan
    chose it by its profile alone, and so may we.
    """
    if one is None or other is None:
        return other is not None
    system = (one.l4t, other.l4t) if one.l4t or other.l4t else (one.kernel, other.kernel)
    memory = abs(one.memory_mb - other.memory_mb)
    return (
        one.model == other.model
        and one.machine == other.machine
        and system[0] == system[1]
        and memory <= MEMORY_SHARE * max(one.memory_mb, other.memory_mb)
    )


def origins(past: Iterable[RunEvent]) -> dict[str, str]:
    """Trial -> the board that it was planned for, by the events of earlier moves."""
    found: dict[str, str] = {}
    for event in past:
        if event.kind == MOVED and isinstance(event.data.get("moved_from"), str):
            found.setdefault(event.trial_id, str(event.data["moved_from"]))
    return found


class Mover:
    """Moves trials between the lanes of one run.

    Args:
        services: the journal, and where to tell.
        give: hands a trial to the lane of a board.
    """

    def __init__(self, services: RunServices, give: Callable[[str, Ticket], None]) -> None:
        self._services, self._give = services, give

    async def move_away(self, lane: TwinLane, lanes: Iterable[TwinLane], reason: str) -> None:
        """Move what may run elsewhere from `lane` to its twins, each to the one with least to do.

        Raises StoreError.
        """
        twins = [other for other in lanes if _may_take(other, lane)]
        if not twins:
            return
        loads = {other.board: len(other.left) for other in twins}
        for ticket in [one for one in lane.left if one.trial.cell.is_any]:
            target = min(loads, key=lambda board: loads[board])
            await lane.abandon(ticket, f"{lane.board} was lost: {reason}")
            moved = await self._journal(ticket, lane.board, target, reason)
            lane.left.remove(ticket)
            lane.is_replaced = True
            loads[target] += 1
            self._give(target, moved)

    async def _journal(self, ticket: Ticket, lost: str, target: str, reason: str) -> Ticket:
        origin = ticket.moved_from or lost
        text = f"moved from {lost} to {target}: {reason}"
        trial = replace(ticket.trial, board=target)
        self._services.tell(
            "trial_moved",
            board=target,
            trial_id=trial.trial_id,
            text=text,
            moved_from=origin,
            previous=lost,
        )
        await self._services.journal.move_trial(trial.trial_id, target, text)
        return replace(ticket, trial=trial, moved_from=origin)


def _may_take(other: TwinLane, lane: TwinLane) -> bool:
    return (
        other is not lane
        and other.is_fit
        and other.profile == lane.profile
        and are_twins(lane.fingerprint, other.fingerprint)
    )
