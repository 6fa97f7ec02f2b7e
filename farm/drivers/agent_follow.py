"""Logs that are followed over one agent channel, each from a byte offset."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from farm.drivers import agent_answers
from farm.drivers.agent_channel import AgentChannel
from farm.drivers.agent_refusals import refusal
from farm.errors import AgentError, BoardError, LinkLostError

_STEP = "follow"


@dataclass(slots=True)
class _Follower:
    on_data: Callable[[bytes], None]
    ended: "asyncio.Future[None]"


class Followers:
    """Delivers `data` events to who asked, and remembers how far each file was delivered."""

    def __init__(self, channel: AgentChannel) -> None:
        self._channel = channel
        self._active: dict[tuple[str, str], _Follower] = {}
        self._offsets: dict[tuple[str, str], int] = {}

    async def follow(
        self, attempt_id: str, file: str, on_data: Callable[[bytes], None], offset: int | None
    ) -> None:
        """Until the attempt ended and all was delivered. Raises LinkLostError, AgentError."""
        key = (attempt_id, file)
        if key in self._active:
            raise AgentError(_STEP, f"{file} of {attempt_id} is followed already")
        begin = self._offsets.get(key, 0) if offset is None else offset
        self._offsets[key] = begin
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._active[key] = _Follower(on_data, future)
        is_over = False
        try:
            await self._channel.request("follow", attempt=attempt_id, path=file, offset=begin)
            await future
            is_over = True
        finally:
            del self._active[key]
            if not is_over:
                self._stop(attempt_id, file)
                if future.done() and not future.cancelled():
                    future.exception()

    def take(self, event: Mapping[str, object]) -> None:
        """A `data` or `end` event."""
        key = (str(event.get("attempt")), str(event.get("path")))
        follower = self._active.get(key)
        if follower is None or follower.ended.done():
            return
        if event.get("event") == "end":
            self._end(follower, event.get("error"))
        elif event.get("event") == "data" and event.get("offset") == self._offsets[key]:
            try:
                data = agent_answers.unpacked(_STEP, event.get("data"))
            except AgentError as error:
                follower.ended.set_exception(error)
                return
            self._offsets[key] += len(data)
            follower.on_data(data)

    @staticmethod
    def _end(follower: _Follower, error: object) -> None:
        if error is None:
            follower.ended.set_result(None)
        else:
            follower.ended.set_exception(refusal(_STEP, error))

    def forget(self, attempt_id: str) -> None:
        """It is to be removed."""
        for key in [key for key in self._offsets if key[0] == attempt_id]:
            if key not in self._active:
                del self._offsets[key]

    def fail(self, error: BoardError) -> None:
        """Nothing more will come."""
        for follower in self._active.values():
            if not follower.ended.done():
                follower.ended.set_exception(LinkLostError(_STEP, error.seen))

    def _stop(self, attempt_id: str, file: str) -> None:
        if self._channel.lost is not None:
            return
        try:
            future = self._channel.post("follow", attempt=attempt_id, path=file, stop=True)[1]
        except BoardError:  # the link died: nothing to stop
            return
        future.add_done_callback(lambda done: done.cancelled() or done.exception())
