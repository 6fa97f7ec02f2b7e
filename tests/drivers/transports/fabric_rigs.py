"""The rigs of the SSH drivers, reached by fabric."""

import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from farm.drivers.transports.fabric import FabricTransport
from farm.drivers.transports.ssh_context import SshContext
from farm.interfaces.transport import Transport
from farm.testing.transport_rig import eventually
from tests.drivers.transports.rigs import (
    QUICK,
    SshdRig,
    SshRig,
    in_process_rig,
    sshd_rig,
)


class FabricRig(SshRig):
    def transport(self) -> Transport:
        return FabricTransport(self.board, SshContext(QUICK))


class FabricSshdRig(SshdRig):
    def transport(self) -> Transport:
        return FabricTransport(self.board, SshContext(QUICK))


@asynccontextmanager
async def fabric_in_process_rig() -> AsyncIterator[FabricRig]:
    async with in_process_rig() as rig:
        yield FabricRig(rig.board, rig.folder, rig.cut_links, rig.small, rig.fixed)


@asynccontextmanager
async def fabric_sshd_rig(
    lines: Sequence[str] = (), *, algorithm: str = "ssh-ed25519", widen: tuple[str, ...] = ()
) -> AsyncIterator[FabricSshdRig]:
    async with sshd_rig(lines, algorithm=algorithm, widen=widen) as rig:
        yield FabricSshdRig(
            rig.board, rig.folder, rig.cut_links, rig.small, rig.fixed, server=rig.server
        )


def threads_of(board: str = "") -> list[str]:
    """Threads at work for a board (all), and paramiko's own ones."""
    return [
        each.name
        for each in threading.enumerate()
        if each.name.startswith(f"farm-{board}") or "paramiko" in type(each).__module__
    ]


async def no_thread_is_left(board: str = "") -> None:
    async def are_gone() -> bool:
        return not threads_of(board)

    await eventually(are_gone, f"no threads, there are {threads_of(board)}")
