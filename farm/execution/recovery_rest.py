"""Who works and who rests: a quarantined board waits for its rest, or for the end of the run."""

import asyncio

from farm.interfaces.clock import Clock


class Roster:
    """The lanes of a run that are at work; the others rest or have ended."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._working: set[str] = set()
        self._idle = asyncio.Event()

    def is_working(self, board: str) -> bool:
        """It is in the run, and neither rests nor has ended."""
        return board in self._working

    def join(self, board: str) -> None:
        """It is at work."""
        self._working.add(board)
        self._idle.clear()

    def leave(self, board: str) -> None:
        """It has ended, or rests."""
        self._working.discard(board)
        if not self._working:
            self._idle.set()

    async def rest(self, board: str, seconds: float) -> bool:
        """Rest, then be at work again. True when nobody works any more: it is the last chance."""
        self.leave(board)
        sleep = asyncio.ensure_future(self._clock.sleep(seconds))
        end = asyncio.ensure_future(self._idle.wait())
        try:
            await asyncio.wait({sleep, end}, return_when=asyncio.FIRST_COMPLETED)
            return end.done()
        finally:
            for task in (sleep, end):
                task.cancel()
            await asyncio.gather(sleep, end, return_exceptions=True)
            self.join(board)
