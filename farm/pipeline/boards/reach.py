"""Opens the boards of a selection at once, and gives one answer a board."""

import asyncio
import gc
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

from farm.config.secrets import resolve_secret
from farm.drivers.agent import SshBoardAgent, open_agent
from farm.drivers.registry import power_controller_class, transport_class
from farm.drivers.transports.ssh_context import SshContext
from farm.errors import (
    AuthError,
    BoardError,
    CommandTimeoutError,
    ConnectError,
    FarmError,
    HostKeyError,
)
from farm.interfaces.power_controller import PowerController
from farm.interfaces.transport import Transport
from farm.model.board import Board
from farm.pipeline.lab import Lab

AT_ONCE = 200
"""Boards worked on at once; how many connections begin at once is the inventory's `limits`."""
WORK_LIMIT_S = 180.0
"""For all that is asked of one connected board, where the caller names no other limit."""
LEASE_S = 300.0
"""Longer than any of these works takes; a board that a run works on is left alone."""

_COLLECT_AFTER = (20_000, 50, 100)
"""New objects, then young collections, then middle ones; Python has 700, 10, 10."""

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
UNREACHED = (ConnectError, AuthError, HostKeyError)


@dataclass(frozen=True, slots=True)
class Answer(Generic[T_co]):
    """What came of it on one board: a value, or the error that names the board."""

    board: Board
    value: T_co | None = None
    error: FarmError | None = None

    @property
    def is_unreached(self) -> bool:
        """Whether the board was not even logged in to."""
        return isinstance(self.error, UNREACHED)


async def on_each(
    boards: Sequence[Board], action: Callable[[Board], Awaitable[T]]
) -> list[Answer[T]]:
    """Do it on all boards at once; a board's error is its answer, in the order of `boards`."""
    places = asyncio.Semaphore(AT_ONCE)

    async def safely(board: Board) -> Answer[T]:
        try:
            async with places:
                return Answer(board, await action(board))
        except BoardError as error:
            return Answer(board, error=error.named(board.name))
        except FarmError as error:  # a secret that is not there, a library that is missing
            return Answer(board, error=error)

    with _few_collections():
        return await asyncio.gather(*(safely(board) for board in boards))


@contextmanager
def _few_collections() -> Iterator[None]:
    """Look for garbage seldom: connections by the hundred make much, and it is short-lived.

    Python would walk all that was ever imported again and again: 5 to 15 % of the CPU of a
    fan-out to 200 boards (measured twice, on a busy machine).
    """
    before = gc.get_threshold()
    gc.set_threshold(*_COLLECT_AFTER)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def context_of(lab: Lab) -> SshContext:
    """What all connections of one command share."""
    return SshContext(lab.inventory.limits)


@asynccontextmanager
async def link_to(board: Board, context: SshContext) -> AsyncIterator[Transport]:
    """A connected transport. Raises ConfigError, DriverError, and what `connect` raises."""
    password = resolve_secret(board.password) if board.password else None
    link = transport_class(board.transport)(board, context, password=password)
    try:
        await link.connect()
        yield link
    finally:
        await link.close()


@asynccontextmanager
async def agent_on(
    board: Board, context: SshContext, *, limit_s: float = WORK_LIMIT_S
) -> AsyncIterator[SshBoardAgent]:
    """A running agent; all that is done with it ends in `limit_s`.

    Raises as `link_to` and `open_agent`, and CommandTimeoutError at the limit. The time that
    connecting takes, and the wait for a place among the connections, do not count.
    """
    async with link_to(board, context) as link:
        try:
            async with asyncio.timeout(limit_s):
                agent = await open_agent(link, board)
                try:
                    yield agent
                finally:
                    await agent.close()
        except TimeoutError as error:
            raise CommandTimeoutError(
                "work on the board",
                f"not done after {limit_s:.0f} s",
                board=board.name,
                remedy="Is it swapping, or is its disk failing? Log in and look.",
            ) from error


@asynccontextmanager
async def leased(agent: SshBoardAgent, purpose: str) -> AsyncIterator[None]:
    """Hold the board meanwhile. Raises LeaseHeldError while a run, or another one, holds it."""
    lease = f"{purpose}-{os.getpid()}"
    await agent.take_lease(lease, f"{socket.gethostname()} pid {os.getpid()}", LEASE_S)
    try:
        yield
    finally:
        await agent.release_lease(lease)


def controller_of(lab: Lab, board: Board, agent: SshBoardAgent) -> PowerController:
    """The board's power controller. Raises DriverError."""
    profile = lab.profiles[board.profile]
    return power_controller_class(profile.power_controller)(agent, profile)
