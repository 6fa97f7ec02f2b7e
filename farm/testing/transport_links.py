"""The transport suite's part on the link: connecting, and losing it in the middle."""

import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

from farm.errors import FarmError, LinkLostError
from farm.interfaces.transport import Transport
from farm.testing.transport_rig import (
    BOUND_S,
    RigTests,
    TransportRig,
    demand,
    demand_equal,
    demand_error,
    eventually,
    soon,
    text_of,
)

FIRST_SIZE_MB, LAST_SIZE_MB = 64, 512
"""Sizes of a transfer that is to be cut: doubled as long as it ends before the cut."""


class LinkTests(RigTests):
    """connect, close, and a link that dies."""

    async def test_connect_and_close_can_be_repeated(self) -> None:
        """Also in the wrong order; after close it can be connected again."""
        async with self.open_rig() as rig:
            transport = rig.transport()
            await soon(transport.close())
            demand(not transport.is_connected, "no link before connect")
            for _ in range(2):
                demand(await soon(transport.connect()) is transport, "connect to give itself")
                await soon(transport.connect())
                demand(transport.is_connected, "a link")
                demand_equal(await text_of(transport, "echo hi"), "hi\n", "stdout")
                await soon(transport.close())
                await soon(transport.close())
                demand(not transport.is_connected, "no link after close")

    async def test_without_a_link_all_operations_say_so(self) -> None:
        """LinkLostError, before connect and after close."""
        async with self.open_rig() as rig:
            transport = rig.transport()
            for _ in range(2):
                await demand_error(LinkLostError, transport.run(["true"], timeout_s=BOUND_S))
                await demand_error(LinkLostError, transport.stream(["true"], lambda _: None))
                await demand_error(
                    LinkLostError, transport.put({"a": b""}, rig.scratch, timeout_s=BOUND_S)
                )
                await demand_error(
                    LinkLostError, transport.get("/a", Path("/no/such/b"), timeout_s=BOUND_S)
                )
                await soon(transport.connect())
                await soon(transport.close())

    async def test_cut_under_a_command_is_no_success(self) -> None:
        """LinkLostError, the link is known to be dead, and can be made again."""
        async with self.connected() as (rig, transport):
            running = asyncio.create_task(
                transport.run(
                    ["sh", "-c", 'echo >"$1/begun"; sleep 30', "sh", rig.scratch],
                    timeout_s=BOUND_S,
                )
            )
            await _appears(transport, f"{rig.scratch}/begun")
            await rig.cut()
            await demand_error(LinkLostError, running)
            await _is_known_dead(transport)
            await demand_error(LinkLostError, transport.run(["true"], timeout_s=BOUND_S))
            await soon(transport.connect())
            demand_equal(await text_of(transport, "echo back"), "back\n", "stdout")

    async def test_cut_under_a_stream(self) -> None:
        """on_lost once; wait, write and drain raise LinkLostError."""
        got, ends = bytearray(), list[str]()
        async with self.connected() as (rig, transport):
            stream = await transport.stream(
                ["sh", "-c", "echo begun; cat"], got.extend, on_lost=lambda: ends.append("end")
            )

            async def has_begun() -> bool:
                return bool(got)

            await eventually(has_begun, "the stream's first line")
            await rig.cut()
            await demand_error(LinkLostError, stream.wait(BOUND_S))
            await demand_error(LinkLostError, stream.drain())
            await demand_error(LinkLostError, _call(lambda: stream.write(b"x")))
            await soon(stream.close())
            demand_equal(ends, ["end"], "calls of on_lost")

    async def test_cut_under_many_commands(self) -> None:
        """Each of them says so."""
        async with self.connected() as (rig, transport):
            running = [
                asyncio.create_task(
                    transport.run(
                        ["sh", "-c", 'echo >"$1"; sleep 30', "sh", f"{rig.scratch}/{n}"],
                        timeout_s=BOUND_S,
                    )
                )
                for n in range(5)
            ]
            for n in range(5):
                await _appears(transport, f"{rig.scratch}/{n}")
            await rig.cut()
            for task in running:
                await demand_error(LinkLostError, task)

    async def test_cut_under_put_leaves_nothing(self) -> None:
        """LinkLostError; neither the file nor anything temporary stays on the board."""
        with tempfile.TemporaryDirectory(prefix="farm-transport-") as local:
            source = Path(local) / "source"
            async with self.connected() as (rig, transport):
                folder = f"{rig.scratch}/in"

                async def put(size_mb: int) -> None:
                    await text_of(transport, 'rm -rf "$1"', folder)
                    with source.open("wb") as file:
                        file.truncate(size_mb * 1024 * 1024)
                    await transport.put({"large": source}, folder, timeout_s=BOUND_S)

                async def is_under_way() -> bool:
                    found = await text_of(transport, 'find "$1" -type f -size +0', rig.scratch)
                    return bool(found)

                await _cut_in_the_middle(rig, transport, put, is_under_way)
                await soon(transport.connect())

                async def is_clean() -> bool:
                    return not await text_of(transport, 'ls -A "$1"', folder)

                await eventually(is_clean, "nothing left on the board")

    async def test_cut_under_get_leaves_nothing(self) -> None:
        """LinkLostError; neither the file nor anything temporary stays on the host."""
        with tempfile.TemporaryDirectory(prefix="farm-transport-") as name:
            local = Path(name)
            async with self.connected() as (rig, transport):

                async def get(size_mb: int) -> None:
                    await text_of(
                        transport, f'head -c {size_mb}M /dev/zero >"$1/large"', rig.scratch
                    )
                    (local / "large").unlink(missing_ok=True)
                    await transport.get(f"{rig.scratch}/large", local / "large", timeout_s=BOUND_S)

                async def is_under_way() -> bool:
                    return any(size > 0 for size in _sizes(local))

                await _cut_in_the_middle(rig, transport, get, is_under_way)
            demand_equal(_sizes(local), [], "sizes of what lies on the host")


async def _cut_in_the_middle(
    rig: TransportRig,
    transport: Transport,
    transfer: Callable[[int], Awaitable[None]],
    is_under_way: Callable[[], Awaitable[bool]],
) -> None:

    async def has_begun() -> bool:
        return task.done() or await is_under_way()

    size_mb = FIRST_SIZE_MB
    while True:
        task = asyncio.ensure_future(_settled(transfer(size_mb)))
        await eventually(has_begun, "the transfer's begin")
        if not task.done():
            await rig.cut()
        error = await soon(task)
        if error is not None or size_mb >= LAST_SIZE_MB:
            break
        size_mb *= 2
        await soon(transport.connect())
    demand(isinstance(error, LinkLostError), f"LinkLostError, got {error!r}")


def _sizes(folder: Path) -> list[int]:
    return [path.stat().st_size for path in folder.iterdir()]


async def _settled(step: Awaitable[None]) -> FarmError | None:
    try:
        await step
    except FarmError as error:
        return error
    return None


async def _call(step: Callable[[], None]) -> None:
    step()


async def _appears(transport: Transport, path: str) -> None:
    async def is_there() -> bool:
        seen = await transport.run(["test", "-e", path], timeout_s=BOUND_S)
        return seen.exit_status == 0

    await eventually(is_there, path)


async def _is_known_dead(transport: Transport) -> None:
    async def is_dead() -> bool:
        return not transport.is_connected

    await eventually(is_dead, "is_connected is False")
