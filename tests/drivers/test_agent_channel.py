import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from farm.drivers.agent_answers import Answer
from farm.drivers.agent_channel import LONGEST_LINE, AgentChannel
from farm.errors import AgentError, BoardError, CommandTimeoutError, LeaseHeldError, LinkLostError
from farm.interfaces.transport import Stream
from farm.testing.local_transport import LocalTransport


class ScriptedStream(Stream):
    """What was written, and the means to answer."""

    def __init__(self) -> None:
        self.written: list[dict[str, object]] = []
        self.is_closed = False

    def write(self, data: bytes) -> None:
        self.written.append(json.loads(data))

    async def drain(self) -> None:
        return

    def end_input(self) -> None:
        return

    async def wait(self, timeout_s: float) -> int:
        return 0

    async def close(self) -> None:
        self.is_closed = True


class ScriptedTransport(LocalTransport):
    async def stream(
        self,
        argv: Sequence[str],
        on_stdout: Callable[[bytes], None],
        on_stderr: Callable[[bytes], None] | None = None,
        on_lost: Callable[[], None] | None = None,
    ) -> Stream:
        assert on_lost is not None
        self.say, self.lose = on_stdout, on_lost
        self.scripted = ScriptedStream()
        return self.scripted


class Talk:
    def __init__(self) -> None:
        self.events: list[Mapping[str, object]] = []
        self.losses: list[BoardError] = []
        self.channel = AgentChannel(self.events.append, self.losses.append)

    async def open(self, transport: ScriptedTransport) -> "Talk":
        await self.channel.open_on(transport, ["agent"])
        self.say, self.lose = transport.say, transport.lose
        self.stream = transport.scripted
        return self

    def ask(self, op: str, within_s: float = 30.0) -> "asyncio.Task[Answer]":
        return asyncio.create_task(self.channel.request(op, within_s=within_s))


@pytest.fixture
async def talk(tmp_path: Path) -> Talk:
    return await Talk().open(ScriptedTransport(tmp_path))


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_answers_come_in_any_order_and_in_any_pieces(talk: Talk) -> None:
    first, second = talk.ask("clock"), talk.ask("clock")
    await settle()
    ids = [request["id"] for request in talk.stream.written]
    answers = f'{{"id":{ids[1]},"ok":true,"t":2}}\n{{"id":{ids[0]},"ok":true,"t":1}}\n'
    for byte in answers.encode():
        talk.say(bytes([byte]))
    assert [(await each).number("t") for each in (first, second)] == [1, 2]


async def test_noise_is_passed_over(talk: Talk) -> None:
    asked = talk.ask("clock")
    await settle()
    talk.say(b"Welcome to Ubuntu\r\n\xff\xfe\n{half\n[1]\n{}\n\n" + b"[" * 100_000 + b"\n")
    talk.say(b'{"id": "x", "ok": true}\n{"id": 99, "ok": true}\n' + b'{"a":' * 100_000 + b"\n")
    assert not asked.done()
    talk.say(b'{"id": 1, "ok": true}\n')
    await asked


async def test_line_without_end_is_refused(talk: Talk) -> None:
    asked = talk.ask("clock")
    await settle()
    piece = b"x" * (1024 * 1024)
    for _ in range(LONGEST_LINE // len(piece) + 1):
        talk.say(piece)
    with pytest.raises(AgentError, match="a line of more than"):
        await asked


async def test_loss_reaches_all_who_wait_and_all_who_come_later(talk: Talk) -> None:
    asked = [talk.ask("clock"), talk.ask("status")]
    await settle()
    talk.lose()
    for each in asked:
        with pytest.raises(LinkLostError):
            await each
    with pytest.raises(LinkLostError):
        await talk.channel.request("clock")
    assert len(talk.losses) == 1


async def test_request_has_its_time_limit_and_a_late_answer_harms_nobody(talk: Talk) -> None:
    with pytest.raises(CommandTimeoutError, match=r"status: no answer within 0\.01 s"):
        await talk.ask("status", within_s=0.01)
    talk.say(b'{"id": 1, "ok": true}\n')
    asked = talk.ask("clock")
    await settle()
    talk.say(b'{"id": 2, "ok": true, "t": 5}\n')
    assert (await asked).number("t") == 5


async def test_each_of_many_requests_has_its_own_time_limit(talk: Talk) -> None:
    patient = talk.ask("run")
    many = [talk.ask("status", within_s=0.01 * (1 + number % 3)) for number in range(100)]
    for each in many:
        with pytest.raises(CommandTimeoutError):
            await each
    with pytest.raises(CommandTimeoutError):  # the timer that spoke is set again
        await talk.ask("status", within_s=0.01)
    assert not patient.done()
    talk.say(b'{"id": 1, "ok": true}\n')
    await patient


async def test_cancelled_request_is_forgotten(talk: Talk) -> None:
    asked = talk.ask("clock")
    await settle()
    asked.cancel()
    await settle()
    talk.say(b'{"id": 1, "ok": true}\n')
    assert asked.cancelled()


@pytest.mark.parametrize(
    ("error", "kind", "said"),
    [
        ({"kind": "held", "text": "run r2"}, LeaseHeldError, "run r2"),
        ({"kind": "timeout", "text": "x"}, CommandTimeoutError, "x"),
        ({"kind": "io", "text": "y"}, AgentError, r"y \(io\)"),
        ("nonsense", AgentError, "no reason given"),
    ],
)
async def test_refusals_become_errors(
    talk: Talk, error: object, kind: type[BoardError], said: str
) -> None:
    asked = talk.ask("op")
    await settle()
    talk.say(json.dumps({"id": 1, "ok": False, "error": error}).encode() + b"\n")
    with pytest.raises(kind, match=said):
        await asked


async def test_events_are_handed_on(talk: Talk) -> None:
    talk.say(b'{"event": "exit", "attempt": {}}\n')
    assert talk.events == [{"event": "exit", "attempt": {}}]


async def test_close_ends_the_stream_and_the_waiting(talk: Talk) -> None:
    asked = talk.ask("clock")
    await settle()
    await talk.channel.close()
    assert talk.stream.is_closed
    with pytest.raises(LinkLostError):
        await asked
