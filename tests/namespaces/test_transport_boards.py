"""The transport when the board or the way to it fails: cables, frozen boards, disks, reboots.

Whatever the fault: a named error within the bound that the keepalive gives, never a success.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import pytest

from farm.drivers.transports.asyncssh import AsyncsshTransport
from farm.errors import (
    ConnectError,
    FarmError,
    HostKeyError,
    LinkLostError,
    TransferError,
    TransportError,
)
from farm.interfaces.transport import CommandResult
from tests.namespaces.board_rig import transport_to
from tests.servers.namespaces import BoardOptions, NamespaceBoard

MakeBoard = Callable[[BoardOptions], NamespaceBoard]
Fault = Callable[[NamespaceBoard], None]
BOUND_S = 20.0
"""Far more than the 3 s of LIMITS: the machine may be loaded, but nothing may wait for ever."""

OPENSSH_7_6 = (
    "HostKeyAlgorithms ssh-rsa",
    "PubkeyAcceptedAlgorithms ssh-rsa,ssh-ed25519",
    "KexAlgorithms curve25519-sha256,ecdh-sha2-nistp256,diffie-hellman-group14-sha1",
    "Ciphers aes128-ctr,aes256-ctr,chacha20-poly1305@openssh.com",
    "MACs hmac-sha1,hmac-sha2-256",
)


async def lost(step: Awaitable[object]) -> LinkLostError:
    """The step must end in LinkLostError, in time."""
    async with asyncio.timeout(BOUND_S):
        with pytest.raises(LinkLostError) as caught:
            await step
    return caught.value


async def until(check: Callable[[], bool], what: str) -> None:
    """Wait for a condition."""
    async with asyncio.timeout(BOUND_S):
        while not check():  # noqa: ASYNC110 - boards send no events
            await asyncio.sleep(0.02)
    assert check(), what


async def sh(transport: AsyncsshTransport, script: str) -> CommandResult:
    return await transport.run(["sh", "-c", script], timeout_s=BOUND_S)


def names_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def pull_the_cable(board: NamespaceBoard) -> None:
    board.link_down()


def freeze(board: NamespaceBoard) -> None:
    board.freeze()


def cut_the_power(board: NamespaceBoard) -> None:
    board.link_down()  # a machine without power sends no resets
    board.power_off()


FAULTS = pytest.mark.parametrize("fault", [pull_the_cable, freeze, cut_the_power])


@FAULTS
async def test_every_operation_under_way_is_lost(board: NamespaceBoard, fault: Fault) -> None:
    """A command, one that is started later, a stream that sends, a put and a get."""
    transport = await transport_to(board).connect()
    got, ends = bytearray(), list[str]()
    stream = await transport.stream(["cat"], got.extend, on_lost=lambda: ends.append("end"))
    stream.write(b"begun\n")
    await until(lambda: bool(got), "the stream's echo")
    command = asyncio.create_task(transport.run(["sleep", "60"], timeout_s=60))
    await sh(transport, "true")
    fault(board)
    stream.write(b"into the void\n")
    later = asyncio.create_task(transport.run(["true"], timeout_s=60))
    for step in (command, later, stream.wait(60)):
        await lost(step)
    assert ends == ["end"]
    assert not transport.is_connected
    await lost(transport.run(["true"], timeout_s=60))
    await transport.close()


@pytest.mark.parametrize("fault", [pull_the_cable, freeze])
async def test_a_put_under_way_is_lost_and_leaves_no_file(
    board: NamespaceBoard, fault: Fault
) -> None:
    transport = await transport_to(board).connect()
    put = asyncio.create_task(transport.put({"large": bytes(30_000_000)}, "~/in", timeout_s=60))
    await until(lambda: board.exists("/home/jet/in"), "the put's first bytes")
    fault(board)
    await lost(put)
    await transport.close()
    assert not board.exists("/home/jet/in/large")


@pytest.mark.parametrize("fault", [pull_the_cable, freeze])
async def test_a_get_under_way_is_lost_and_leaves_no_file(
    make_board: MakeBoard, fault: Fault, tmp_path: Path
) -> None:
    board = make_board(BoardOptions(disk="250m"))
    transport = await transport_to(board).connect()
    assert (await sh(transport, "head -c 200M /dev/zero > ~/large")).exit_status == 0
    get = asyncio.create_task(transport.get("/home/jet/large", tmp_path / "large", timeout_s=60))
    await until(lambda: any(path.stat().st_size for path in tmp_path.iterdir()), "first bytes")
    fault(board)
    await lost(get)
    await transport.close()
    assert names_in(tmp_path) == []


async def test_a_short_drop_of_the_link_is_survived(board: NamespaceBoard) -> None:
    """Shorter than the keepalive's patience: TCP sends again, nothing is lost."""
    transport = await transport_to(board).connect()
    counted = asyncio.create_task(
        transport.run(["wc", "-c"], stdin=bytes(20_000_000), timeout_s=BOUND_S)
    )
    board.link_down()
    await asyncio.sleep(0.3)
    board.link_up()
    assert (await counted).text.split() == ["20000000"]
    await transport.close()


