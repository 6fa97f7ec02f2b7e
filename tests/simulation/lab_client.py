"""Profiles of simulated boards, SSH clients for them, and waiting for conditions."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import asyncssh

from farm.model.board import Board, Inventory, MeterSpec
from farm.model.profile import BoardProfile, Identification, SimulationModel

REFRESH_S = 0.1

PROFILES = {
    "jetson-tx2": BoardProfile(
        name="jetson-tx2",
        summary="TX2",
        power_controller="nvpmodel",
        cores=6,
        memory_gb=8,
        simulation=SimulationModel(
            nvpmodel_conf="tx2", idle_w={"MAXN": 5.0, "MAXQ": 3.4, "MAXP_CORE_ALL": 4.2}
        ),
    ),
    "jetson-nano": BoardProfile(
        name="jetson-nano",
        summary="Nano",
        power_controller="nvpmodel",
        cores=4,
        simulation=SimulationModel(nvpmodel_conf="nano", idle_w={"MAXN": 2.0, "5W": 1.6}),
    ),
    "zcu104": BoardProfile(
        name="zcu104",
        summary="ZCU104",
        identify=Identification(compatible=("xlnx,zynqmp-zcu104",), model=("ZynqMP ZCU104",)),
        cores=4,
        simulation=SimulationModel(idle_w={"": 19.9}, cpu_w=0.5),
    ),
}


_given: set[tuple[str, int]] = set()


def free_port(host: str) -> int:
    """A port that nobody uses on that address; never the same one twice."""
    while True:
        with socket.socket() as probe:
            probe.bind((host, 0))
            port: int = probe.getsockname()[1]
        if (host, port) not in _given:
            _given.add((host, port))
            return port


@asynccontextmanager
async def ssh(board: Board) -> AsyncIterator[asyncssh.SSHClientConnection]:
    """A connection as the inventory says, the host key verified."""
    async with asyncssh.connect(
        board.host,
        board.port,
        username=board.user,
        client_keys=[str(board.identity_file)],
        known_hosts=str(board.known_hosts),
        config=None,
        agent_path=None,
        connect_timeout=20,
    ) as connection:
        yield connection


async def run(board: Board, command: str) -> asyncssh.SSHCompletedProcess:
    """One command over a connection of its own."""
    async with ssh(board) as connection:
        return await connection.run(command, stdin=asyncssh.DEVNULL, timeout=30)


async def output(board: Board, command: str) -> str:
    """What the command prints on stdout."""
    return str((await run(board, command)).stdout)


async def until(condition: Callable[[], bool | Awaitable[bool]], seconds: float = 20.0) -> None:
    """Wait until it holds; fail when it does not within that time."""
    async with asyncio.timeout(seconds):
        while True:
            holds = condition()
            if not isinstance(holds, bool):
                holds = await holds
            if holds:
                return
            await asyncio.sleep(0.02)


def marked_processes(root: Path) -> list[int]:
    """Pids of live processes that carry this lab's root in their environment."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            entries = (folder / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if any(entry.startswith(f"FARM_ROOT={root}".encode()) for entry in entries):
            found.append(int(folder.name))
    return found


def inventory(boards: list[Board], meters: list[MeterSpec] | None = None) -> Inventory:
    """An inventory of these."""
    return Inventory(boards=tuple(boards), meters=tuple(meters or ()))
