"""A line server that misbehaves on demand, on loopback; what it answers is a subclass's."""

import asyncio
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self

from farm.testing.meter_contract import Fault
from tests.servers.meter_http import SPIKES


class MeterLineServer(ABC):
    """An async context manager; `port` is known inside. One line a request."""

    end = "\n"

    def __init__(self) -> None:
        self.fault: Fault = "none"
        self.power_w = 10.0
        self.requests = self.most_at_once = self.port = 0
        self.heard: list[str] = []
        self._open = 0
        self._released = asyncio.Event()
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    @abstractmethod
    def answer(self, words: str) -> list[str]:
        """The lines that answer one line; none for a command."""

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
        elif self._server is None:
            await self._listen()

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(
            self._serve, "127.0.0.1", self.port, reuse_address=True
        )
        self.port = self.port or self._server.sockets[0].getsockname()[1]

    async def _stop(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.close()
        for writer in self._writers:
            writer.transport.abort()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._writers.add(writer)
        try:
            while line := await reader.readline():
                await self._handle(line.decode().strip(), writer)
        except ConnectionError:
            pass
        finally:
            self._writers.discard(writer)
            self._tasks.discard(task)
            writer.transport.abort()

    async def _handle(self, words: str, writer: asyncio.StreamWriter) -> None:
        self.requests += 1
        self._open += 1
        self.most_at_once = max(self.most_at_once, self._open)
        self.heard.append(words)
        try:
            if self.fault == "hang":
                await self._released.wait()
            await asyncio.sleep(0)
            lines = ["%&/ not this"] if self.fault == "garbage" else self.answer(words)
            writer.write("".join(line + self.end for line in lines).encode())
            await writer.drain()
        finally:
            self._open -= 1
