"""How other commands tell a running lab of faults: a socket in the lab's folder.

One JSON line asks, one answers. Who may open the folder may ask: it is its owner's alone.
"""

import asyncio
import contextlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, ValidationError

from farm.errors import ConfigError, FarmError
from farm.model.record import Record
from farm.simulation.fault_schedule import FaultSchedule, ScheduledFault
from farm.simulation.faults import MOST_FAULTS, Fault

FOLDER = "control"
"""In the lab's folder; only its owner may enter."""
_NAME = "socket"
_LINE_LIMIT = 4 * 1024 * 1024
_SETTLED_S = 30.0
_ANSWER_S = 60.0


class Request(Record):
    """What is asked: `boards` is of ``heal``, none meaning all."""

    ask: Literal["fault", "faults", "heal"]
    faults: tuple[Fault, ...] = Field(default=(), max_length=MOST_FAULTS)
    boards: tuple[str, ...] = ()


class FaultRow(Record):
    """One fault in an answer; times are ISO in UTC."""

    number: int
    board: str
    kind: str
    settings: str
    for_s: float | None
    state: str
    due: str | None
    begun: str | None
    ended: str | None
    note: str


class Answer(Record):
    """The faults it is about, or what was wrong."""

    faults: tuple[FaultRow, ...] = ()
    error: str = ""


class FaultControl:
    """Answers while the lab is up.

    Args:
        schedule: the lab's.
        root: the lab's folder.
    """

    def __init__(self, schedule: FaultSchedule, root: Path) -> None:
        self._schedule, self._folder = schedule, root / FOLDER
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        self._folder.mkdir(mode=0o700, exist_ok=True)
        self._folder.chmod(0o700)
        with _short_path(self._folder) as path:
            self._server = await asyncio.start_unix_server(self._serve, path, limit=_LINE_LIMIT)
        return self

    async def __aexit__(self, *exc: object) -> None:
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()
        (self._folder / _NAME).unlink(missing_ok=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_ANSWER_S):
                line = await reader.readline()
                answer = await self._answer(line)
                writer.write(answer.model_dump_json().encode() + b"\n")
                await writer.drain()
        except (OSError, ValueError, TimeoutError):
            pass  # who asked has gone, or says no line
        finally:
            writer.close()

    async def _answer(self, line: bytes) -> Answer:
        try:
            request = Request.model_validate_json(line)
            entries = await self._do(request)
        except ValidationError as error:
            return Answer(error=f"not understood: {error.error_count()} faults in the request")
        except (FarmError, OSError) as error:
            return Answer(error=str(error))
        return Answer(faults=tuple(FaultRow.model_validate(one.facts()) for one in entries))

    async def _do(self, request: Request) -> list[ScheduledFault]:
        if request.ask == "faults":
            return self._schedule.entries
        if request.ask == "heal":
            return await self._schedule.heal(request.boards)
        entries = self._schedule.add(request.faults)
        at_once = [
            entry for entry in entries if not entry.fault.after_s and not entry.fault.in_payload
        ]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_SETTLED_S):
                for entry in at_once:
                    await entry.settled.wait()
        return entries


def ask_lab(root: Path, request: Request) -> list[FaultRow]:
    """Ask the lab whose folder is `root`.

    Raises:
        ConfigError: the lab refuses.
        FarmError: no lab answers there.
    """
    try:
        line = _exchange(root / FOLDER, request.model_dump_json().encode() + b"\n")
        answer = Answer.model_validate_json(line)
    except (OSError, ValueError) as error:
        msg = f"the simulated lab does not answer ({error}); is it up? `farm sim up` starts it"
        raise FarmError(msg) from error
    if answer.error:
        raise ConfigError(answer.error)
    return list(answer.faults)


def _exchange(folder: Path, line: bytes) -> bytes:
    with _short_path(folder) as path, socket.socket(socket.AF_UNIX) as link:
        link.settimeout(_ANSWER_S)
        link.connect(path)
        link.sendall(line)
        with link.makefile("rb") as stream:
            return stream.readline(_LINE_LIMIT)


@contextlib.contextmanager
def _short_path(folder: Path) -> Iterator[str]:
    """A path to the socket that fits: an address of this kind has 107 bytes, a folder more."""
    handle = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{handle}/{_NAME}"
    finally:
        os.close(handle)
