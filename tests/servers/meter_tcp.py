"""TCP servers that misbehave on demand, on loopback; what they answer is a subclass's."""

import asyncio
from abc import abstractmethod

from tests.servers.meter_device import MeterDevice


class MeterTcpServer(MeterDevice):
    """Any protocol over connections that are cut when it goes."""

    def __init__(self) -> None:
        super().__init__()
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    @abstractmethod
    async def converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one connection until the peer or the connection ends."""

    async def listen(self) -> int:
        self._server = await asyncio.start_server(
            self._serve, "127.0.0.1", self.port, reuse_address=True
        )
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def stop_listening(self) -> None:
        if self._server is not None:
            self._server.close()
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
            await self.converse(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self._writers.discard(writer)
            self._tasks.discard(task)
            writer.transport.abort()


class MeterLineServer(MeterTcpServer):
    """One line a request; `heard` has them all."""

    end = "\n"

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[str] = []

    @abstractmethod
    def answer(self, words: str) -> list[str]:
        """The lines that answer one line; none for a command."""

    async def converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            await self._handle(line.decode().strip(), writer)

    async def _handle(self, words: str, writer: asyncio.StreamWriter) -> None:
        self.heard.append(words)
        async with self.request():
            lines = ["%&/ not this"] if self.fault == "garbage" else self.answer(words)
            writer.write("".join(line + self.end for line in lines).encode())
            await writer.drain()
