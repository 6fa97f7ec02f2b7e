"""Asks whether an SSH server answers, before a login is worth its cost.

A dead board would hold one of the places for connecting for 15 s, a hung one for the whole login
timeout; a probe is over in 3 s and holds none. OpenSSH 9.8 and later notes addresses that leave
without a login (PerSourcePenalties: 1 s each, 15 s before it acts), so only boards that were
lost are probed, and the first banner ends it: a login follows.
"""

import asyncio

from farm.drivers.transports.ssh_errors import Stage, address_of, explain_login
from farm.errors import ConnectError
from farm.model.board import Board

PROBE_S = 3.0
"""For connection and banner together: a banner over a LAN takes milliseconds (assumed)."""
MOST_LINES = 20
"""RFC 4253 lets other lines come before the banner (assumed: not more than these)."""


async def probe_ssh(board: Board, limit_s: float = PROBE_S) -> None:
    """Return when the board sends an SSH banner. Raises ConnectError within `limit_s`."""
    is_connected, seen = False, f"sends no SSH banner within {limit_s:g} s"
    try:
        async with asyncio.timeout(limit_s):
            reader, writer = await asyncio.open_connection(board.host, board.port, limit=4096)
            is_connected = True
            try:
                if await _sends_banner(reader):
                    return
                seen = "ends them without an SSH banner"
            finally:
                writer.close()
    except TimeoutError as error:
        if not is_connected:
            raise explain_login(error, board, Stage.NOTHING) from error
    except OSError as error:
        if not is_connected:
            raise explain_login(error, board, Stage.NOTHING) from error
        seen = f"ends them before its SSH banner ({error.strerror or error})"
    except ValueError:
        seen = "sends a line without an end, as no SSH server does"
    raise ConnectError(
        "connect",
        f"{address_of(board)} accepts connections, but {seen}",
        board=board.name,
        remedy="The board boots or hangs, or another service listens there",
    )


async def _sends_banner(reader: asyncio.StreamReader) -> bool:
    for _ in range(MOST_LINES):
        line = await reader.readline()
        if line.startswith(b"SSH-"):
            return True
        if not line:
            return False
    return False
