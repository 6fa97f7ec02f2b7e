"""Who waits for which attempt's end on one agent channel, and what came with the end."""

import asyncio
from collections.abc import Mapping

from farm.drivers import agent_answers
from farm.drivers.agent_channel import AgentChannel
from farm.errors import AgentError, BoardError, LinkLostError
from farm.interfaces.agent import AttemptStatus


class AttemptWaits:
    """Ends of attempts: told by the board unasked once an attempt is watched."""

    def __init__(self, channel: AgentChannel) -> None:
        self._channel = channel
        self._watched: set[str] = set()
        self._ended: dict[str, AttemptStatus] = {}
        self._contents: dict[str, dict[str, bytes]] = {}
        self._waiters: dict[str, list[asyncio.Future[AttemptStatus]]] = {}

    def note(self, value: object, *, is_watched: bool = False) -> AttemptStatus:
        """A status of an answer; `is_watched`: the board will tell the end. Raises AgentError."""
        status, contents = agent_answers.status(value)
        if status.phase == "finished":
            self._contents[status.attempt_id] = contents
        elif status.phase == "running" and is_watched:
            self._watched.add(status.attempt_id)
        return status

    def take_exit(self, value: object) -> None:
        """The board's word that an attempt ended; one that makes no sense fails all waiters."""
        try:
            status = self.note(value)
        except AgentError as error:
            self.fail(error)
            return
        self._watched.discard(status.attempt_id)
        self._ended[status.attempt_id] = status
        for future in self._waiters.pop(status.attempt_id, []):
            if not future.done():
                future.set_result(status)

    async def wait(self, attempt_id: str) -> AttemptStatus:
        """Until it is not running. Raises LinkLostError."""
        if attempt_id not in self._watched and attempt_id not in self._ended:
            answer = await self._channel.request("watch", attempt=attempt_id)
            status = self.note(answer.fields.get("status"), is_watched=True)
            if status.phase != "running":
                return status
        if attempt_id in self._ended:
            return self._ended[attempt_id]
        if self._channel.lost is not None:
            raise LinkLostError("wait", self._channel.lost.seen)
        future: asyncio.Future[AttemptStatus] = asyncio.get_running_loop().create_future()
        self._waiters.setdefault(attempt_id, []).append(future)
        return await future

    def contents(self, attempt_id: str) -> Mapping[str, bytes]:
        """Small files that came with the attempt's end."""
        return self._contents.get(attempt_id, {})

    def forget(self, attempt_id: str) -> None:
        """It is to be removed."""
        self._ended.pop(attempt_id, None)
        self._contents.pop(attempt_id, None)

    def fail(self, error: BoardError) -> None:
        """Nothing more will be told."""
        waiters, self._waiters = self._waiters, {}
        for futures in waiters.values():
            for future in futures:
                if not future.done():
                    future.set_exception(type(error)("wait", error.seen))
