"""A meter on loopback: its faults and its counts; how it talks is a subclass's."""

import asyncio
from abc import abstractmethod
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from farm.testing.meter_contract import Fault
from tests.servers.served import Served

SPIKES = {"nan": float("nan"), "negative": -5.0, "spike": 12000.0}


class MeterDevice(Served):
    """An async context manager; `port` is known inside and stays over a "refuse"."""

    def __init__(self, power_w: float = 10.0) -> None:
        self.power_w = power_w
        self.fault: Fault = "none"
        self.requests = self.most_at_once = self.port = 0
        self._open = 0
        self._is_listening = False
        self._released = asyncio.Event()

    @abstractmethod
    async def listen(self) -> int:
        """Accept connections at `port`, any one if that is 0; the port it is."""

    @abstractmethod
    async def stop_listening(self) -> None:
        """Accept no more, and cut what is connected; may come twice."""

    @property
    def shown_w(self) -> float:
        """The power that it tells."""
        return SPIKES.get(self.fault, self.power_w)

    async def come_up(self) -> None:
        self.port = await self.listen()
        self._is_listening = True

    async def go_down(self) -> None:
        self._released.set()
        await self._refuse()

    def set_power(self, power_w: float) -> None:
        self.power_w = power_w

    async def set_fault(self, fault: Fault) -> None:
        self.fault = fault
        if fault != "hang":
            self._released.set()
            self._released = asyncio.Event()
        if fault == "refuse":
            await self._refuse()
        elif not self._is_listening:
            await self.come_up()

    @asynccontextmanager
    async def request(self) -> AsyncIterator[bool]:
        """Around each request: counts it and hangs on demand; whether it hung."""
        self.requests += 1
        self._open += 1
        self.most_at_once = max(self.most_at_once, self._open)
        try:
            hangs = self.fault == "hang"
            if hangs:
                await self._released.wait()
            await asyncio.sleep(0)  # others that are on their way count as open at once
            yield hangs
        finally:
            self._open -= 1

    async def _refuse(self) -> None:
        self._is_listening = False
        await self.stop_listening()
