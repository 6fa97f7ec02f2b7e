"""From an unknown board to a strict connection."""

from pathlib import Path

import pytest

from farm.drivers.transports.asyncssh import AsyncsshTransport
from farm.drivers.transports.enrolment import ShownHostKey, enrol, fetch_host_key
from farm.drivers.transports.ssh_context import SshContext
from farm.errors import ConnectError, HostKeyError
from farm.model.board import Board, ConnectionLimits
from farm.testing.transport_rig import demand_error, soon
from tests.servers.ssh import SshServer
from tests.servers.ssh_keys import make_key, public_line


async def test_enrolled_board_can_be_reached(tmp_path: Path) -> None:
    async with SshServer(tmp_path / "root") as server:
        path = tmp_path / "new" / "known_hosts"
        board = server.board().model_copy(update={"known_hosts": path})
        transport = AsyncsshTransport(board, SshContext(ConnectionLimits()))
        await demand_error(HostKeyError, transport.connect())
        shown = await soon(fetch_host_key(board))
        assert make_key("host").get_fingerprint() in shown.description
        assert server.logins == 0
        assert enrol(board, shown) == path
        assert path.stat().st_mode & 0o777 == 0o600
        await soon(transport.connect())
        await transport.close()
        enrol(board, shown)
        assert path.read_text().count("\n") == 1


async def test_board_that_is_not_there(tmp_path: Path) -> None:
    async with SshServer(tmp_path / "root") as server:
        board = server.board()
        await server.stop_listening()
        await demand_error(ConnectError, fetch_host_key(board))


def test_other_lines_stay(tmp_path: Path) -> None:
    path = tmp_path / "known_hosts"
    path.write_text("# mine")
    line = f"b {public_line(make_key('host'))}"
    board = Board(name="b", profile="any", host="b", user="u", known_hosts=path)
    enrol(board, ShownHostKey("", line))
    assert path.read_text() == f"# mine\n{line}\n"
    assert [each.name for each in tmp_path.iterdir()] == ["known_hosts"]


def test_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    board = Board(
        name="b", profile="any", host="b", user="u", known_hosts=tmp_path / "file" / "known_hosts"
    )
    with pytest.raises(HostKeyError, match="known_hosts"):
        enrol(board, ShownHostKey("", "b x y"))
