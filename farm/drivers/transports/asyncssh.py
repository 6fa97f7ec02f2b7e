"""Reaches a board by SSH with asyncssh: one kept connection, a session for each command.

In the inventory: ``transport: asyncssh`` (the default), with host, port, user, identity_file or
password, known_hosts, and host_key_algorithms for old boards. Tried against OpenSSH 9.2 (also
with the algorithms of 7.6), login shells sh, bash, dash, csh and fish, and asyncssh's server.

Measured on x86 over loopback: 2.5 to 3 ms of CPU for connect, command and close, 0.4 ms for a
command on a kept connection, 23 KB for an idle one.
"""

from farm.drivers.transports.ssh_context import SshContext
from farm.drivers.transports.ssh_dial import dial
from farm.drivers.transports.ssh_link import Link
from farm.drivers.transports.ssh_transport import SshTransport
from farm.model.board import Board


class AsyncsshTransport(SshTransport):
    """One kept connection to one board, by asyncssh. Arguments as `SshTransport`."""

    async def _open(self, board: Board, context: SshContext, password: str | None) -> Link:
        conn, login, quick_ack = await dial(board, context, password)
        return Link(board.name, conn, login, quick_ack)
