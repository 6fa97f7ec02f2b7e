"""Threads that end, are named, and never hide a mistake."""

import asyncio
import threading

import pytest

from farm.drivers.transports.board_threads import BoardThreads
from farm.testing.transport_rig import soon


async def test_result_and_name() -> None:
    threads = BoardThreads("b1", (OSError,))
    name = await soon(threads.start("read", lambda: threading.current_thread().name))
    assert name == "farm-b1-read"
    await soon(threads.ended())


async def test_error_is_raised_where_it_is_awaited() -> None:
    def fail() -> None:
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        await soon(BoardThreads("b1", (OSError,)).start("read", fail))


async def test_unexpected_error_is_told_even_if_nobody_awaits() -> None:
    told: list[str] = []
    asyncio.get_running_loop().set_exception_handler(
        lambda _, context: told.append(repr(context.get("exception")))
    )
    threads = BoardThreads("b1", (OSError,))

    def fail(error: Exception) -> None:
        raise error

    threads.start("read", lambda: fail(OSError("of the board")))
    threads.start("read", lambda: fail(ZeroDivisionError("ours")))
    await soon(threads.ended())
    await asyncio.sleep(0)
    assert told == ["ZeroDivisionError('ours')"]


async def test_waits_also_for_what_was_cancelled() -> None:
    threads, go, ended = BoardThreads("b1", ()), threading.Event(), list[str]()

    def work() -> None:
        go.wait(30)
        ended.append("end")

    future = threads.start("read", work)
    future.cancel()
    waiting = asyncio.create_task(threads.ended())
    await asyncio.sleep(0)
    assert not waiting.done()
    go.set()
    await soon(waiting)
    assert ended == ["end"]


def test_thread_that_outlives_the_loop_ends_quietly() -> None:
    """No exception in the thread (pytest makes those errors), and it is a daemon."""
    begun, go, seen = threading.Event(), threading.Event(), list[threading.Thread]()

    def work() -> None:
        seen.append(threading.current_thread())
        begun.set()
        go.wait(30)

    async def main() -> None:
        BoardThreads("b1", ()).start("read", work)

    asyncio.run(main())
    assert begun.wait(30)
    go.set()
    seen[0].join(30)
    assert seen[0].daemon
    assert not seen[0].is_alive()
