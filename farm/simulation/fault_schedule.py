"""The faults of a running lab: planned, there, over; and the lab's own log of them.

``faults.jsonl`` in the lab's folder has a line for each thing that happens to a fault: UTC time,
boot-time clock, number, board, kind, ``event`` (planned, begin, end, healed, refused), note. What
farm reports of a night can be held against it.
"""

import asyncio
import json
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

from farm.errors import ConfigError, FarmError
from farm.simulation.fault_effects import FaultEffects
from farm.simulation.fault_kinds import BLIP_S, FaultKind
from farm.simulation.faults import MOST_FAULTS, Fault, settings_of

State = Literal["planned", "active", "over", "healed", "refused"]
Event = Literal["planned", "begin", "end", "healed", "refused"]

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class ScheduledFault:
    """A fault that the lab was told of; times in UTC."""

    number: int
    fault: Fault
    due: datetime
    state: State = "planned"
    begun: datetime | None = None
    ended: datetime | None = None
    note: str = ""
    settled: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when it has begun or was refused."""

    def facts(self) -> dict[str, object]:
        """As JSON knows it."""
        return {
            "number": self.number,
            "board": self.fault.board,
            "kind": str(self.fault.kind),
            "settings": " ".join(settings_of(self.fault)),
            "for_s": self.fault.for_s,
            "state": self.state,
            "due": _iso(self.due),
            "begun": _iso(self.begun),
            "ended": _iso(self.ended),
            "note": self.note,
        }


class FaultSchedule:
    """Begins and ends faults at their times.

    Args:
        effects: makes a fault's effect.
        why_not: why the lab cannot have a fault, or "".
        log_file: where each thing that happens gets a line.
    """

    def __init__(
        self, effects: FaultEffects, why_not: Callable[[Fault], str], log_file: Path
    ) -> None:
        self._effects, self._why_not, self._log_file = effects, why_not, log_file
        self.entries: list[ScheduledFault] = []
        self._tasks: dict[int, asyncio.Task[None]] = {}

    def add(self, faults: Sequence[Fault]) -> list[ScheduledFault]:
        """Plan faults; their times count from now. All or none.

        Raises:
            ConfigError: the lab cannot have one of them, or has too many already.
            OSError: the log cannot be written.
        """
        for fault in faults:
            reason = self._why_not(fault)
            if reason:
                raise ConfigError(reason)
        if len(self._tasks) + len(faults) > MOST_FAULTS:
            msg = f"more than {MOST_FAULTS} faults are planned or there"
            raise ConfigError(msg)
        return [self._plan(fault) for fault in faults]

    async def heal(self, boards: Sequence[str] = ()) -> list[ScheduledFault]:
        """End what is there and forget what is planned, of these boards or of all."""
        chosen = [
            entry
            for entry in self.entries
            if entry.number in self._tasks and (not boards or entry.fault.board in boards)
        ]
        tasks = [self._tasks[entry.number] for entry in chosen]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for entry in chosen:
            if entry.state == "planned":  # its task had not even begun
                self._end(entry, "healed")
        return chosen

    async def stop(self) -> None:
        """End everything, because the lab ends."""
        await self.heal()

    def _plan(self, fault: Fault) -> ScheduledFault:
        entry = ScheduledFault(
            len(self.entries) + 1, fault, _now() + timedelta(seconds=fault.after_s)
        )
        self.entries.append(entry)
        self._mark(entry, "planned")
        task = asyncio.create_task(self._live(entry))
        self._tasks[entry.number] = task
        task.add_done_callback(lambda _: self._tasks.pop(entry.number, None))
        return entry

    async def _live(self, entry: ScheduledFault) -> None:
        """From the plan to the end. Cancelled when it is healed."""
        event: Event = "end"
        try:
            if entry.fault.in_payload:
                await self._effects.payload_of(entry.fault)
            await asyncio.sleep(entry.fault.after_s)
            await self._have(entry)
        except asyncio.CancelledError:
            event = "healed"
            raise
        except (FarmError, OSError) as error:
            event, entry.note = "refused", str(error)
        finally:
            self._end(entry, event)

    def _end(self, entry: ScheduledFault, event: Event) -> None:
        entry.state = (
            "refused" if event == "refused" else "healed" if event == "healed" else "over"
        )
        entry.ended = _now()
        entry.settled.set()
        self._mark(entry, event)

    async def _have(self, entry: ScheduledFault) -> None:
        fault = entry.fault
        async with self._effects.of(fault) as over:
            entry.state, entry.begun = "active", _now()
            self._mark(entry, "begin")
            entry.settled.set()
            for_s = fault.for_s
            if for_s is None and fault.kind is FaultKind.POWER_LOSS:
                for_s = BLIP_S
            try:
                async with asyncio.timeout(for_s):
                    await over.wait()
            except TimeoutError:
                return
            entry.note = entry.note or "ended by itself"

    def _mark(self, entry: ScheduledFault, event: Event) -> None:
        fault = entry.fault
        line = {
            "time": _iso(_now()),
            "boot_s": round(time.clock_gettime(time.CLOCK_BOOTTIME), 3),
            "number": entry.number,
            "board": fault.board,
            "kind": str(fault.kind),
            "event": event,
            "note": entry.note,
        }
        with self._log_file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        settings = "".join(f" {one}" for one in settings_of(fault))
        _log.info("%s: fault %s: %s%s %s", fault.board, fault.kind, event, settings, entry.note)


def _now() -> datetime:
    return datetime.now(UTC)


def _iso(moment: datetime | None) -> str | None:
    return moment.isoformat(timespec="milliseconds") if moment else None
