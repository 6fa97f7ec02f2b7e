"""Line protocols over TCP: one question, one answer, and never the answer before."""

import asyncio

from farm.drivers.meter_dialogue import NoReading
from farm.model.board import MeterSpec
from farm.model.trace import MissKind

MAX_LINE = 65536


class LineConnection:
    """One connection. The deadline is the `Dialogue`'s that calls; it disconnects after faults."""

    def __init__(self, spec: MeterSpec, *, port: int, end: str = "\n") -> None:
        self._host, self._port, self._end = spec.host or "", spec.port or port, end
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection, as far as is known here."""
        return self._streams is not None

    async def connect(self) -> None:
        """Connect. Raises OSError."""
        if self._streams is None:
            self._streams = await asyncio.open_connection(self._host, self._port, limit=MAX_LINE)

    async def send(self, words: str) -> None:
        """Send one line that has no answer. Raises OSError."""
        _, writer = self._connected()
        writer.write(f"{words}{self._end}".encode())
        await writer.drain()

    async def ask(self, words: str) -> str:
        """One line for one line. Raises OSError, EOFError, NoReading."""
        await self.send(words)
        return await self.line()

    async def line(self) -> str:
        """The next line."""
        reader, _ = self._connected()
        try:
            line = await reader.readuntil(b"\n")
        except asyncio.LimitOverrunError as error:
            text = f"a line of over {MAX_LINE} bytes"
            raise NoReading(MissKind.PROTOCOL, text) from error
        return line.decode("utf-8", "replace").strip()

    async def close(self) -> None:
        """Cut it: what is still on its way is nobody's answer any more."""
        streams, self._streams = self._streams, None
        if streams is not None:
            streams[1].transport.abort()
            await asyncio.sleep(0)  # lets the transport close its socket

    def _connected(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._streams is None:
            raise ConnectionError("not connected")
        return self._streams
