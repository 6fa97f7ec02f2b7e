"""Programs of the user's own that measure or switch: without a shell, and never left behind."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping, Sequence

from farm.drivers.meter_dialogue import NoReading, brief
from farm.model.trace import MissKind

MAX_OUTPUT = 65536
REAP_LIMIT_S = 2.0


async def start(argv: Sequence[str], secret: str | None) -> asyncio.subprocess.Process:
    """Start it with a group of its own; the secret is its ``FARM_SECRET``. Raises OSError."""
    environment: Mapping[str, str] = os.environ
    if secret is not None:
        environment = {**os.environ, "FARM_SECRET": secret}
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=environment,
            start_new_session=True,
            limit=MAX_OUTPUT,
        )
    )
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:  # asyncio would end the program, but not its children
        with contextlib.suppress(OSError):
            await stop(await starting)
        raise


async def stop(process: asyncio.subprocess.Process) -> None:
    """End it and all that it started; never raises."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(process.wait(), REAP_LIMIT_S)
    # A child in a session of its own may hold the pipe open; it is not waited for.
    transport = getattr(process, "_transport", None)
    if transport is not None:
        transport.close()


async def output(argv: Sequence[str], secret: str | None) -> str:
    """What it prints, when it ends well. Killed when cancelled. Raises NoReading, OSError."""
    process = await start(argv, secret)
    try:
        assert process.stdout is not None  # noqa: S101 - PIPE was asked for
        printed = b""
        while chunk := await process.stdout.read(MAX_OUTPUT):
            printed += chunk
            if len(printed) > MAX_OUTPUT:
                raise NoReading(MissKind.PROTOCOL, f"it prints over {MAX_OUTPUT} bytes")
        status = await process.wait()
    finally:
        await stop(process)
    if status != 0:
        text = f"{argv[0]}: {ended(status)}: {brief(printed.decode('utf-8', 'replace'))}"
        raise NoReading(MissKind.REFUSED, text.rstrip(": "))
    return printed.decode("utf-8", "replace")


def ended(status: int) -> str:
    """An exit status in words."""
    return f"signal {-status}" if status < 0 else f"exit status {status}"
