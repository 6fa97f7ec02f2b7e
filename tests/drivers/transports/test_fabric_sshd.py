"""The transport suite on fabric, against OpenSSH's sshd; peers that freeze, threads that end."""

import asyncio
from contextlib import AbstractAsyncContextManager
from signal import SIGCONT, SIGSTOP

import pytest

from farm.errors import HostKeyError, LinkLostError, TransportError
from farm.testing.transport_contract import (
    CommandTests,
    FileTests,
    TransportContract,
    TransportRig,
)
from farm.testing.transport_rig import demand_error, eventually, soon, text_of
from tests.drivers.transports.fabric_rigs import fabric_sshd_rig, no_thread_is_left, threads_of
from tests.drivers.transports.rigs import need, through
from tests.servers.ssh_keys import make_key, write_known_hosts
from tests.servers.sshd import OLD_ALGORITHMS

pytestmark = pytest.mark.sshd

NOISY = "echo noise; echo more noise >&2; printf half; "


class TestFabricSshd(TransportContract):
    """MaxSessions 10 and no Subsystem line, as sshd_config(5) has it by default."""

    def open_rig(self) -> AbstractAsyncContextManager[TransportRig]:
        return fabric_sshd_rig(("MaxSessions 10",))


class TestFabricNoisyStart(CommandTests, FileTests):
    """Start-up files that print to both outputs, without a line end."""

    def open_rig(self) -> AbstractAsyncContextManager[TransportRig]:
        return fabric_sshd_rig(through("sh", NOISY))


@pytest.mark.slow
class TestFabricFish(CommandTests, FileTests):
    """Two escapes in single quotes, and exit status 0 after a syntax error."""

    def open_rig(self) -> AbstractAsyncContextManager[TransportRig]:
        return fabric_sshd_rig(through(need("fish")))


async def test_idle_connection_has_one_thread_and_a_closed_one_none() -> None:
    async with fabric_sshd_rig() as rig:
        await no_thread_is_left()
        transport = await rig.transport().connect()
        await soon(asyncio.gather(*(text_of(transport, "sleep 0.2") for _ in range(20))))
        stream = await transport.stream(["cat"], lambda _: None)
        stream.write(bytes(4_000_000))
        await soon(stream.close())

        async def is_idle() -> bool:
            return len(threads_of()) == 1  # paramiko's

        await eventually(is_idle, "one thread")
        await soon(transport.close())
        await no_thread_is_left()


async def test_threads_at_work_are_bounded() -> None:
    """Two for each of the eight sessions of a link at most, however much is asked at once."""
    async with fabric_sshd_rig() as rig:
        transport = await rig.transport().connect()
        go = f"{rig.scratch}/go"
        running = [
            asyncio.create_task(text_of(transport, 'until [ -e "$1" ]; do sleep 0.05; done', go))
            for _ in range(40)
        ]

        async def are_many() -> bool:
            return sum(name.endswith("-read") for name in threads_of()) == 8

        await eventually(are_many, "eight reading threads")
        assert len(threads_of()) <= 2 * 8 + 2
        (rig.folder / "scratch" / "go").touch()
        await soon(asyncio.gather(*running))
        await soon(transport.close())
        await no_thread_is_left()


async def test_frozen_peer_is_found_by_requests_that_stay_unanswered() -> None:
    """Its kernel still acknowledges: TCP alone would never notice."""
    async with fabric_sshd_rig() as rig:
        transport = await rig.transport().connect()
        ends: list[str] = []
        stream = await transport.stream(
            ["cat"], lambda _: None, on_lost=lambda: ends.append("end")
        )
        running = asyncio.create_task(transport.run(["sleep", "60"], timeout_s=60))
        await text_of(transport, "true")
        rig.server.signal_sessions(SIGSTOP)
        try:
            error = await demand_error(LinkLostError, running)
            assert "silent for 2 s" in error.seen
            await demand_error(LinkLostError, stream.wait(30))
            await demand_error(LinkLostError, transport.run(["true"], timeout_s=30))
            assert ends == ["end"]
            assert not transport.is_connected
            await no_thread_is_left()
        finally:
            rig.server.signal_sessions(SIGCONT)
        await transport.connect()
        assert await text_of(transport, "echo back") == "back\n"
        await transport.close()


