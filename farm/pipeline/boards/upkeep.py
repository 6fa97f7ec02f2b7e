"""Learning boards' host keys, freeing their disks."""

from collections.abc import Sequence
from pathlib import Path

from farm.drivers.transports.enrolment import ShownHostKey, enrol, fetch_host_key
from farm.model.board import Board
from farm.pipeline.boards.reach import Answer, agent_on, context_of, leased, on_each
from farm.pipeline.lab import Lab


async def show_keys(boards: Sequence[Board]) -> list[Answer[ShownHostKey]]:
    """Ask all boards for their host keys at once. Nothing is trusted by that."""
    return await on_each(boards, fetch_host_key)


def trust(answers: Sequence[Answer[ShownHostKey]]) -> list[Path]:
    """Write the keys that were shown into the boards' known_hosts; the files' paths.

    Raises HostKeyError when a file cannot be written.
    """
    paths = [enrol(one.board, one.value) for one in answers if one.value is not None]
    return list(dict.fromkeys(paths))


async def clean(lab: Lab, boards: Sequence[Board]) -> list[Answer[int]]:
    """Remove cached payloads from boards that no run works on; bytes freed."""
    context = context_of(lab)

    async def free(board: Board) -> int:
        async with agent_on(board, context, limit_s=400) as agent, leased(agent, "clean"):
            return await agent.clean()

    return await on_each(boards, free)
