"""The transport suite on our SSH driver, against OpenSSH's sshd with the habits of boards."""

import asyncio
import subprocess
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from signal import SIGCONT, SIGSTOP

import pytest

from farm.errors import ConnectError, HostKeyError, LinkLostError, TransportError
from farm.testing.transport_contract import (
    CommandTests,
    FileTests,
    TransportContract,
    TransportRig,
)
from farm.testing.transport_rig import demand_error, soon, text_of
from tests.drivers.transports.rigs import (
    SshdRig,
    need,
    sshd_rig,
    through,
    tools_rig,
)
from tests.servers.ssh_keys import make_key, write_known_hosts
from tests.servers.sshd import OLD_ALGORITHMS

pytestmark = pytest.mark.sshd

NOISY = "echo noise; echo more noise >&2; printf half; "


def known_hosts_of(rig: SshdRig) -> Path:
    """The rig's known_hosts file."""
    assert rig.board.known_hosts is not None
    return rig.board.known_hosts


class TestSshdWithoutSftp(TransportContract):
    """MaxSessions 10 and no Subsystem line, as sshd_config(5) has it by default."""

    def open_rig(self) -> AbstractAsyncContextManager[TransportRig]:
        return sshd_rig(("MaxSessions 10",))


class TestNoisyStart(CommandTests, FileTests):
    """Start-up files that print to both outputs, without a line end."""

    def open_rig(self) -> AbstractAsyncContextManager[TransportRig]:
        return sshd_rig(through("sh", NOISY))


@pytest.mark.slow
class TestCsh(CommandTests, FileTests):
    """`!` is history even in single quotes, and a newline in quotes is an error."""

    def open_rig(self) -> AbstractAsyncContextManager[TransportRig]:
        return sshd_rig(through(need("csh")))


@pytest.mark.slow
class TestFish(CommandTests, FileTests):
    """Two escapes in single quotes, and exit status 0 after a syntax error."""

    def open_rig(self) -> AbstractAsyncContextManager[TransportRig]:
        return sshd_rig(through(need("fish")))


@pytest.mark.slow
class TestBusybox(CommandTests, FileTests):
    """A board that has busybox for everything, as small images do."""

    def open_rig(self) -> AbstractAsyncContextManager[TransportRig]:
        busybox = need("busybox")
        listed = subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True)
        return tools_rig(dict.fromkeys(listed.stdout.split(), busybox))


class TestNoTar(FileTests):
    """Neither tar nor sha256sum: cat and openssl do."""

    def open_rig(self) -> AbstractAsyncContextManager[TransportRig]:
        names = "sh cat chmod find grep head ls mkdir mv openssl printf rm sleep sort sync wc"
        return tools_rig({name: need(name) for name in names.split()})


async def test_board_of_2018_needs_and_gets_ssh_rsa() -> None:
    """Refused with the remedy by default; reached once the inventory widens the algorithms."""
    async with sshd_rig(OLD_ALGORITHMS, algorithm="ssh-rsa") as rig:
        error = await demand_error(ConnectError, rig.transport().connect())
        assert "host_key_algorithms: [ssh-rsa]" in error.remedy
    async with sshd_rig(OLD_ALGORITHMS, algorithm="ssh-rsa", widen=("ssh-rsa",)) as rig:
        transport = await rig.transport().connect()
        assert await text_of(transport, "echo old") == "old\n"
        await transport.close()


@pytest.mark.parametrize("algorithm", ["ssh-rsa", "ecdsa-sha2-nistp256"])
async def test_other_host_key_types_are_verified(algorithm: str) -> None:
    """An RSA key is used with SHA-2."""
    async with sshd_rig(algorithm=algorithm) as rig:
        transport = await rig.transport().connect()
        assert await text_of(transport, "echo hi") == "hi\n"
        await transport.close()


async def test_changed_host_key_is_refused_with_both_fingerprints() -> None:
    async with sshd_rig() as rig:
        enrolled = make_key("another")
        write_known_hosts(known_hosts_of(rig), rig.board.port, enrolled)
        error = await demand_error(HostKeyError, rig.transport().connect())
        assert enrolled.get_fingerprint() in error.seen
        assert make_key("host").get_fingerprint() in error.seen
        assert "farm boards enroll" in error.remedy


