"""One running agent: requests out, answers and events in, over one stream of a transport.

Requests are pipelined: many may wait at once, each with its own time limit. When the stream
is lost, all who wait get LinkLostError at once. Lines that are not the agent's are noise.
"""

import asyncio
import json
import time
from collections.abc import Callable, Mapping, Sequence

from farm.drivers.agent_answers import Answer
from farm.drivers.agent_refusals import refusal
from farm.errors import AgentError, BoardError, CommandTimeoutError, LinkLostError
from farm.interfaces.transport import Stream, Transport

LONGEST_LINE = 16 * 1024 * 1024
_LAST_WORDS = 4000
_CLOSE_S = 5.0
_MANY_WAITS = 64
_NEVER = float("inf")
_encode = json.JSONEncoder(separators=(",", ":"), ensure_ascii=True).encode


class Patience:
    """Time limits of many short waits, by one timer.

    Nearly all answers come within milliseconds: a timer each would be set and cancelled in vain.
    """

    def __init__(self) -> None:
        self._waits: list[tuple[float, asyncio.Future[Answer], str, float]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._due_s = _NEVER

    def watch(self, future: asyncio.Future[Answer], op: str, within_s: float) -> None:
        """Fail the future with CommandTimeoutError unless it is done in `within_s` seconds."""
        deadline_s = asyncio.get_running_loop().time() + within_s
        self._waits.append((deadline_s, future, op, within_s))
        if len(self._waits) > _MANY_WAITS:
            self._waits = [wait for wait in self._waits if not wait[1].done()]
        if deadline_s < self._due_s:
            self._arm(deadline_s)

    def end(self) -> None:
        """Nobody waits any more."""
        if self._timer is not None:
            self._timer.cancel()
        self._waits, self._due_s = [], _NEVER

    def _arm(self, deadline_s: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._due_s = deadline_s
        self._timer = asyncio.get_running_loop().call_at(deadline_s, self._look)

    def _look(self) -> None:
        now_s = asyncio.get_running_loop().time()
        self._waits = [wait for wait in self._waits if not wait[1].done()]
        for deadline_s, future, op, within_s in self._waits:
            if deadline_s <= now_s:
                future.set_exception(CommandTimeoutError(op, f"no answer within {within_s:g} s"))
        left = [wait[0] for wait in self._waits if wait[0] > now_s]
        self._timer, self._due_s = None, _NEVER
        if left:
            self._arm(min(left))


class AgentChannel:
    """Give it to `open_on`; ask with `request`; `on_event` gets what comes unasked."""

    def __init__(
        self,
        on_event: Callable[[Mapping[str, object]], None],
        on_lost: Callable[[BoardError], None],
    ) -> None:
        self._on_event, self._on_lost = on_event, on_lost
        self._stream: Stream | None = None
        self._waiting: dict[int, tuple[str, asyncio.Future[Answer]]] = {}
        self._patience = Patience()
        self._greetings: asyncio.Queue[Mapping[str, object] | None] = asyncio.Queue()
        self._pieces: list[bytes] = []
        self._size = 0
        self._last_id = 0
        self._lost: BoardError | None = None
        self._said = b""

    @property
    def said(self) -> str:
        """The last that came on stderr, for error messages."""
        return self._said.decode("utf-8", "replace").strip()

    @property
    def lost(self) -> BoardError | None:
        """Why nothing more can be asked, or None."""
        return self._lost

    async def open_on(self, transport: Transport, argv: Sequence[str]) -> None:
        """Start the agent's command."""
        self._stream = await transport.stream(
            argv, self._take, self._take_stderr, lambda: self._fail("the stream ended")
        )
        if self._lost is not None:  # it ended while we waited for it
            await self._stream.close()

    async def greeting(self, timeout_s: float) -> Mapping[str, object] | None:
        """The next of the first lines; None when the command ended instead."""
        if self._lost is not None and self._greetings.empty():
            return None
        try:
            async with asyncio.timeout(timeout_s):
                return await self._greetings.get()
        except TimeoutError as error:
            seen = f"no answer within {timeout_s:g} s"
            raise CommandTimeoutError("start the agent", seen) from error

    async def send(self, data: bytes, timeout_s: float) -> None:
        """Send raw bytes (the bundle)."""
        stream = self._opened()
        stream.write(data)
        try:
            async with asyncio.timeout(timeout_s):
                await stream.drain()
        except TimeoutError as error:
            raise CommandTimeoutError("send the agent", f"stuck for {timeout_s:g} s") from error

    async def exit_status(self) -> int:
        """How the command ended. Raises LinkLostError when the link did."""
        return await self._opened().wait(_CLOSE_S)

    def post(self, op: str, **fields: object) -> tuple[int, "asyncio.Future[Answer]"]:
        """Send a request without waiting. Raises LinkLostError."""
        if self._lost is not None:
            raise LinkLostError(op, str(self._lost.seen))
        self._last_id += 1
        request = {"id": self._last_id, "op": op, **fields}
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting[self._last_id] = (op, future)
        try:
            self._opened().write(_encode(request).encode("ascii") + b"\n")
        except BoardError:
            del self._waiting[self._last_id]
            raise
        return self._last_id, future

    async def request(self, op: str, *, within_s: float = 30.0, **fields: object) -> Answer:
        """Ask and wait. Raises LinkLostError, CommandTimeoutError and what `refusal` makes."""
        request_id, future = self.post(op, **fields)
        self._patience.watch(future, op, within_s)
        try:
            return await future
        finally:
            self._waiting.pop(request_id, None)

    async def close(self) -> None:
        """End the agent: its stdin ends, attempts go on. Never raises."""
        if self._stream is not None:
            await self._stream.close()
        self._fail("closed")
        self._patience.end()

    def _opened(self) -> Stream:
        if self._stream is None:
            raise LinkLostError("ask the agent", "the agent is not started")
        return self._stream

    def _take_stderr(self, data: bytes) -> None:
        self._said = (self._said + data)[-_LAST_WORDS:]

    def _take(self, data: bytes) -> None:
        received_s = time.monotonic()
        *complete, rest = data.split(b"\n")
        for piece in complete:
            self._pieces.append(piece)
            line, self._pieces, self._size = b"".join(self._pieces), [], 0
            if line.startswith(b"{"):
                self._take_line(line, received_s)
        if rest:
            self._pieces.append(rest)
            self._size += len(rest)
            if self._size > LONGEST_LINE:
                self._pieces, self._size = [], 0
                self._fail(f"a line of more than {LONGEST_LINE} bytes", kind=AgentError)

    def _take_line(self, line: bytes, received_s: float) -> None:
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            return
        if not isinstance(message, dict):
            return
        if "farm" in message:
            self._greetings.put_nowait(message)
        elif "event" in message:
            self._on_event(message)
        elif isinstance(message.get("id"), int):
            self._answer(message["id"], message, received_s)

    def _answer(self, request_id: int, message: dict[str, object], received_s: float) -> None:
        op, future = self._waiting.pop(request_id, ("", None))
        if future is None or future.done():  # given up meanwhile
            return
        if message.get("ok") is True:
            future.set_result(Answer(op, message, received_s))
        else:
            future.set_exception(refusal(op, message.get("error")))

    def _fail(self, seen: str, kind: type[BoardError] = LinkLostError) -> None:
        if self._lost is not None:
            return
        self._lost = kind("agent", seen)
        waiting, self._waiting = self._waiting, {}
        for op, future in waiting.values():
            if not future.done():
                future.set_exception(kind(op, seen))
                future.exception()  # whoever still waits gets it; nobody is warned of it
        self._greetings.put_nowait(None)
        self._on_lost(self._lost)
