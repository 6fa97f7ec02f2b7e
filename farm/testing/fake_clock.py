"""A clock in virtual time: waiting costs nothing, and the order of events is kept."""

import asyncio
import heapq
from datetime import UTC, datetime, timedelta

_SETTLE_ROUNDS = 50
"""Turns of the event loop given to all other tasks before virtual time moves on."""


class FakeClock:
    """Monotonic seconds and UTC that move only when all tasks wait, or by `advance`.

    Sleepers wake in the order of their deadlines. Tasks that wait for real things (threads,
    sockets) are not seen: time may run on while they work. With ``is_automatic=False`` only
    `advance` moves the time.
    """

    def __init__(
        self,
        start_s: float = 1000.0,
        utc: datetime = datetime(2026, 11, 30, 20, 0, tzinfo=UTC),
        *,
        is_automatic: bool = True,
    ) -> None:
        self._now_s, self._start_s, self._utc = start_s, start_s, utc
        self._is_automatic = is_automatic
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._count = 0
        self._pump: asyncio.Task[None] | None = None

    def monotonic(self) -> float:
        """Virtual seconds."""
        return self._now_s

    def now(self) -> datetime:
        """Virtual UTC; moves with `monotonic`."""
        return self._utc + timedelta(seconds=self._now_s - self._start_s)

    async def sleep(self, seconds: float) -> None:
        """Wait in virtual time."""
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._count += 1
        heapq.heappush(self._sleepers, (self._now_s + seconds, self._count, future))
        if self._is_automatic and (self._pump is None or self._pump.done()):
            self._pump = asyncio.create_task(self._run(), name="fake clock")
        await future

    def advance(self, seconds: float) -> None:
        """Move the time and wake whoever waited for it. Wakes run when the caller awaits."""
        until_s = self._now_s + seconds
        while self._sleepers and self._sleepers[0][0] <= until_s:
            self._wake_first()
        self._now_s = until_s

    async def _run(self) -> None:
        while self._sleepers:
            for _ in range(_SETTLE_ROUNDS):
                await asyncio.sleep(0)
            self._wake_first()

    def _wake_first(self) -> None:
        while self._sleepers:
            at_s, _, future = heapq.heappop(self._sleepers)
            if not future.done():  # a cancelled sleeper moves no time
                self._now_s = max(self._now_s, at_s)
                future.set_result(None)
                return
