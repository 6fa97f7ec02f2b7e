"""A program of your own that prints watts: once for each reading, or line after line.

In the inventory::

    meters:
      bench-meter:
        kind: command
        options: {argv: [/usr/local/bin/read-watts, --port, /dev/ttyUSB0]}
      dmm:
        kind: command
        options:
          mode: stream
          argv: [sigrok-cli, --driver, "uni-t-ut61e-ser:conn=/dev/ttyUSB1", --continuous]
          pattern: 'P: (?P<power>-?[0-9.]+)'
        deadline_s: 3

No shell is between. A secret reaches the program as ``FARM_SECRET`` in its environment. Beyond
the deadline it is killed with all that it started.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable

from farm.drivers.command_options import CommandOptions
from farm.drivers.meter_dialogue import Measured, NoReading, PolledMeter
from farm.drivers.meter_mailbox import Mailbox
from farm.drivers.meter_process import ended, output, start, stop
from farm.interfaces.meter import MeterFacts
from farm.model.board import MeterSpec
from farm.model.trace import MissKind


class CommandMeter(PolledMeter):
    """One program."""

    Options = CommandOptions
    needs_host = False

    def __init__(
        self,
        spec: MeterSpec,
        options: CommandOptions,
        secret: str | None,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(spec, monotonic=monotonic)
        self._options, self._secret = options, secret
        self._mailbox = Mailbox(monotonic)
        self._follower: asyncio.Task[None] | None = None

    async def _identify(self) -> MeterFacts:
        return MeterFacts("command", " ".join(self._options.argv)[:200])

    async def _measure(self) -> Measured:
        if self._options.mode == "stream":
            if self._follower is None:
                process = await start(self._options.argv, self._secret)
                self._follower = asyncio.create_task(self._follow(process))
            return await self._mailbox.take()
        lines = (await output(self._options.argv, self._secret)).split("\n")
        filled = [line for line in lines if line.strip()]
        if not filled:
            raise NoReading(MissKind.NO_DATA, "it prints nothing")
        return self._options.measured(filled[-1])

    async def _follow(self, process: asyncio.subprocess.Process) -> None:
        try:
            assert process.stdout is not None  # noqa: S101 - PIPE was asked for
            while line := await process.stdout.readline():
                if line.endswith(b"\n") and line.strip():
                    self._take(line.decode("utf-8", "replace"))
            text = f"{self._options.argv[0]}: {ended(await process.wait())}"
            self._mailbox.put(NoReading(MissKind.REFUSED, text))
        except ValueError:  # readline's word for a line beyond its limit
            self._mailbox.put(NoReading(MissKind.PROTOCOL, "an endless line"))
        finally:
            await stop(process)

    def _take(self, line: str) -> None:
        try:
            self._mailbox.put(self._options.measured(line))
        except NoReading as miss:
            self._mailbox.put(miss)
        except (ValueError, RecursionError) as error:
            self._mailbox.put(error)

    async def _disconnect(self) -> None:
        follower, self._follower = self._follower, None
        if follower is not None:
            follower.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await follower
        self._mailbox.clear()
