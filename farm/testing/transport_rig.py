"""What the transport suite is run on, and how it checks."""

import asyncio
from abc import abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol, TypeVar

from farm.errors import BoardError
from farm.interfaces.transport import Transport

_T = TypeVar("_T")
_E = TypeVar("_E", bound=BoardError)

BOUND_S = 90.0
"""No step may take longer than this, however slow the machine."""


class TransportRig(Protocol):
    """One board that answers. It needs a POSIX sh and the usual small tools, or busybox."""

    @property
    @abstractmethod
    def scratch(self) -> str:
        """A folder on the board that the tests may fill; an absolute path. Empty at first."""

    @property
    @abstractmethod
    def full_folder(self) -> str | None:
        """A folder on the board with room for less than 4 MB; None if there is none."""

    @property
    @abstractmethod
    def read_only_folder(self) -> str | None:
        """A folder on a file system mounted read-only; None if there is none."""

    @abstractmethod
    def transport(self) -> Transport:
        """A transport to the board, not connected."""

    @abstractmethod
    async def cut(self) -> None:
        """Cut all connections at once. The board goes on and can be reached again."""


class RigTests:
    """Implement `open_rig`."""

    def open_rig(self) -> AbstractAsyncContextManager[TransportRig]:
        """Start a board for one test."""
        raise NotImplementedError

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[tuple[TransportRig, Transport]]:
        """A rig with a connected transport."""
        async with self.open_rig() as rig:
            transport = rig.transport()
            await soon(transport.connect())
            try:
                yield rig, transport
            finally:
                await soon(transport.close())


def demand(is_met: bool, expected: str) -> None:
    """Fail with what was expected and what came."""
    if not is_met:
        raise AssertionError(f"expected {expected}")


def demand_equal(got: object, expected: object, what: str) -> None:
    """Fail if the two differ; long values are shown in part."""
    if got != expected:
        raise AssertionError(f"{what}: expected {expected!r:.300}, got {got!r:.300}")


async def soon(step: Awaitable[_T]) -> _T:
    """The step's result, or a failure after BOUND_S."""
    async with asyncio.timeout(BOUND_S):
        return await step


async def demand_error(kind: type[_E], step: Awaitable[object]) -> _E:
    """The step must raise `kind`, with words for the user."""
    try:
        got = await soon(step)
    except kind as error:
        demand(bool(error.step) and bool(error.seen), f"step and seen in {error!r}")
        return error
    raise AssertionError(f"expected {kind.__name__}, got {got!r:.300}")


async def eventually(check: Callable[[], Coroutine[None, None, bool]], what: str) -> None:
    """Ask until it is true; a failure after BOUND_S."""
    try:
        async with asyncio.timeout(BOUND_S):
            while not await check():  # noqa: ASYNC110 - boards send no events
                await asyncio.sleep(0.02)
    except TimeoutError:
        raise AssertionError(f"never became true: {what}") from None


async def text_of(transport: Transport, script: str, *arguments: str) -> str:
    """What a sh script prints on the board; it must exit with 0."""
    result = await transport.run(["sh", "-c", script, "sh", *arguments], timeout_s=BOUND_S)
    demand_equal((result.exit_status, result.error_text), (0, ""), f"sh -c {script}")
    return result.text