async def test_connecting_through_a_cut_cable_ends_in_time(board: NamespaceBoard) -> None:
    board.link_down()
    async with asyncio.timeout(BOUND_S):
        with pytest.raises(ConnectError):
            await transport_to(board).connect()


async def test_connecting_to_a_frozen_board_ends_in_time(board: NamespaceBoard) -> None:
    """The kernel takes the connection, so only a limit on the login finds it."""
    board.freeze()
    transport = transport_to(board)
    async with asyncio.timeout(BOUND_S):
        with pytest.raises(ConnectError):
            await transport.connect()
    board.thaw()
    await transport.connect()
    await transport.close()


async def test_a_reboot_asked_for_by_a_command(board: NamespaceBoard) -> None:
    """The command may return or be lost; afterwards the board is another boot."""
    transport = await transport_to(board).connect()
    before = (await sh(transport, "cat /proc/sys/kernel/random/boot_id")).text
    with suppress(LinkLostError):
        await transport.run(["sudo", "-n", "reboot"], timeout_s=BOUND_S)
    await until(lambda: not transport.is_connected, "the end of the link")
    await until(lambda: board.boot_id != before.strip(), "another boot")
    board.wait_until_up()
    await transport.connect()
    assert (await sh(transport, "cat /proc/sys/kernel/random/boot_id")).text != before
    await transport.close()


async def test_a_full_disk_is_told_and_changes_nothing(board: NamespaceBoard) -> None:
    transport = await transport_to(board).connect()
    await transport.put({"kept": b"old"}, "~/in", timeout_s=BOUND_S)
    board.fill_disk()
    with pytest.raises(TransferError, match=r"(?i)space"):
        await transport.put({"kept": b"new", "more": b"x"}, "~/in", timeout_s=BOUND_S)
    assert board.read("/home/jet/in/kept") == b"old"
    assert (await sh(transport, "ls -A ~/in")).text == "kept\n"
    board.free_disk()
    await transport.put({"kept": b"new"}, "~/in", timeout_s=BOUND_S)
    assert board.read("/home/jet/in/kept") == b"new"
    await transport.close()


async def test_a_read_only_root_is_told(board: NamespaceBoard, tmp_path: Path) -> None:
    transport = await transport_to(board).connect()
    await transport.put({"kept": b"old"}, "~/in", timeout_s=BOUND_S)
    board.remount_read_only()
    with pytest.raises(TransferError, match=r"(?i)read-only"):
        await transport.put({"kept": b"new"}, "~/in", timeout_s=BOUND_S)
    await transport.get("/home/jet/in/kept", tmp_path / "kept", timeout_s=BOUND_S)
    assert (tmp_path / "kept").read_bytes() == b"old"
    await transport.close()


async def test_a_changed_host_key_is_refused(board: NamespaceBoard) -> None:
    transport = await transport_to(board).connect()
    board.new_host_key()
    assert (await sh(transport, "echo on")).text == "on\n"  # the open link is still the same
    await transport.close()
    with pytest.raises(HostKeyError) as caught:
        await transport.connect()
    assert not caught.value.retryable
    board.known_hosts.write_text(board.host_key_line)
    await transport.connect()
    await transport.close()


