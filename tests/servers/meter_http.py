"""A web server that misbehaves on demand, on loopback; what it tells is a subclass's."""

import json
from abc import abstractmethod

from aiohttp import web

from tests.servers.meter_device import MeterDevice


class MeterHttpServer(MeterDevice):
    """An async context manager; `port` is known inside."""

    method = "*"
    open_path = ""
    """What needs no login."""

    def __init__(self, power_w: float = 10.0) -> None:
        super().__init__(power_w)
        self._runner: web.AppRunner | None = None

    @abstractmethod
    async def reply(self, request: web.Request) -> web.Response:
        """The device's answer when nothing is wrong with the connection."""

    def refusal(self) -> web.Response:
        """The answer to a login that is not good."""
        return web.Response(status=401)

    async def listen(self) -> int:
        app = web.Application()
        app.router.add_route(self.method, "/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port, reuse_address=True).start()
        port: int = self._runner.addresses[0][1]
        return port

    async def stop_listening(self) -> None:
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        async with self.request() as has_hung:
            if has_hung:
                return web.Response(status=503)
            if self.fault == "garbage":
                return web.Response(text="<html>not this", content_type="text/html")
            if self.fault == "unauthorized" and request.path != self.open_path:
                return self.refusal()
            return await self.reply(request)


def json_of(value: object) -> web.Response:
    return web.Response(text=json.dumps(value), content_type="application/json")
