"""A power cycle at a board's own outlet, as a closed loop; the outlet is never left off."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Coroutine
from typing import TypeVar

from farm.errors import BoardError, MeterError
from farm.execution.equipment import RunServices
from farm.execution.sampling import MeterFeed
from farm.execution.session import BoardSession
from farm.interfaces.outlet import Outlet

T = TypeVar("T")

ON_TRIES, ON_PAUSE_S = 8, 2.0
"""To switch on again is tried so often: a plug may need seconds to find its Wi-Fi again."""
FALLEN_W = 1.0
"""Below this a board has no power; idle boards draw more (a Nano about 1.25 W by its maker)."""
FALL_LIMIT_S = 15.0
"""How long a meter may take to show it, on top of its own lag and average (assumed)."""

_STEP = "power cycle"
_log = logging.getLogger(__name__)


async def power_cycle(session: BoardSession, outlet: Outlet, services: RunServices) -> None:
    """Off, read back, wait, see the watts fall, on, read back, wait for a new boot id.

    Raises MeterError (the outlet or the meter), OutletError where the watts did not fall,
    ConnectError (the board stays away), PowerModeError (it has not rebooted).
    """
    feed, before = session.equipment.feed, session.boot_id
    await session.drop_link()
    async with _alone(feed):
        try:
            if await outlet.switch(to_on=False):
                raise MeterError(_STEP, "switched off, the outlet reads back as on")
            off_s = services.clock.monotonic()
            await services.clock.sleep(services.limits.recovery.off_s)
            await _see_watts_fall(feed, off_s, services)
        finally:
            await _despite_cancel(switch_on(session.board.name, outlet, services))
        await session.come_back(before)


class OutletError(MeterError):
    """The outlet does not feed the board that it is said to feed."""


async def switch_on(board: str, outlet: Outlet, services: RunServices) -> bool:
    """Switch on and read back, again and again; journal loudly when it stays in vain."""
    seen = ""
    for _ in range(ON_TRIES):
        try:
            if await outlet.switch(to_on=True):
                services.tell(
                    "recovery",
                    board=board,
                    text="the outlet is on",
                    step="power_cycle",
                    outcome="on",
                    is_on=True,
                )
                return True
            seen = "it reads back as off"
        except BoardError as error:
            seen = str(error)
        await services.clock.sleep(ON_PAUSE_S)
    text = f"{board}: the outlet may be OFF and could not be switched on: {seen}"
    _log.error("%s", text)
    services.tell("outlet_left_off", board=board, text=text)
    return False


@contextlib.asynccontextmanager
async def _alone(feed: MeterFeed | None) -> AsyncIterator[None]:
    """On a shared meter: not while another board measures with it."""
    if feed is None or not feed.is_shared:
        yield
        return
    async with feed.lock:
        yield


async def _see_watts_fall(feed: MeterFeed | None, off_s: float, services: RunServices) -> None:
    """Raises OutletError when a meter of the board's own goes on to show power."""
    if feed is None or feed.is_shared or feed.facts is None:
        return
    spec, clock = feed.spec, services.clock
    floor_w = max(FALLEN_W, spec.accuracy.floor_w)
    give_up_s = off_s + FALL_LIMIT_S + spec.lag_s + spec.averaging_s + 2 * spec.update_s
    newest_w: float | None = None
    while True:
        if len(feed.trace) and feed.trace.t_s[-1] > off_s:
            newest_w = feed.trace.power_w[-1]
            if newest_w <= floor_w:
                return
        left_s = give_up_s - clock.monotonic()
        if left_s <= 0:
            break
        await clock.sleep(min(0.5, left_s))
    if newest_w is not None:  # a meter that is silent meanwhile proves nothing
        raise OutletError(
            _STEP,
            f"the outlet is off, and {spec.name} still shows {newest_w:.1f} W",
            remedy="Which outlet feeds the board? Correct `outlet:` in the inventory.",
        )


async def _despite_cancel(work: Coroutine[None, None, T]) -> T:
    """See `work` to its end, also when the lane is stopped meanwhile."""
    task, was_cancelled = asyncio.ensure_future(work), False
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            was_cancelled = True
    if was_cancelled:
        raise asyncio.CancelledError
    return task.result()
