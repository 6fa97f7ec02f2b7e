"""What goes wrong with a simulated meter while it answers: its numbers, and its speed."""

import asyncio
from dataclasses import dataclass

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware


@dataclass(slots=True)
class MeterFaults:
    """Switches, counted: two faults of a kind may overlap. The delay is in seconds."""

    frozen: int = 0
    zero: int = 0
    delay_s: float = 0.0

    def as_middleware(self) -> Middleware:
        """What makes every answer late."""

        @web.middleware
        async def wait(request: web.Request, handler: Handler) -> web.StreamResponse:
            if self.delay_s:
                await asyncio.sleep(self.delay_s)
            return await handler(request)

        return wait
