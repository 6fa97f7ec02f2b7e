"""farm's board-side agent over the kept connection: polls, and payloads by content."""

import asyncio
import shutil
from collections.abc import Mapping
from pathlib import Path

from benchmarks.clients.farm_client import Connected
from benchmarks.clients.payloads import size_of, source_folder
from farm.config.payload_files import find_files
from farm.drivers.agent import SshBoardAgent, open_agent
from farm.model.payload import Payload, PayloadManifest


class WithAgents(Connected):
    """An open agent on each board, in a work folder of its own: all boards are one machine."""

    def setup(self) -> None:
        super().setup()
        self.work = self.fleet.folder / f"work-{id(self)}"
        self.boards = [
            board.model_copy(update={"work_dir": str(self.work / board.name)})
            for board in self.boards
        ]
        self.loop.run_until_complete(self._open())

    async def _open(self) -> None:
        pairs = zip(self.transports, self.boards, strict=True)
        self.agents: list[SshBoardAgent] = await asyncio.gather(
            *(open_agent(transport, board) for transport, board in pairs)
        )

    async def _close(self) -> None:
        await asyncio.gather(*(agent.close() for agent in self.agents))

    def close(self) -> None:
        self.loop.run_until_complete(self._close())
        super().close()
        shutil.rmtree(self.work, ignore_errors=True)


class Poll(WithAgents):
    """One request and its answer, one at a time a board."""

    async def _all(self) -> None:
        each = int(self.settings["operations"]) // len(self.agents)

        async def board(agent: SshBoardAgent) -> None:
            for _ in range(each):
                await agent.exchange_clock()

        await asyncio.gather(*map(board, self.agents))


class PollPipelined(WithAgents):
    """All requests of a board on their way at once."""

    async def _all(self) -> None:
        each = int(self.settings["operations"]) // len(self.agents)
        await asyncio.gather(
            *(agent.exchange_clock() for agent in self.agents for _ in range(each))
        )


class Commands(WithAgents):
    """`true` through the agent, as the product runs commands, one at a time a board."""

    async def _all(self) -> None:
        each = int(self.settings["operations"]) // len(self.agents)

        async def board(agent: SshBoardAgent) -> None:
            for _ in range(each):
                if (await agent.run(["true"])).exit_status != 0:
                    raise RuntimeError("a board failed")

        await asyncio.gather(*map(board, self.agents))


class Push(WithAgents):
    """`ensure_payload` on boards that have none of it; hashed here before, there meanwhile."""

    def setup(self) -> None:
        super().setup()
        source = source_folder(self.fleet, str(self.settings["shape"]))
        files, faults = find_files(source, ("**",), "payload.yaml")
        if faults:
            raise RuntimeError("; ".join(faults))
        self.size = size_of(source)
        self.payload = Payload(
            manifest=PayloadManifest(name="pushed", level=0, summary="", command=("true",)),
            folder=source,
            files=tuple(files),
            digest="0" * 64,
        )

    def run(self) -> Mapping[str, float] | None:
        self.loop.run_until_complete(self._all())
        return None

    async def _all(self) -> None:
        sent = await asyncio.gather(*(agent.ensure_payload(self.payload) for agent in self.agents))
        if not all(sent):
            raise RuntimeError("a board had it already")

    def check(self) -> None:
        """All there; then boards that have none of it again."""
        for board in self.boards:
            self._check_board(Path(board.work_dir))
        self.loop.run_until_complete(self._close())
        shutil.rmtree(self.work)
        self.loop.run_until_complete(self._open())

    def _check_board(self, work: Path) -> None:
        built = work / "payloads" / self.payload.digest
        if size_of(built) < self.size:
            raise RuntimeError(f"{built} has {size_of(built)} bytes of {self.size}")
