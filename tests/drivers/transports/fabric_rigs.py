"""The rigs of the SSH drivers, reached by fabric."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from farm.drivers.transports.fabric import FabricTransport
from farm.drivers.transports.ssh_context import SshContext
from farm.interfaces.transport import Transport
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
