"""Threads for a library that blocks: one for each piece of work, none that outlives its board."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TypeVar

_T = TypeVar("_T")


class BoardThreads:
    """The threads that work for one connection.

    They are daemons, unlike those of `asyncio.to_thread`: one that waits for a dead board must
    not keep the process from ending. Their number is bounded by what is asked at once: two for
    each of the sessions of a link, and one for the connection itself.

    Args:
        board: the board's name; threads are named after it.
        expected: exceptions that are a board's fault. Others are told to the event loop's
            exception handler, also if nobody awaits the thread.
    """

    def __init__(self, board: str, expected: tuple[type[BaseException], ...]) -> None:
        self._board, self._expected = board, expected
        self._at_work: set[asyncio.Future[None]] = set()

    def start(self, what: str, work: Callable[[], _T]) -> "asyncio.Future[_T]":
        """Do `work` in a thread of its own; its result."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[_T] = loop.create_future()
        over: asyncio.Future[None] = loop.create_future()  # `future` may be cancelled before
        self._at_work.add(over)
        future.add_done_callback(self._watch)

        def settle(give: Callable[[], None]) -> None:
            self._at_work.discard(over)
            over.set_result(None)
            if not future.done():
                give()

        def run() -> None:
            try:
                give = partial(future.set_result, work())
            except BaseException as exc:  # noqa: BLE001 - not swallowed: raised where awaited
                give = partial(future.set_exception, exc)
            with suppress(RuntimeError):  # the loop is closed: nobody waits
                loop.call_soon_threadsafe(settle, give)

        threading.Thread(target=run, name=f"farm-{self._board}-{what}", daemon=True).start()
        return future

    def _watch(self, future: "asyncio.Future[_T]") -> None:
        if future.cancelled():
            return
        exc = future.exception()
        if exc is not None and not isinstance(exc, self._expected):
            context = {"message": f"a thread for {self._board} failed", "exception": exc}
            future.get_loop().call_exception_handler(context)

    async def ended(self) -> None:
        """Wait until none is left. The caller bounds the time."""
        while self._at_work:
            await asyncio.wait(self._at_work)