async def test_frozen_peer_under_a_transfer() -> None:
    """The socket's buffers are full: also what waits to write ends."""
    async with fabric_sshd_rig() as rig:
        transport = await rig.transport().connect()
        stream = await transport.stream(["sleep", "60"], lambda _: None)
        rig.server.signal_sessions(SIGSTOP)
        try:
            stream.write(bytes(32 * 1024 * 1024))
            putting = transport.put({"a": bytes(32 * 1024 * 1024)}, rig.scratch, timeout_s=60)
            await demand_error(LinkLostError, putting)
            await demand_error(LinkLostError, stream.drain())
            await no_thread_is_left()
        finally:
            rig.server.signal_sessions(SIGCONT)
        await transport.close()


async def test_idle_connection_is_kept_by_its_answers() -> None:
    """Longer than the time after which a silent board counts as lost (3 s)."""
    async with fabric_sshd_rig() as rig:
        transport = await rig.transport().connect()
        await asyncio.sleep(5)
        assert await text_of(transport, "echo on") == "on\n"
        await transport.close()


async def test_board_that_only_has_ssh_rsa_is_told_to_use_asyncssh() -> None:
    async with fabric_sshd_rig(OLD_ALGORITHMS, algorithm="ssh-rsa", widen=("ssh-rsa",)) as rig:
        error = await demand_error(TransportError, rig.transport().connect())
        assert "transport: asyncssh" in error.remedy
        await no_thread_is_left()


@pytest.mark.parametrize("algorithm", ["ssh-rsa", "ecdsa-sha2-nistp256"])
async def test_other_host_key_types_are_verified(algorithm: str) -> None:
    """An RSA key is used with SHA-2."""
    async with fabric_sshd_rig(algorithm=algorithm) as rig:
        transport = await rig.transport().connect()
        assert await text_of(transport, "echo hi") == "hi\n"
        await transport.close()


@pytest.mark.parametrize("algorithm", ["ssh-ed25519", "ecdsa-sha2-nistp256"])
async def test_changed_host_key_is_refused_with_both_fingerprints(algorithm: str) -> None:
    """Also one of another type than the enrolled one."""
    async with fabric_sshd_rig() as rig:
        enrolled = make_key("another", algorithm)
        assert rig.board.known_hosts is not None
        write_known_hosts(rig.board.known_hosts, rig.board.port, enrolled)
        error = await demand_error(HostKeyError, rig.transport().connect())
        assert enrolled.get_fingerprint() in error.seen
        assert make_key("host").get_fingerprint() in error.seen
        assert "farm boards enroll" in error.remedy
        await no_thread_is_left()


async def test_account_without_a_shell_is_told_in_its_own_words() -> None:
    async with fabric_sshd_rig(
        ("ForceCommand echo This account is currently not available.; exit 1",)
    ) as rig:
        transport = await rig.transport().connect()
        error = await demand_error(TransportError, transport.run(["true"], timeout_s=30))
        assert "This account is currently not available." in error.seen
        assert not error.retryable
        assert transport.is_connected
        await transport.close()


async def test_board_with_few_sessions_says_what_to_change() -> None:
    async with fabric_sshd_rig(("MaxSessions 1",)) as rig:
        transport = await rig.transport().connect()
        stream = await transport.stream(["cat"], lambda _: None)
        error = await demand_error(TransportError, transport.run(["true"], timeout_s=30))
        assert "MaxSessions" in error.remedy
        assert transport.is_connected
        stream.end_input()
        assert await soon(stream.wait(30)) == 0
        assert await text_of(transport, "echo free") == "free\n"
        await transport.close()


async def test_long_transfer_survives_new_keys() -> None:
    """The server asks for new session keys after each megabyte."""
    async with fabric_sshd_rig(("RekeyLimit 1M",)) as rig:
        transport = await rig.transport().connect()
        data = bytes(range(256)) * 40_000
        result = await transport.run(["cat"], timeout_s=60, stdin=data)
        assert result.stdout == data
        await transport.close()


async def test_job_left_behind_does_not_hold_the_command() -> None:
    """Its shell ended, though the job keeps stdout open; what it prints later is dropped."""
    async with fabric_sshd_rig() as rig:
        transport = await rig.transport().connect()
        result = await transport.run(
            ["sh", "-c", "(sleep 5; echo late) & echo done"], timeout_s=4.9
        )
        assert (result.exit_status, result.text) == (0, "done\n")
        await transport.close()
        await no_thread_is_left()
