import asyncio

import pytest

from farm.errors import LinkLostError
from tests.boardside.local_board import Bench, until

SCRIPT = "echo one; while ! test -e go; do sleep 0.02; done; echo two"


async def test_log_is_followed_to_its_end(board: Bench) -> None:
    got = bytearray()
    await board.start_script("a1", SCRIPT)
    following = asyncio.create_task(board.agent.follow("a1", "stdout.log", got.extend))
    await until(lambda: got == b"one\n", "the first line comes while it runs")
    board.path("a1", "work/go").touch()
    await asyncio.wait_for(following, 30)
    assert got == b"one\ntwo\n"


async def test_follow_goes_on_where_it_was_after_a_lost_link(board: Bench) -> None:
    got = bytearray()
    await board.start_script("a1", SCRIPT)
    following = asyncio.create_task(board.agent.follow("a1", "stdout.log", got.extend))
    await until(lambda: got == b"one\n", "the first line comes")
    board.transport.cut()
    with pytest.raises(LinkLostError):
        await following
    await board.agent.close()
    await board.transport.connect()
    await board.open()
    board.path("a1", "work/go").touch()
    await board.agent.follow("a1", "stdout.log", got.extend, offset=len(got))
    assert got == b"one\ntwo\n"


async def test_cancelled_follow_goes_on_from_its_offset(board: Bench) -> None:
    got = bytearray()
    await board.start_script("a1", SCRIPT)
    following = asyncio.create_task(board.agent.follow("a1", "stdout.log", got.extend))
    await until(lambda: got == b"one\n", "the first line comes")
    following.cancel()
    with pytest.raises(asyncio.CancelledError):
        await following
    board.path("a1", "work/go").touch()
    await board.agent.follow("a1", "stdout.log", got.extend)
    assert got == b"one\ntwo\n"


async def test_long_log_comes_whole(board: Bench) -> None:
    got = bytearray()
    await board.run_script("a1", "seq 1 200000")
    await board.agent.follow("a1", "stdout.log", got.extend)
    assert got.split() == [str(n).encode() for n in range(1, 200001)]


async def test_file_that_never_comes_ends_with_the_attempt(board: Bench) -> None:
    await board.run_script("a1", "exit 0")
    with pytest.raises(Exception, match=r"no events\.jsonl"):
        await board.agent.follow("a1", "events.jsonl", lambda _: None)
