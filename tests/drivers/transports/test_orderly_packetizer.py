"""A message that comes too late for its channel: against a real sshd, which is strict about it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import paramiko
import pytest
from paramiko.common import cMSG_CHANNEL_DATA, cMSG_CHANNEL_EOF, cMSG_CHANNEL_WINDOW_ADJUST

from farm.drivers.transports.fabric_connection import FabricConnection
from farm.drivers.transports.fabric_dial import dial
from farm.drivers.transports.orderly_packetizer import speak_for
from farm.drivers.transports.ssh_context import SshContext
from farm.testing.transport_rig import eventually, soon
from tests.drivers.transports.fabric_rigs import fabric_sshd_rig
from tests.drivers.transports.rigs import QUICK

pytestmark = pytest.mark.sshd


def message(kind: bytes, channel: int) -> paramiko.Message:
    made = paramiko.Message()
    made.add_byte(kind)
    made.add_int(channel)
    if kind == cMSG_CHANNEL_DATA:
        made.add_string(b"late")
    elif kind == cMSG_CHANNEL_WINDOW_ADJUST:
        made.add_int(1)
    return made


@asynccontextmanager
async def connection() -> AsyncIterator[FabricConnection]:
    async with fabric_sshd_rig() as rig:
        made = await soon(dial(rig.board, SshContext(QUICK), None))
        yield made
        made.close()
        await soon(made.wait_closed())


def run_to_its_end(to: FabricConnection) -> paramiko.Channel:
    channel = to.open_channel()
    channel.exec_command("true")
    channel.recv_exit_status()
    return channel


async def closed_channel(to: FabricConnection) -> paramiko.Channel:
    channel = await soon(asyncio.to_thread(run_to_its_end, to))

    async def is_closed() -> bool:
        return channel.closed

    await eventually(is_closed, "the channel is closed")
    await soon(asyncio.to_thread(run_to_its_end, to))  # sshd has forgotten the first by now
    return channel


async def test_without_care_a_late_message_ends_the_connection() -> None:
    """What this is for; if it fails, the care is needed no more."""
    async with connection() as to:
        channel = await closed_channel(to)
        late = message(cMSG_CHANNEL_EOF, 7)  # a channel that sshd does not know
        await soon(asyncio.to_thread(to.transport.packetizer.send_message, late))

        async def is_lost() -> bool:
            return to.is_lost

        await eventually(is_lost, "the connection is lost")
        assert channel.closed


@pytest.mark.parametrize("kind", [cMSG_CHANNEL_DATA, cMSG_CHANNEL_EOF, cMSG_CHANNEL_WINDOW_ADJUST])
async def test_late_message_is_dropped(kind: bytes) -> None:
    async with connection() as to:
        channel = await closed_channel(to)

        def send_late() -> None:
            speak_for(channel)
            to.transport.packetizer.send_message(message(kind, 7))

        await soon(asyncio.to_thread(send_late))
        assert (await soon(asyncio.to_thread(run_to_its_end, to))).exit_status == 0
        assert not to.is_lost