@pytest.mark.parametrize(
    ("shell", "start_up"),
    [("/bin/csh", ".cshrc"), ("/usr/bin/fish", ".config/fish/config.fish"), ("/bin/sh", "none")],
)
async def test_the_users_own_shell(
    make_board: MakeBoard, shell: str, start_up: str, tmp_path: Path
) -> None:
    """Neither its grammar nor what its start-up file prints gets into results."""
    files = {f"/home/jet/{start_up}": "echo noise\n"}
    board = make_board(BoardOptions(shell=shell, files=files))
    transport = await transport_to(board).connect()
    words = ["a b", "$HOME", "it's", 'say "hi"', "!!", "a\nb", "\\", "*", "", "x=1;y"]
    shown = await transport.run(["printf", "%s\\0", *words], timeout_s=BOUND_S)
    assert shown.stdout.decode().split("\0")[:-1] == words
    echoed = await transport.run(["cat"], stdin=bytes(range(256)), timeout_s=BOUND_S)
    assert echoed.stdout == bytes(range(256))
    assert (await sh(transport, "x=1; exit $((x + 6))")).exit_status == 7
    await transport.put({"in/a": b"content"}, "~/put", timeout_s=BOUND_S)
    await transport.get("/home/jet/put/in/a", tmp_path / "a", timeout_s=BOUND_S)
    assert (tmp_path / "a").read_bytes() == b"content"
    await transport.close()


async def test_a_board_of_2018(make_board: MakeBoard) -> None:
    """OpenSSH 7.6's algorithms with an RSA key: refused with a remedy until allowed."""
    board = make_board(BoardOptions(host_key_type="rsa", sshd_extra=OPENSSH_7_6))
    with pytest.raises(TransportError) as caught:
        await transport_to(board).connect()
    assert "ssh-rsa" in caught.value.remedy
    transport = await transport_to(board, host_key_algorithms=("ssh-rsa",)).connect()
    await transport.put({"a": b"content"}, "~/in", timeout_s=BOUND_S)
    assert board.read("/home/jet/in/a") == b"content"
    await transport.close()


async def test_a_board_without_python_is_reached(board: NamespaceBoard) -> None:
    board.remove_python()
    transport = await transport_to(board).connect()
    assert (await transport.run(["python3", "-V"], timeout_s=BOUND_S)).exit_status == 127
    await transport.put({"a": b"content"}, "~/in", timeout_s=BOUND_S)
    assert board.read("/home/jet/in/a") == b"content"
    await transport.close()


@pytest.mark.parametrize(
    ("sudoers", "is_allowed"),
    [
        ("jet ALL=(ALL) NOPASSWD: ALL\n", True),
        ("jet ALL=(ALL) ALL\n", False),
        ("Defaults use_pty\njet ALL=(ALL) NOPASSWD: ALL\n", True),
    ],
    ids=["without password", "with password", "use_pty"],
)
async def test_sudo_never_waits_for_a_password(
    make_board: MakeBoard, sudoers: str, is_allowed: bool
) -> None:
    board = make_board(BoardOptions(sudoers=sudoers))
    transport = await transport_to(board).connect()
    done = await transport.run(["sudo", "-n", "id", "-u"], timeout_s=BOUND_S)
    assert (done.exit_status == 0) is is_allowed
    assert done.text == ("0\n" if is_allowed else "")
    await transport.close()


async def test_one_dead_board_does_not_hold_up_the_others(make_board: MakeBoard) -> None:
    boards = [make_board(BoardOptions()) for _ in range(3)]
    transports = [transport_to(board) for board in boards]
    await asyncio.gather(*(transport.connect() for transport in transports))
    boards[1].freeze()
    steps = [transport.run(["hostname"], timeout_s=60) for transport in transports]
    async with asyncio.timeout(BOUND_S):
        ends = await asyncio.gather(*steps, return_exceptions=True)
    told = [end.text.strip() if isinstance(end, CommandResult) else type(end) for end in ends]
    assert told == [boards[0].name, LinkLostError, boards[2].name]
    assert issubclass(LinkLostError, FarmError)
    await asyncio.gather(*(transport.close() for transport in transports))
