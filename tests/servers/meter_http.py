"""A web server that misbehaves on demand, on loopback; what it tells is a subclass's."""

import asyncio
import json
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self

from aiohttp import web

from farm.testing.meter_contract import Fault

SPIKES = {"nan": float("nan"), "negative": -5.0, "spike": 12000.0}


class MeterHttpServer(ABC):
    """An async context manager; `port` is known inside."""

    def __init__(self) -> None:
        self.fault: Fault = "none"
        self.power_w = 10.0
        self.requests = self.most_at_once = self.port = 0
        self._open = 0
        self._released = asyncio.Event()
        self._runner: web.AppRunner | None = None

    @abstractmethod
    async def reply(self, request: web.Request) -> web.Response:
        """The device's answer when nothing is wrong with the connection."""

    def refusal(self) -> web.Response:
        """The answer to a login that is not good."""
        return web.Response(status=401)

    @property
    def shown_w(self) -> float:
        """The power that it tells."""
        return SPIKES.get(self.fault, self.power_w)

    async def __aenter__(self) -> Self:
        await self._listen()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._released.set()
        await self._stop()

    def set_power(self, power_w: float) -> None:
        self.power_w = power_w

    async def set_fault(self, fault: Fault) -> None:
        self.fault = fault
        if fault != "hang":
            self._released.set()
            self._released = asyncio.Event()
        if fault == "refuse":
            await self._stop()
        elif self._runner is None:
            await self._listen()

    async def _listen(self) -> None:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port, reuse_address=True).start()
        self.port = self.port or self._runner.addresses[0][1]

    async def _stop(self) -> None:
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self.requests += 1
        self._open += 1
        self.most_at_once = max(self.most_at_once, self._open)
        try:
            if self.fault == "hang":
                await self._released.wait()
                return web.Response(status=503)
            await asyncio.sleep(0)
            if self.fault == "garbage":
                return web.Response(text="<html>not this", content_type="text/html")
            if self.fault == "unauthorized":
                return self.refusal()
            return await self.reply(request)
        finally:
            self._open -= 1


def json_of(value: object) -> web.Response:
    return web.Response(text=json.dumps(value), content_type="application/json")
