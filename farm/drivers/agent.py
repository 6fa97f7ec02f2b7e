"""The host's end of the board-side agent: `open_agent` gives a BoardAgent over a transport.

The agent is put on the board once per version and then speaks JSON lines over one stream
(docs/agent-protocol.md). A request costs one line each way; a short trial costs one request:
`start` carries the removals that were asked for before, the end of the attempt is told by
the board unasked, and small files come with it.
"""

import asyncio
import contextlib
import time
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from farm.drivers import agent_answers
from farm.drivers.agent_bundle import build, receive_argv, serve_argv
from farm.drivers.agent_channel import AgentChannel
from farm.drivers.agent_collect import collect
from farm.drivers.agent_follow import Followers
from farm.drivers.agent_lease import LeaseRequests
from farm.drivers.agent_payloads import PayloadPusher
from farm.drivers.agent_refusals import STEP, check_sudo, no_python, refused_start
from farm.drivers.agent_telemetry import AgentTelemetry, OnBatch
from farm.drivers.agent_waits import AttemptWaits
from farm.errors import AgentError, BoardError, TransferError
from farm.interfaces.agent import AttemptExit, AttemptStatus, BoardAgent, Job
from farm.interfaces.transport import CommandResult, Transport
from farm.model.attempt import BoardFingerprint, FileRecord
from farm.model.board import Board
from farm.model.measurement import ClockExchange
from farm.model.payload import Payload

REMOVE_AFTER_S = 1.0
REPLY_S = 10.0  # how much longer than the board we wait: its own time limit should speak first
REQUEST_S = 30.0
NOT_FOUND = (126, 127)  # POSIX shells: found but not executable, not found


