"""Takes exchanges with a board's boot-time clock."""

from dataclasses import dataclass

from farm.interfaces.agent import ClockSource
from farm.model.measurement import ClockExchange

EXCHANGES = 16
LARGEST_GOAL_S = 0.02
GOAL_SHARE = 0.02
KNOWN_FOR_S = 2.0
"""200 ppm, the drift that is still accepted, are 0.4 ms in this time."""


@dataclass(frozen=True, slots=True)
class KnownClock:
    """Exchanges with a board's clock, of which boot, and when (host monotonic seconds)."""

    boot_id: str
    at_s: float
    exchanges: list[ClockExchange]

    def is_old(self, now_s: float) -> bool:
        """Whether they are too old to be the beginning of what begins now."""
        return now_s - self.at_s > KNOWN_FOR_S


def clock_goal_s(update_s: float | None) -> float:
    """The round trip that is quick enough, for a meter that refreshes every `update_s`.

    A fiftieth of its refresh period, at most 20 ms; the bound is half of that, far below
    what the meter can tell. Without a meter any: then the map only places the window.
    """
    return float("inf") if update_s is None else min(LARGEST_GOAL_S, GOAL_SHARE * update_s)


async def sample_clock(source: ClockSource, goal_s: float) -> list[ClockExchange]:
    """Up to 16 exchanges; fewer when one has a round trip of `goal_s` or less.

    The error bound is half the least round trip: after a quick one the others add nothing.
    """
    exchanges = []
    for _ in range(EXCHANGES):
        exchange = await source.exchange_clock()
        exchanges.append(exchange)
        if exchange.host_received_s - exchange.host_sent_s <= goal_s:
            break
    return exchanges
