"""Keys, known hosts and the pace of connecting."""

import asyncio
import os
from pathlib import Path

import pytest

from farm.drivers.transports.ssh_context import (
    HOST_KEY_ALGORITHMS,
    SshContext,
    StartRate,
    describe_key,
)
from farm.errors import AuthError, HostKeyError
from farm.model.board import Board, ConnectionLimits
from tests.servers.ssh_keys import make_key, public_line, write_key

HOST, OTHER = make_key("host").convert_to_public(), make_key("other").convert_to_public()


def board_at(tmp_path: Path, *, host: str = "10.0.0.1", port: int = 22, **more: object) -> Board:
    return Board.model_validate(
        {"name": "b", "profile": "any", "host": host, "port": port, "user": "u"}
        | {"known_hosts": tmp_path / "known_hosts", "identity_file": tmp_path / "key"}
        | more
    )


def write_lines(tmp_path: Path, *lines: str) -> None:
    """Each version of the file is another one for a cache: its size or time differs."""
    path = tmp_path / "known_hosts"
    before = path.stat().st_mtime_ns if path.exists() else 0
    path.write_text("".join(f"{line}\n" for line in lines))
    os.utime(path, ns=(before + 1, before + 1))


def context() -> SshContext:
    return SshContext(ConnectionLimits())


def test_keys_of_the_board_and_port_only(tmp_path: Path) -> None:
    write_lines(tmp_path, f"10.0.0.1 {public_line(HOST)}", f"[10.0.0.2]:2222 {public_line(OTHER)}")
    shared = context()
    assert shared.trusted_keys(board_at(tmp_path)).keys == (HOST,)
    assert shared.trusted_keys(board_at(tmp_path, host="10.0.0.2", port=2222)).keys == (OTHER,)
    assert shared.trusted_keys(board_at(tmp_path, host="10.0.0.2")).keys == ()


def test_file_is_parsed_once_and_again_when_it_changes(tmp_path: Path) -> None:
    write_lines(tmp_path, f"10.0.0.1 {public_line(HOST)}")
    shared, board = context(), board_at(tmp_path)
    first = shared.trusted_keys(board)
    assert shared.trusted_keys(board) is first
    write_lines(tmp_path, f"10.0.0.1 {public_line(OTHER)}")
    assert shared.trusted_keys(board).keys == (OTHER,)


def test_no_file_trusts_nothing(tmp_path: Path) -> None:
    assert context().trusted_keys(board_at(tmp_path)).keys == ()


def test_file_that_does_not_parse_is_named(tmp_path: Path) -> None:
    write_lines(tmp_path, "nonsense")
    with pytest.raises(HostKeyError, match="known_hosts"):
        context().trusted_keys(board_at(tmp_path))


def test_revoked_key_is_not_trusted(tmp_path: Path) -> None:
    line = f"10.0.0.1 {public_line(HOST)}"
    write_lines(tmp_path, line, f"@revoked {line}")
    trusted = context().trusted_keys(board_at(tmp_path))
    assert trusted.keys == ()
    assert "revoked" in trusted.judge(board_at(tmp_path), HOST).seen


def test_unknown_and_changed_are_told_apart(tmp_path: Path) -> None:
    board = board_at(tmp_path)
    unknown = context().trusted_keys(board).judge(board, HOST)
    assert "not known" in unknown.seen
    assert describe_key(HOST) in unknown.seen
    assert "farm boards enroll b" in unknown.remedy
    write_lines(tmp_path, f"10.0.0.1 {public_line(OTHER)}")
    changed = context().trusted_keys(board).judge(board, HOST)
    assert describe_key(HOST) in changed.seen
    assert describe_key(OTHER) in changed.seen


def test_enrolled_algorithms_come_first_and_ssh_rsa_only_on_demand(tmp_path: Path) -> None:
    rsa = make_key("rsa", "ssh-rsa")
    write_lines(tmp_path, f"10.0.0.1 {public_line(rsa)}")
    board = board_at(tmp_path)
    names = context().trusted_keys(board).algorithms(board)
    assert set(names[:2]) == {"rsa-sha2-256", "rsa-sha2-512"}
    assert set(names) == set(HOST_KEY_ALGORITHMS)
    old = board_at(tmp_path, host_key_algorithms=("ssh-rsa",))
    assert "ssh-rsa" in context().trusted_keys(old).algorithms(old)


def test_private_key_is_read_once(tmp_path: Path) -> None:
    path = write_key(tmp_path, "login")
    shared, board = context(), board_at(tmp_path, identity_file=path)
    assert shared.login_keys(board)[0] is shared.login_keys(board)[0]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "does not exist"),
        (b"not a key", "cannot be read"),
        (
            make_key("login").export_private_key(passphrase="secret", rounds=50),
            "is encrypted",
        ),
    ],
)
def test_unusable_private_key_is_named(tmp_path: Path, content: bytes | None, words: str) -> None:
    board = board_at(tmp_path)
    if content is not None:
        (tmp_path / "key").write_bytes(content)
    with pytest.raises(AuthError, match=words) as caught:
        context().login_keys(board)
    assert str(tmp_path / "key") in caught.value.seen
    assert caught.value.remedy


def test_usual_keys_serve_boards_that_name_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    board = board_at(tmp_path, identity_file=None)
    with pytest.raises(AuthError, match="no private key") as caught:
        context().login_keys(board)
    assert "ssh-keygen" in caught.value.remedy
    (tmp_path / ".ssh").mkdir()
    make_key("login").write_private_key(tmp_path / ".ssh" / "id_ed25519")
    make_key("x").write_private_key(tmp_path / ".ssh" / "id_rsa", passphrase="x", rounds=50)
    assert len(context().login_keys(board)) == 1


def test_start_rate_lets_a_burst_go_and_then_keeps_the_pace() -> None:
    rate = StartRate(10.0, 3)
    assert [rate.delay_s(100.0) for _ in range(3)] == [0.0, 0.0, 0.0]
    assert rate.delay_s(100.0) == pytest.approx(0.1)
    assert rate.delay_s(100.0) == pytest.approx(0.2)
    assert rate.delay_s(100.25) == pytest.approx(0.05)
    assert [rate.delay_s(200.0) for _ in range(3)] == [0.0, 0.0, 0.0]


async def test_only_so_many_connect_at_once() -> None:
    shared = SshContext(ConnectionLimits(connecting=2, starts_per_s=1000))
    now, most = 0, 0
    go = asyncio.Event()

    async def connect() -> None:
        nonlocal now, most
        async with shared.turn():
            now += 1
            most = max(most, now)
            await go.wait()
            now -= 1

    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        for _ in range(5):
            group.create_task(connect())
        for _ in range(100):
            await asyncio.sleep(0)
        go.set()
    assert most == 2
