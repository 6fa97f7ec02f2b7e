"""A message to a command of one's own: mail, a lamp, a script.

In the inventory::

    notify:
      - kind: command
        on: [end]
        command: [/usr/local/bin/tell-me, --loud]

The command gets the message as one JSON object on stdin, and the main figures as ``FARM_EVENT``,
``FARM_TITLE``, ``FARM_RUN`` and so on in its environment; nothing of it is in its arguments,
where all users of the machine could read it. No shell is between. What it prints is dropped, but
for the last line on stderr when it fails. Beyond its time it is killed with all that it started.
"""

import asyncio
import contextlib
import json
import os
import signal
import tempfile
from collections.abc import Iterator

from farm.errors import ConfigError, NotifyError
from farm.interfaces.notifier import Notice, Notifier
from farm.model.notify import NotifySpec
from farm.model.record import Record

KEPT_BYTES = 2048
SHOWN = 200
REAP_LIMIT_S = 2.0


class CommandOptions(Record):
    """None."""


class CommandNotifier(Notifier):
    """One command, run anew for each message."""

    Options = CommandOptions

    def __init__(self, spec: NotifySpec, options: CommandOptions, secret: str | None) -> None:
        if not spec.command or spec.url is not None:
            raise ConfigError('a command hook needs "command", and takes no "url"')
        if any("\0" in word for word in spec.command) or not spec.command[0]:
            raise ConfigError('"command" should be a list: the program, then its arguments')
        self._argv = spec.command

    async def send(self, notice: Notice) -> None:
        """Run it to its end. Raises NotifyError: it cannot be started, or it failed."""
        environment = {**os.environ, **_environment(notice)}
        with tempfile.TemporaryFile() as message, _last_words() as (words, stderr):
            message.write(json.dumps(notice.as_json()).encode())
            message.seek(0)
            try:
                process = await asyncio.create_subprocess_exec(
                    *self._argv,
                    stdin=message,
                    stdout=asyncio.subprocess.DEVNULL,
                    stderr=stderr,
                    env=environment,
                    start_new_session=True,
                )
            except OSError as error:
                raise NotifyError(f"{self._argv[0]}: {error.strerror}") from None
            try:
                status = await process.wait()
            finally:
                if process.returncode is None:
                    await _kill(process)
        if status != 0:
            said = _last_line(bytes(words))
            how = f"signal {-status}" if status < 0 else f"exit status {status}"
            raise NotifyError(f"{self._argv[0]}: {how}" + (f": {said}" if said else ""))


def _environment(notice: Notice) -> dict[str, str]:
    """Single values for shell scripts; the text with its lines is in the JSON, too."""
    facts = {f"FARM_{name.upper()}": str(value) for name, value in notice.facts.items()}
    facts |= {"FARM_EVENT": notice.event, "FARM_TITLE": notice.title, "FARM_TEXT": notice.text}
    return {name: value.replace("\0", "?") for name, value in facts.items()}


@contextlib.contextmanager
def _last_words() -> Iterator[tuple[bytearray, int]]:
    """What is written to the descriptor last. Read all the time: no writer waits for us.

    Not a pipe of the process's own: asyncio waits for the end of that, which a child that
    stays in the background would hold open.
    """
    loop, words = asyncio.get_running_loop(), bytearray()
    reader, writer = os.pipe()
    os.set_blocking(reader, False)

    def take() -> bool:
        try:
            data = os.read(reader, 65536)
        except BlockingIOError:
            return False
        if not data:
            loop.remove_reader(reader)
            return False
        words.extend(data)
        del words[:-KEPT_BYTES]
        return True

    loop.add_reader(reader, take)
    try:
        yield words, writer
        take()
    finally:
        loop.remove_reader(reader)
        os.close(reader)
        os.close(writer)


async def _kill(process: asyncio.subprocess.Process) -> None:
    """End it and its group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(process.wait(), REAP_LIMIT_S)


def _last_line(data: bytes) -> str:
    lines = data.decode("utf-8", "replace").strip().splitlines()
    return lines[-1].strip()[:SHOWN] if lines else ""
