"""What a host does beside its run: shows that it lives, notices sleep and clock steps.

Durations of farm are CLOCK_MONOTONIC, which on Linux stands still while the host sleeps
(clock_gettime(2)); CLOCK_BOOTTIME goes on. The difference of the two grows by each sleep, so it
tells of one. Boards enforce time limits and leases by their own boot-time clocks, which neither
sleep nor a step of the host's time of day touches.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from farm.errors import RunHeldError, StoreError

BEAT_S = 5.0
SHORTEST_SLEEP_S = 2.0
"""Below this a sleep disturbs nothing that a lost packet would not."""
SMALLEST_STEP_S = 2.0
"""NTP slews smaller errors; what it steps is larger."""

_log = logging.getLogger(__name__)


class HostClocks(Protocol):
    """The host's three clocks, in seconds."""

    def monotonic(self) -> float:
        """Stands still while the host sleeps."""

    def boottime(self) -> float:
        """Goes on while the host sleeps."""

    def utc(self) -> float:
        """Since 1970; may be stepped."""


class SystemClocks(HostClocks):
    """The kernel's."""

    def monotonic(self) -> float:
        """CLOCK_MONOTONIC."""
        return time.monotonic()

    def boottime(self) -> float:
        """CLOCK_BOOTTIME."""
        return time.clock_gettime(time.CLOCK_BOOTTIME)

    def utc(self) -> float:
        """CLOCK_REALTIME."""
        return datetime.now(UTC).timestamp()


@dataclass(slots=True)
class ClockWatch:
    """Compares the clocks at each look; `tell` takes an event's kind and text."""

    clocks: HostClocks
    tell: Callable[[str, str], None]
    _asleep_s: float = 0.0
    _ahead_s: float = 0.0

    def __post_init__(self) -> None:
        self._asleep_s, self._ahead_s = self._read()

    def look(self) -> None:
        """Tell what happened since the last look."""
        asleep_s, ahead_s = self._read()
        slept_s, stepped_s = asleep_s - self._asleep_s, ahead_s - self._ahead_s
        self._asleep_s, self._ahead_s = asleep_s, ahead_s
        if slept_s >= SHORTEST_SLEEP_S:
            text = f"this host slept for {slept_s:.0f} s: boards went on, links are made anew"
            self.tell("host_suspended", text)
        if abs(stepped_s) >= SMALLEST_STEP_S:
            way = "forward" if stepped_s > 0 else "back"
            text = (
                f"this host's time of day went {way} by {abs(stepped_s):.0f} s: times in "
                "records jump, durations and measurements do not"
            )
            self.tell("clock_stepped", text)

    def _read(self) -> tuple[float, float]:
        boottime_s = self.clocks.boottime()
        return boottime_s - self.clocks.monotonic(), self.clocks.utc() - boottime_s


async def show_life(
    beat: Callable[[], None],
    tell: Callable[[str, str], None],
    clocks: HostClocks,
    sleep: Callable[[float], Awaitable[None]],
) -> None:
    """Beat every `BEAT_S` until cancelled.

    Args:
        beat: writes the heartbeat; called in a thread.
        tell: takes an event's kind and text.
        clocks: the host's.
        sleep: waits.

    Raises:
        RunHeldError: another host took the run over; nothing may be written any more.
    """
    watch = ClockWatch(clocks, tell)
    fault = ""
    while True:
        watch.look()
        try:
            await asyncio.to_thread(beat)
            fault = ""
        except RunHeldError:
            raise
        except StoreError as error:  # of a database that is away the lanes find out, if it stays
            if str(error) != fault:
                _log.warning("heartbeat: %s", error)
            fault = str(error)
        await sleep(BEAT_S)
