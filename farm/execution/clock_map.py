"""Takes exchanges with a board's boot-time clock."""

from farm.interfaces.agent import ClockSource
from farm.model.measurement import ClockExchange

EXCHANGES = 16
GOOD_ENOUGH_S = 0.001


async def sample_clock(source: ClockSource) -> list[ClockExchange]:
    """Up to 16 exchanges; fewer when one has a round trip of a millisecond or less.

    The error bound is half the least round trip, so after a quick one the others add
    nothing to a window of seconds.
    """
    exchanges = []
    for _ in range(EXCHANGES):
        exchange = await source.exchange_clock()
        exchanges.append(exchange)
        if exchange.host_received_s - exchange.host_sent_s <= GOOD_ENOUGH_S:
            break
    return exchanges
