"""What is done to boards outside of runs: learning their host keys, freeing their disks."""

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from farm.config.secrets import resolve_secret
from farm.drivers.agent import open_agent
from farm.drivers.registry import transport_class
from farm.drivers.transports.enrolment import ShownHostKey, enrol, fetch_host_key
from farm.drivers.transports.ssh_context import SshContext
from farm.errors import BoardError
from farm.model.board import Board
from farm.pipeline.lab import Lab

LEASE_S = 300.0
"""Longer than cleaning takes; a board that a run works on is left alone."""


@dataclass(frozen=True, slots=True)
class BoardAnswer:
    """What came of it on one board: `fault` is "" when it went well."""

    board: Board
    text: str = ""
    fault: str = ""
    key: ShownHostKey | None = None


async def show_keys(boards: Sequence[Board]) -> list[BoardAnswer]:
    """Ask all boards for their host keys at once. Nothing is trusted by that."""

    async def ask(board: Board) -> BoardAnswer:
        key = await fetch_host_key(board)
        return BoardAnswer(board, key.description, key=key)

    return await _on_each(boards, ask)


def trust(answers: Sequence[BoardAnswer]) -> list[Path]:
    """Write the keys that were shown into the boards' known_hosts; the files' paths.

    Raises HostKeyError when a file cannot be written.
    """
    paths = [enrol(one.board, one.key) for one in answers if one.key is not None]
    return list(dict.fromkeys(paths))


async def clean(lab: Lab, boards: Sequence[Board]) -> list[BoardAnswer]:
    """Remove cached payloads from boards that no run works on."""
    context = SshContext(lab.inventory.limits)
    holder = f"{socket.gethostname()} pid {os.getpid()}"
    lease = f"clean-{os.getpid()}"

    async def free(board: Board) -> BoardAnswer:
        password = resolve_secret(board.password) if board.password else None
        link = transport_class(board.transport)(board, context, password=password)
        try:
            await link.connect()
            agent = await open_agent(link, board)
            try:
                await agent.take_lease(lease, holder, LEASE_S)
                freed = await agent.clean()
                await agent.release_lease(lease)
            finally:
                await agent.close()
        finally:
            await link.close()
        return BoardAnswer(board, f"{freed / 1e6:.1f} MB freed")

    return await _on_each(boards, free)


async def _on_each(
    boards: Sequence[Board], action: Callable[[Board], Awaitable[BoardAnswer]]
) -> list[BoardAnswer]:
    async def safely(board: Board) -> BoardAnswer:
        try:
            return await action(board)
        except BoardError as error:
            return BoardAnswer(board, fault=str(error.named(board.name)))

    return await asyncio.gather(*(safely(board) for board in boards))
