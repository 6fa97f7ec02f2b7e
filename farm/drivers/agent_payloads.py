"""Payloads to the board: what it lacks goes as one tar stream, the rest is by hard link there."""

import asyncio
import json
from collections.abc import Mapping, Sequence

from farm.drivers.agent_channel import AgentChannel
from farm.drivers.agent_refusals import refusal
from farm.drivers.agent_tar import TarFeed, tar_of
from farm.errors import LinkLostError, TransferError
from farm.interfaces.transport import Stream, Transport
from farm.model.payload import Payload, PayloadFile

SLOWEST_BYTES_S = 500_000.0
"""Time limits grow with the size: a board on bad Wi-Fi, or one hashing onto an SD card."""
PATIENCE_S = 60.0
_STEP = "push the payload"


class PayloadPusher:
    """Pushes payloads over one connection and remembers what the board has."""

    def __init__(
        self, transport: Transport, channel: AgentChannel, receive_argv: Sequence[str]
    ) -> None:
        self._transport, self._channel = transport, channel
        self._receive_argv = receive_argv
        self._known: set[str] = set()
        self._turn = asyncio.Lock()

    async def ensure(self, payload: Payload) -> bool:
        """Make sure the board has it; True if something was sent. Raises TransferError."""
        if payload.digest in self._known:
            return False
        async with self._turn:
            if payload.digest in self._known:
                return False
            return await self._push(payload)

    def forget(self, digest: str) -> None:
        """The board says that it has it no more."""
        self._known.discard(digest)

    def forget_all(self) -> None:
        """The board was cleaned."""
        self._known.clear()

    async def _push(self, payload: Payload) -> bool:
        size = sum(file.size for file in payload.files)
        patience_s = PATIENCE_S + size / SLOWEST_BYTES_S
        by_hash = {file.sha256: file for file in payload.files}
        answer = await self._channel.request(
            "has", within_s=patience_s, payloads=[payload.digest], files=list(by_hash)
        )
        if not answer.texts("missing_payloads"):
            self._known.add(payload.digest)
            return False
        missing = [by_hash[sha] for sha in answer.texts("missing_files") if sha in by_hash]
        if missing:
            await self._send(payload, missing, patience_s)
        files = [
            {"path": file.path, "sha256": file.sha256, "is_executable": file.is_executable}
            for file in payload.files
        ]
        await self._channel.request(
            "build", within_s=patience_s, digest=payload.digest, files=files
        )
        self._known.add(payload.digest)
        return bool(missing)

    async def _send(
        self, payload: Payload, missing: Sequence[PayloadFile], patience_s: float
    ) -> None:
        reply = _Reply()
        stream = await self._transport.stream(
            self._receive_argv, reply.take, reply.take_stderr, reply.end
        )
        try:
            async with asyncio.timeout(patience_s):
                async with tar_of(payload, missing) as feed:
                    await _write(stream, feed, reply)
                await reply.ended.wait()
        except TimeoutError as error:
            raise TransferError(_STEP, f"not done within {patience_s:.0f} s") from error
        finally:
            await stream.close()
        reply.check()


class _Reply:
    """What the receiving side says: one JSON line."""

    def __init__(self) -> None:
        self.ended = asyncio.Event()
        self._said = b""
        self._complained = b""

    def take(self, data: bytes) -> None:
        self._said += data[: 1024 * 1024 - len(self._said)]

    def take_stderr(self, data: bytes) -> None:
        self._complained = (self._complained + data)[-2000:]

    def end(self) -> None:
        self.ended.set()

    def check(self) -> None:
        """Raise what it says. Raises LinkLostError when it said nothing."""
        for line in self._said.split(b"\n"):
            message = _object(line)
            if message.get("farm") == "received":
                if message.get("ok") is not True:
                    raise refusal(_STEP, message.get("error"))
                return
        why = self._complained.decode("utf-8", "replace").strip()
        raise LinkLostError(_STEP, f"the board did not confirm it. {why}".rstrip())


def _object(line: bytes) -> Mapping[str, object]:
    try:
        message = json.loads(line)
    except ValueError:
        return {}
    return message if isinstance(message, dict) else {}


async def _write(stream: Stream, feed: TarFeed, reply: _Reply) -> None:
    """Write until done, or until the board has said that it wants no more."""
    try:
        async for piece in feed.follow():
            if reply.ended.is_set():
                return
            stream.write(piece)
            await stream.drain()
        stream.end_input()
    except LinkLostError:
        if not reply.ended.is_set():
            raise
