"""One kept connection to an MQTT broker, whose messages are handed on as they come.

A retained message tells what was once, so it is handed on as such. aiomqtt does not reconnect;
whoever uses this opens a new session after a fault.
"""

import asyncio
import contextlib
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import aiomqtt
from aiomqtt.exceptions import MqttConnectError

from farm.drivers.meter_dialogue import NoReading, brief
from farm.model.board import MeterSpec
from farm.model.trace import MissKind

MAX_PAYLOAD = 65536
_REFUSALS = (4, 5, 134, 135)
"""Bad user name or password, not authorized: MQTT 3.1.1 3.2.2.3 and MQTT 5 3.2.2.2."""


@dataclass(frozen=True, slots=True)
class Message:
    """What was published; `is_retained` when the broker had kept it from before."""

    topic: str
    text: str
    is_retained: bool


class MqttSession:
    """A connection with its reader. `tell` gets messages, and the error that ends them."""

    def __init__(
        self,
        spec: MeterSpec,
        *,
        user: str | None,
        secret: str | None,
        is_tls: bool,
        tell: Callable[[Message | NoReading], None],
    ) -> None:
        self._tell = tell
        self._client = aiomqtt.Client(
            spec.host or "",
            spec.port or (8883 if is_tls else 1883),
            username=user,
            password=secret,
            timeout=max(2 * spec.deadline_s, 1.0),  # the deadline is the caller's
            tls_context=ssl.create_default_context() if is_tls else None,
            max_queued_incoming_messages=1000,
        )
        self._reader: asyncio.Task[None] | None = None
        self._is_begun = False

    async def open(self, topics: Sequence[str]) -> None:
        """Connect and subscribe. Raises NoReading."""
        self._is_begun = True
        try:
            await self._client.__aenter__()
        except aiomqtt.MqttError as error:
            raise _miss(error) from error
        except asyncio.CancelledError:
            # As aiomqtt does when its own time is over; a cancelled one stops its disconnecting.
            self._client._connected = asyncio.Future()  # noqa: SLF001
            raise
        self._reader = asyncio.create_task(self._read())
        try:
            await self._client.subscribe([(topic, 0) for topic in topics if topic])
        except aiomqtt.MqttError as error:
            raise _miss(error) from error

    async def publish(self, topic: str, text: str) -> None:
        """Publish. Raises NoReading."""
        try:
            await self._client.publish(topic, text)
        except aiomqtt.MqttError as error:
            raise _miss(error) from error

    async def close(self) -> None:
        """Disconnect; never raises."""
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await reader
        if self._is_begun:  # also a connection whose login was cut short has a socket
            self._is_begun = False
            with contextlib.suppress(aiomqtt.MqttError):
                await self._client.__aexit__(None, None, None)

    async def _read(self) -> None:
        try:
            async for message in self._client.messages:
                body = bytes(message.payload)
                if len(body) > MAX_PAYLOAD:
                    self._tell(NoReading(MissKind.PROTOCOL, f"over {MAX_PAYLOAD} bytes"))
                    continue
                text = body.decode("utf-8", "replace")
                self._tell(Message(str(message.topic), text, bool(message.retain)))
        except aiomqtt.MqttError as error:
            self._tell(_miss(error))


def _miss(error: aiomqtt.MqttError) -> NoReading:
    code = error.rc if isinstance(error, MqttConnectError) else None
    if getattr(code, "value", code) in _REFUSALS:
        return NoReading(MissKind.AUTH, "the broker refuses the user or the password")
    return NoReading(MissKind.REFUSED, brief(error))
