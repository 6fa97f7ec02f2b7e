"""farm's own transport, as the product uses it, but for the pace of connecting."""

import asyncio
import time
from collections.abc import Mapping

from benchmarks.clients.payloads import Targets, files_of
from benchmarks.cpu import own_cpu_s, own_rss_mb
from benchmarks.lab import Fleet
from benchmarks.turns import Client
from farm.drivers.transports.asyncssh import AsyncsshTransport
from farm.drivers.transports.ssh_context import SshContext
from farm.model.board import Board, ConnectionLimits

# starts_per_s spares real boards and networks; the peers have no such bound
LIMITS = ConnectionLimits(connecting=32, starts_per_s=100_000)


def boards_of(fleet: Fleet) -> list[Board]:
    """The fleet as an inventory."""
    return [
        Board(
            name=f"board-{host}",
            profile="jetson-tx2",
            host=host,
            port=fleet.port,
            user=fleet.user,
            identity_file=fleet.client_key,
            known_hosts=fleet.folder / "known_hosts",
        )
        for host in fleet.hosts
    ]


async def run_true(transport: AsyncsshTransport) -> None:
    """`true` on one board."""
    if (await transport.run(["true"], timeout_s=60)).exit_status != 0:
        raise RuntimeError("a board failed")


class FanOut(Client):
    """`true` over a fresh connection to each board."""

    def setup(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.boards = boards_of(self.fleet)
        self.context = SshContext(LIMITS)

    def run(self) -> Mapping[str, float] | None:
        self.loop.run_until_complete(self._all())
        return None

    async def _all(self) -> None:
        turns = asyncio.Semaphore(32)

        async def one(board: Board) -> None:
            async with turns:
                transport = await AsyncsshTransport(board, self.context).connect()
                await run_true(transport)
                await transport.close()

        await asyncio.gather(*map(one, self.boards))

    def close(self) -> None:
        self.loop.close()


class Connected(FanOut):
    """Kept connections."""

    def setup(self) -> None:
        super().setup()
        self.transports = [AsyncsshTransport(board, self.context) for board in self.boards]
        self.loop.run_until_complete(self._connect())

    async def _connect(self) -> None:
        await asyncio.gather(*(transport.connect() for transport in self.transports))

    async def _disconnect(self) -> None:
        await asyncio.gather(*(transport.close() for transport in self.transports))

    def close(self) -> None:
        self.loop.run_until_complete(self._disconnect())
        super().close()


class Kept(Connected):
    """Commands over kept connections, one at a time a board."""

    async def _all(self) -> None:
        each = int(self.settings["operations"]) // len(self.transports)

        async def board(transport: AsyncsshTransport) -> None:
            for _ in range(each):
                await run_true(transport)

        await asyncio.gather(*map(board, self.transports))


class Put(Connected):
    """`put` of all files, hashes checked on the board."""

    def setup(self) -> None:
        super().setup()
        self.targets = Targets(self.fleet, str(self.settings["shape"]))

    async def _all(self) -> None:
        files = files_of(self.targets.source)
        await asyncio.gather(
            *(
                transport.put(files, str(self.targets.folders[board.host]), timeout_s=120)
                for board, transport in zip(self.boards, self.transports, strict=True)
            )
        )

    def check(self) -> None:
        self.targets.check()

    def close(self) -> None:
        super().close()
        self.targets.remove()


class Stream(Connected):
    """Lines from one board, split from the pieces that the callback gets.

    With a `rate` the board paces them and each begins with its time of writing; `lag_ms` is
    the 95th percentile of reading minus writing, from one line in each piece.
    """

    def run(self) -> Mapping[str, float]:
        return self.loop.run_until_complete(self._read())

    async def _read(self) -> Mapping[str, float]:
        total, rate = int(self.settings["lines"]), int(self.settings["rate"])
        lines, rest = 0, b""
        lags: list[float] = []

        def take(data: bytes) -> None:
            nonlocal lines, rest
            parts = (rest + data).split(b"\n")
            rest = parts.pop()
            lines += len(parts)
            if rate and parts:
                lags.append(time.clock_gettime(time.CLOCK_MONOTONIC) - float(parts[-1][:17]))

        cpu, begin = own_cpu_s(), time.perf_counter()
        argv = ["python3", str(self.fleet.folder / "sender.py"), str(total), str(rate)]
        stream = await self.transports[0].stream(argv, take)
        stream.end_input()
        status = await stream.wait(120)
        wall = time.perf_counter() - begin
        if status != 0 or lines != total:
            raise RuntimeError(f"exit {status}, {lines} lines of {total}")
        figures = {"million_lines_per_s": lines / wall / 1e6}
        if rate:
            lags.sort()
            figures["lag_ms"] = lags[int(len(lags) * 0.95)] * 1e3
            figures["core_pct"] = (own_cpu_s() - cpu) / wall * 100
        return figures


class Idle(FanOut):
    """Kept connections that do nothing, at the product's keepalive."""

    def run(self) -> Mapping[str, float]:
        return self.loop.run_until_complete(self._hold())

    async def _hold(self) -> Mapping[str, float]:
        first = [AsyncsshTransport(board, self.context) for board in self.boards[:2]]
        await asyncio.gather(*(transport.connect() for transport in first))
        before = own_rss_mb()
        kept = [AsyncsshTransport(board, self.context) for board in self.boards]
        await asyncio.gather(*(transport.connect() for transport in kept))
        grown = own_rss_mb() - before
        cpu, begin = own_cpu_s(), time.perf_counter()
        await asyncio.sleep(3.0)
        idle = (own_cpu_s() - cpu) / (time.perf_counter() - begin)
        await asyncio.gather(*(transport.close() for transport in (*first, *kept)))
        return {"kb_each": grown * 1024 / len(kept), "idle_cpu_pct": idle * 100}
