"""Reaches a board by SSH with fabric and paramiko, whose calls block: in threads.

In the inventory: ``transport: fabric``, with host, port, user, identity_file or password, and
known_hosts, as for asyncssh. For labs that build on fabric, and as a second opinion where asyncssh
is in doubt; asyncssh is quicker and needs no threads. Its libraries are the extra ``hands-on``.

Neither the user's SSH configuration nor an agent is asked, and fabric's habit of accepting any
host key is off. paramiko has no ssh-rsa (SHA-1) for old boards, no ChaCha20, and no host
certificates. Tried against OpenSSH 9.2 and asyncssh's server.
"""

from farm.drivers.transports.fabric_dial import dial
from farm.drivers.transports.ssh_context import SshContext
from farm.drivers.transports.ssh_link import Link
from farm.drivers.transports.ssh_transport import SshTransport
from farm.model.board import Board


class FabricTransport(SshTransport):
    """One kept connection to one board, by fabric. Arguments as `SshTransport`.

    Threads: paramiko's own one, one for each running command, and another for a moment while
    something is written, connected or closed.
    """

    async def _open(self, board: Board, context: SshContext, password: str | None) -> Link:
        connection = await dial(board, context, password)
        return Link(board.name, connection, connection)