async def test_board_that_changed_the_type_of_its_key_is_refused() -> None:
    """A key of a type that is not enrolled is no reason to fail in the key exchange."""
    async with sshd_rig() as rig:
        enrolled = make_key("another", "ecdsa-sha2-nistp256")
        write_known_hosts(known_hosts_of(rig), rig.board.port, enrolled)
        error = await demand_error(HostKeyError, rig.transport().connect())
        assert enrolled.get_fingerprint() in error.seen


async def test_frozen_peer_is_found_by_keepalive() -> None:
    """It answers nothing and closes nothing; every operation under way fails."""
    async with sshd_rig() as rig:
        transport = await rig.transport().connect()
        ends: list[str] = []
        stream = await transport.stream(
            ["cat"], lambda _: None, on_lost=lambda: ends.append("end")
        )
        running = asyncio.create_task(transport.run(["sleep", "60"], timeout_s=60))
        await text_of(transport, "true")
        rig.server.signal_sessions(SIGSTOP)
        try:
            await demand_error(LinkLostError, running)
            await demand_error(LinkLostError, stream.wait(30))
            assert ends == ["end"]
            assert not transport.is_connected
        finally:
            rig.server.signal_sessions(SIGCONT)
        await transport.connect()
        assert await text_of(transport, "echo back") == "back\n"
        await transport.close()


async def test_account_without_a_shell_is_told_in_its_own_words() -> None:
    """Nothing is lost and nothing is retried: the set-up is wrong."""
    async with sshd_rig(
        ("ForceCommand echo This account is currently not available.; exit 1",)
    ) as rig:
        transport = await rig.transport().connect()
        error = await demand_error(TransportError, transport.run(["true"], timeout_s=30))
        assert "This account is currently not available." in error.seen
        assert not error.retryable
        assert transport.is_connected
        await transport.close()


async def test_shell_that_says_0_without_running_the_command_is_not_believed() -> None:
    async with sshd_rig(("ForceCommand exit 0",)) as rig:
        transport = await rig.transport().connect()
        await demand_error(TransportError, transport.run(["true"], timeout_s=30))
        await transport.close()


async def test_board_with_few_sessions_says_what_to_change() -> None:
    async with sshd_rig(("MaxSessions 1",)) as rig:
        transport = await rig.transport().connect()
        stream = await transport.stream(["cat"], lambda _: None)
        error = await demand_error(TransportError, transport.run(["true"], timeout_s=30))
        assert "MaxSessions" in error.remedy
        stream.end_input()
        assert await soon(stream.wait(30)) == 0
        assert await text_of(transport, "echo free") == "free\n"
        await transport.close()


async def test_long_transfer_survives_new_keys() -> None:
    """The server asks for new session keys after each megabyte."""
    async with sshd_rig(("RekeyLimit 1M",)) as rig:
        transport = await rig.transport().connect()
        data = bytes(range(256)) * 40_000
        result = await transport.run(["cat"], timeout_s=60, stdin=data)
        assert result.stdout == data
        await transport.close()


async def test_job_left_behind_does_not_hold_the_command() -> None:
    """Its shell ended, though the job keeps stdout open; what it prints later is dropped."""
    async with sshd_rig() as rig:
        transport = await rig.transport().connect()
        result = await transport.run(
            ["sh", "-c", "(sleep 5; echo late) & echo done"], timeout_s=4.9
        )
        assert (result.exit_status, result.text) == (0, "done\n")
        await transport.close()


async def test_many_boards_connect_at_once_through_maxstartups() -> None:
    """sshd drops some before the login; these come back."""
    async with sshd_rig(("MaxStartups 3:50:6",)) as rig:
        transports = [rig.transport() for _ in range(12)]
        outcomes = await soon(
            asyncio.gather(
                *(transport.connect() for transport in transports), return_exceptions=True
            )
        )
        reached = [each for each in outcomes if not isinstance(each, BaseException)]
        assert len(reached) >= 6
        lost = [each for each in outcomes if isinstance(each, BaseException)]
        assert all(isinstance(each, ConnectError) for each in lost)
        for transport in transports:
            await transport.close()