class SshBoardAgent(LeaseRequests, BoardAgent):
    """A BoardAgent over one stream. Made by `open_agent`."""

    def __init__(self, transport: Transport, board: Board) -> None:
        self._transport, self._board = transport, board
        self._channel = AgentChannel(self._take_event, self._take_loss)
        self._hello: agent_answers.Hello | None = None
        self._pusher: PayloadPusher | None = None
        self._waits = AttemptWaits(self._channel)
        self._followers = Followers(self._channel)
        self._telemetry = AgentTelemetry(self._channel)
        self._removals: list[str] = []
        self._removal_timer: asyncio.TimerHandle | None = None

    async def open(self, timeout_s: float) -> None:
        """Start the agent, putting it on the board if it is not there. See `open_agent`."""
        await self._channel.open_on(self._transport, serve_argv(self._board))
        try:
            greeting = await self._greeting(timeout_s)
            if greeting.get("farm") == "need":
                await self._channel.send(build()[0], timeout_s)
                greeting = await self._greeting(timeout_s)
            if greeting.get("farm") != "hello":
                raise refused_start(greeting, self._board)
            self._hello = agent_answers.hello(greeting)
        except BaseException:
            await self._channel.close()
            raise
        argv = receive_argv(self._board, self._hello.path, self._hello.work_dir)
        self._pusher = PayloadPusher(self._transport, self._channel, argv)

    async def _greeting(self, timeout_s: float) -> Mapping[str, object]:
        greeting = await self._channel.greeting(timeout_s)
        if greeting is not None:
            return greeting
        status, said = await self._channel.exit_status(), self._channel.said
        if status in NOT_FOUND:
            raise no_python(said or self._board.python)
        raise AgentError(STEP, f"it ended with status {status}: {said or 'no message'}")

    @property
    def fingerprint(self) -> BoardFingerprint:
        """Facts told by the agent's hello."""
        return self._opened.fingerprint

    @property
    def free_mb(self) -> int:
        """Free space in the work folder's file system at hello, in MB."""
        return self._opened.free_mb

    @property
    def work_dir(self) -> str:
        """The work folder on the board, absolute."""
        return self._opened.work_dir

    @property
    def is_root(self) -> bool:
        """Whether the agent runs as root."""
        return self._opened.uid == 0

    @property
    def _opened(self) -> agent_answers.Hello:
        if self._hello is None:
            raise AgentError(STEP, "it is not open")
        return self._hello

    async def run(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float = 30.0,
        needs_root: bool = False,
        needs_tty: bool = False,
        stdin: bytes = b"",
    ) -> CommandResult:
        """Run argv. Raises AgentError when sudo would ask for a password."""
        answer = await self._channel.request(
            "run",
            within_s=timeout_s + REPLY_S,
            argv=list(argv),
            timeout_s=timeout_s,
            needs_root=needs_root,
            needs_tty=needs_tty,
            stdin=b64encode(stdin).decode(),
        )
        result = CommandResult(
            tuple(argv),
            int(answer.number("exit_status")),
            answer.data("stdout"),
            answer.data("stderr"),
            answer.number("duration_s"),
        )
        if needs_root and not self.is_root:
            check_sudo(result, self._board)
        return result

    async def read_text(self, path: str) -> str | None:
        """A file's text (at most 1 MB), or None when it is not there or not readable."""
        answer = await self._channel.request("read", within_s=REQUEST_S, path=path)
        if answer.fields.get("data") is None:
            return None
        return answer.data("data").decode("utf-8", "replace")

    async def exchange_clock(self) -> ClockExchange:
        """One exchange of clocks; the host's times are taken as near to the wire as we are."""
        sent_s = time.monotonic()
        answer = await self._channel.request("clock", within_s=REPLY_S)
        return ClockExchange(
            host_sent_s=sent_s, board_s=answer.number("t"), host_received_s=answer.received_s
        )

    async def temperature_c(self) -> float | None:
        """The hottest thermal zone now, degrees Celsius; None if there is none."""
        answer = await self._channel.request("temperature", within_s=REQUEST_S)
        return None if answer.fields.get("celsius") is None else answer.number("celsius")

    async def ensure_payload(self, payload: Payload) -> bool:
        """Push the payload unless the board has it. True if something was sent."""
        if self._pusher is None:
            raise AgentError(STEP, "it is not open")
        return await self._pusher.ensure(payload)

    async def start(self, job: Job) -> AttemptStatus:
        """Start, or tell the status of what was started under that id before."""
        removals, self._removals = self._removals, []
        try:
            answer = await self._channel.request(
                "start", within_s=REQUEST_S, job=_job_fields(job), remove=removals
            )
        except BoardError as error:
            self._removals += removals  # again with the next: removing twice is no error
            if isinstance(error, TransferError) and self._pusher is not None:
                self._pusher.forget(job.payload_digest)
            raise
        return self._waits.note(answer.fields.get("status"), is_watched=True)

    async def status(self, attempt_id: str) -> AttemptStatus:
        """What the board knows of it."""
        answer = await self._channel.request("status", attempt=attempt_id)
        return self._waits.note(answer.fields.get("status"))

    async def wait(self, attempt_id: str) -> AttemptStatus:
        """Wait until it is finished or lost; told by the board, not asked for."""
        return await self._waits.wait(attempt_id)

    async def stop(self, attempt_id: str) -> None:
        """End the payload and all it started; it becomes finished with ended_by "stop"."""
        await self._channel.request("stop", attempt=attempt_id)

    async def collect(self, exited: AttemptExit, folder: Path) -> tuple[FileRecord, ...]:
        """Bring all its files into `folder`, hashes checked. Raises TransferError, StoreError."""
        inline = self._waits.contents(exited.attempt_id)
        return await collect(self._channel, exited, inline, folder)

    async def remove(self, attempt_ids: Sequence[str]) -> None:
        """Remove finished attempts: with the next start, or in a second if none comes."""
        for attempt_id in attempt_ids:
            self._waits.forget(attempt_id)
            self._followers.forget(attempt_id)
        self._removals += attempt_ids
        if self._removal_timer is None:
            loop = asyncio.get_running_loop()
            self._removal_timer = loop.call_later(REMOVE_AFTER_S, self._remove_now)

    def _remove_now(self) -> None:
        self._removal_timer = None
        removals, self._removals = self._removals, []
        if removals and self._channel.lost is None:
            with contextlib.suppress(BoardError):  # a dead link: the next one lists what is left
                self._channel.post("remove", attempts=removals)[1].add_done_callback(_swallow)

    async def follow(
        self,
        attempt_id: str,
        file: str,
        on_data: Callable[[bytes], None],
        *,
        offset: int | None = None,
    ) -> None:
        """Deliver a log file until the attempt ends; from `offset`, else from where we were."""
        await self._followers.follow(attempt_id, file, on_data, offset)

    def start_telemetry(self, argv: Sequence[str], rate_hz: float, on_batch: OnBatch) -> None:
        """Begin the stream, or begin it anew; returns at once. Raises LinkLostError."""
        self._telemetry.start(argv, rate_hz, on_batch)

    def stop_telemetry(self) -> None:
        """End the stream. Never raises."""
        self._telemetry.stop()

    async def list_attempts(self) -> tuple[AttemptStatus, ...]:
        """All attempts that lie on the board."""
        answer = await self._channel.request("list", within_s=REQUEST_S)
        listed = answer.fields.get("attempts")
        if not isinstance(listed, list):
            raise agent_answers.not_understood("list", "attempts is no list")
        return tuple(agent_answers.status(each)[0] for each in listed)

    async def clean(self) -> int:
        """Remove cached payloads that no running attempt uses; bytes freed."""
        answer = await self._channel.request("clean", within_s=300.0)
        if self._pusher is not None:
            self._pusher.forget_all()
        return int(answer.number("freed"))

    async def close(self) -> None:
        """End the agent's channel; running attempts go on. What is to be removed is removed."""
        if self._removal_timer is not None:
            self._removal_timer.cancel()
        removals, self._removals = self._removals, []
        if removals and self._channel.lost is None:
            with contextlib.suppress(BoardError):  # they stay; the next run removes them
                await self._channel.request("remove", within_s=REPLY_S, attempts=removals)
        await self._channel.close()

    def _take_event(self, event: Mapping[str, object]) -> None:
        if event.get("event") == "exit":
            self._waits.take_exit(event.get("attempt"))
        elif event.get("event") == "telemetry":
            self._telemetry.take(event)
        else:
            self._followers.take(event)

    def _take_loss(self, error: BoardError) -> None:
        self._waits.fail(error)
        self._followers.fail(error)


async def open_agent(
    transport: Transport, board: Board, *, timeout_s: float = 60.0
) -> SshBoardAgent:
    """Start the agent on a connected transport.

    Raises AgentError (no Python, too old, work folder not writable), TransferError (disk
    full), LinkLostError, CommandTimeoutError. `timeout_s` bounds each of its first answers.
    """
    agent = SshBoardAgent(transport, board)
    try:
        await agent.open(timeout_s)
    except BoardError as error:
        raise error.named(board.name) from error.__cause__
    return agent


def _job_fields(job: Job) -> dict[str, object]:
    return {
        "attempt_id": job.attempt_id,
        "payload_digest": job.payload_digest,
        "argv": list(job.argv),
        "params": dict(job.params),
        "environment": dict(job.environment),
        "time_limit_s": job.time_limit_s,
        "memory_limit_mb": job.memory_limit_mb,
        "output_limit": job.output_limit,
        "artifacts": list(job.artifacts),
    }


def _swallow(future: "asyncio.Future[agent_answers.Answer]") -> None:
    """A removal that nobody waits for: what stays is listed and removed by the next run."""
    if not future.cancelled():
        future.exception()
