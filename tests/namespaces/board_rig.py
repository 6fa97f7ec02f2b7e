"""The transport suite's rig on a board that is a machine of its own."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from farm.drivers.transports.asyncssh import AsyncsshTransport
from farm.drivers.transports.ssh_context import SshContext
from farm.model.board import ConnectionLimits
from farm.testing.transport_rig import TransportRig
from tests.servers.namespace_board import USER, NamespaceBoard

LIMITS = ConnectionLimits(
    keepalive_s=1.0, keepalive_count=2, login_timeout_s=4.0, starts_per_s=1000.0
)
"""A dead link is known after 3 s."""

SMALL, FIXED = "/mnt/small", "/mnt/fixed"


def transport_to(
    board: NamespaceBoard, *, host_key_algorithms: tuple[str, ...] = ()
) -> AsyncsshTransport:
    """A transport to the board, not connected."""
    entry = board.inventory_entry()
    if host_key_algorithms:
        entry = entry.model_copy(update={"host_key_algorithms": host_key_algorithms})
    return AsyncsshTransport(entry, SshContext(LIMITS))


def add_file_systems(board: NamespaceBoard) -> None:
    """A file system of 2 MB, and one that is read-only."""
    board.console(["mkdir", "-p", SMALL, FIXED])
    board.console(["mount", "-t", "tmpfs", "-o", "size=2m,mode=777", "t", SMALL])
    board.console(["mount", "-t", "tmpfs", "-o", "ro,size=2m", "t", FIXED])


class BoardRig(TransportRig):
    """One test's part of a board."""

    def __init__(self, board: NamespaceBoard, name: str) -> None:
        self.board, self.name = board, name

    @property
    def scratch(self) -> str:
        """An empty folder."""
        return f"/home/{USER}/{self.name}"

    @property
    def full_folder(self) -> str | None:
        """On the small file system."""
        return f"{SMALL}/{self.name}"

    @property
    def read_only_folder(self) -> str | None:
        """On the read-only file system."""
        return FIXED

    def transport(self) -> AsyncsshTransport:
        """Not connected."""
        return transport_to(self.board)

    async def cut(self) -> None:
        """End sshd's process for each connection: the kernel resets them."""
        await asyncio.to_thread(self.board.console, ["pkill", "-KILL", "-f", "^sshd: jet"])


@asynccontextmanager
async def board_rig(board: NamespaceBoard) -> AsyncIterator[TransportRig]:
    """A rig with folders of its own on a board that has `add_file_systems`."""
    rig = BoardRig(board, uuid.uuid4().hex[:8])
    folders = (rig.scratch, f"{SMALL}/{rig.name}")
    board.console(["install", "-d", "-o", USER, "-g", USER, *folders])
    yield rig
    board.console(["rm", "-rf", *folders])
