"""The probe against real sockets: who answers as an SSH server, and who does not."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from farm.drivers.transports.ssh_probe import probe_ssh
from farm.errors import ConnectError
from farm.model.board import Board

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def server(talk: Talk) -> AsyncIterator[Board]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await talk(reader, writer)
            await reader.read()  # until the probe goes
        finally:
            writer.close()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    async with listening:
        yield Board(name="b", profile="p", host="127.0.0.1", port=port, user="u")


def says(*parts: bytes) -> Talk:
    async def talk(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for part in parts:
            writer.write(part)
            await writer.drain()

    return talk


@pytest.mark.parametrize(
    "parts", [(b"SSH-2.0-OpenSSH_7.6\r\n",), (b"welcome\r\n", b"SS", b"H-2.0-x\r\n")]
)
async def test_a_banner_is_an_answer(parts: tuple[bytes, ...]) -> None:
    async with server(says(*parts)) as board:
        await probe_ssh(board, limit_s=30)


async def test_a_board_that_hangs_says_nothing() -> None:
    async with server(says()) as board:
        with pytest.raises(ConnectError, match="sends no SSH banner") as caught:
            await probe_ssh(board, limit_s=0.2)
    assert caught.value.board == "b"
    assert caught.value.retryable


@pytest.mark.parametrize("part", [b"x" * 100_000, b"HTTP/1.1 400\r\n" * 1000])
async def test_something_else_is_no_board(part: bytes) -> None:
    async with server(says(part)) as board:
        with pytest.raises(ConnectError, match=r"ends them .* SSH banner|a line without an end"):
            await probe_ssh(board, limit_s=30)


async def test_nobody_listens() -> None:
    async with server(says()) as board:
        pass
    with pytest.raises(ConnectError, match="refused the connection"):
        await probe_ssh(board, limit_s=30)
