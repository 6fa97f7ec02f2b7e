"""A real HTTP server on loopback that takes messages, or misbehaves."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

from aiohttp import web


@dataclass
class Hooked:
    """What came in, and what is answered: statuses in order, then 200 for ever."""

    url: str = ""
    bodies: list[dict[str, object]] = field(default_factory=list)
    answers: list[Callable[[], web.StreamResponse]] = field(default_factory=list)
    is_hanging: bool = False
    released: asyncio.Event = field(default_factory=asyncio.Event)

    def answer(self, *statuses: int, location: str = "") -> None:
        headers = {"Location": location} if location else {}
        self.answers += [
            lambda status=status: web.Response(status=status, headers=headers)  # type: ignore[misc]  # mypy cannot infer a lambda's default
            for status in statuses
        ]

    async def take(self, request: web.Request) -> web.StreamResponse:
        self.bodies.append(await request.json())
        if self.is_hanging:
            await self.released.wait()
        return self.answers.pop(0)() if self.answers else web.Response()


@contextlib.asynccontextmanager
async def webhook() -> AsyncIterator[Hooked]:
    hooked = Hooked()
    app = web.Application()
    app.router.add_post("/{path:.*}", hooked.take)
    runner = web.AppRunner(app, shutdown_timeout=1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    hooked.url = f"http://{host}:{port}/services/T0/SECRET"
    try:
        yield hooked
    finally:
        hooked.released.set()
        await runner.cleanup()
