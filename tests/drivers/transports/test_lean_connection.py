"""The lean connection asks sshd for less, and asyncssh's own stands in for it."""

from pathlib import Path

import asyncssh
import pytest

from farm.drivers.transports import lean_connection, ssh_dial
from farm.drivers.transports.asyncssh import AsyncsshTransport
from farm.drivers.transports.ssh_context import SshContext
from farm.model.board import ConnectionLimits
from farm.testing.transport_rig import soon
from tests.servers.ssh import SshServer

MSG_IGNORE = 2


def test_it_is_used_with_the_asyncssh_that_is_installed() -> None:
    assert lean_connection.IS_KNOWN, "look at what asyncssh changed, then at IS_KNOWN"


@pytest.mark.parametrize(("is_known", "asks"), [(True, 1), (False, 3)])
async def test_one_login_request_and_nothing_to_ignore(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_known: bool, asks: int
) -> None:
    requests: list[int] = []
    ignored: list[int] = []
    kept = asyncssh.SSHServerConnection.log_received_packet

    def note(self: asyncssh.SSHServerConnection, pkttype: int, *rest: object) -> None:
        ignored.extend([pkttype] if pkttype == MSG_IGNORE else [])
        kept(self, pkttype, *rest)  # type: ignore[arg-type]

    send = asyncssh.SSHClientConnection.send_userauth_request

    async def count(
        self: asyncssh.SSHClientConnection, method: bytes, *rest: bytes, **more: object
    ) -> None:
        requests.append(len(method))
        await send(self, method, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(asyncssh.SSHServerConnection, "log_received_packet", note)
    monkeypatch.setattr(asyncssh.SSHClientConnection, "send_userauth_request", count)
    monkeypatch.setattr(ssh_dial, "IS_KNOWN", is_known)
    async with SshServer(tmp_path / "root") as server:
        transport = AsyncsshTransport(server.board(), SshContext(ConnectionLimits()))
        await soon(transport.connect())
        assert (await soon(transport.run(["echo", "x"], timeout_s=30))).stdout == b"x\n"
        await transport.close()
    assert len(requests) == asks
    assert bool(ignored) is not is_known
