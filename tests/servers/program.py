"""A real program that serves on loopback: started, waited for, killed."""

import asyncio
from abc import abstractmethod
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Mapping

from tests.servers.served import Served

PATIENCE_S = 30.0


class Program(Served):
    """An async context manager; it can be stopped and started again inside."""

    def __init__(self) -> None:
        self._process: Process | None = None

    @abstractmethod
    def argv(self) -> list[str]:
        """What to start. It stays in the foreground."""

    @abstractmethod
    def listens(self) -> bool:
        """Whether it can be reached."""

    def environment(self) -> Mapping[str, str] | None:
        """All of its environment; None is the test's."""
        return None

    def log(self) -> str:
        """What it says of itself, for the one who reads that it ended."""
        return ""

    async def start(self) -> None:
        self._process = await asyncio.create_subprocess_exec(
            *self.argv(), env=self.environment(), stdout=DEVNULL, stderr=DEVNULL
        )
        async with asyncio.timeout(PATIENCE_S):
            while not self.listens():
                assert self._process.returncode is None, self.log()
                await asyncio.sleep(0.01)

    async def stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            await process.wait()

    async def come_up(self) -> None:
        await self.start()

    async def go_down(self) -> None:
        await self.stop()
