"""The command hook with real processes."""

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest

from farm.drivers.notifiers.command import SHOWN, CommandNotifier, CommandOptions
from farm.errors import ConfigError, NotifyError
from farm.interfaces.notifier import Notice
from farm.model.notify import NotifySpec

NOTICE = Notice("end", "farm: done", "Run r ended.\nGo on.", {"run": "r", "failed": 2})
PATIENCE_S = 30.0


def notifier(*argv: str) -> CommandNotifier:
    return CommandNotifier(NotifySpec(kind="command", command=argv), CommandOptions(), None)


async def test_it_gets_json_on_stdin_and_facts_in_its_environment(tmp_path: Path) -> None:
    script = (
        "import json, os, sys\n"
        "told = {k: v for k, v in os.environ.items() if k.startswith('FARM_')}\n"
        "json.dump([json.load(sys.stdin), told, sys.argv[2:]], open(sys.argv[1], 'w'))\n"
    )
    out = tmp_path / "out.json"
    await notifier(sys.executable, "-c", script, str(out), "--loud").send(NOTICE)
    body, told, argv = json.loads(out.read_text())
    assert body == {**NOTICE.facts, "event": "end", "title": NOTICE.title, "text": NOTICE.text}
    assert (told["FARM_EVENT"], told["FARM_RUN"], told["FARM_FAILED"]) == ("end", "r", "2")
    assert told["FARM_TEXT"] == NOTICE.text
    assert argv == ["--loud"]


async def test_no_shell_is_between(tmp_path: Path) -> None:
    file = tmp_path / "made"
    await notifier("/bin/echo", f"x; touch {file}", "$(false)").send(NOTICE)
    assert not file.exists()


async def test_a_command_that_fails_tells_its_last_line() -> None:
    script = "head -c 300000 /dev/zero >&2; echo first >&2; echo 'no such room' >&2; exit 3"
    with pytest.raises(NotifyError, match=r"^/bin/sh: exit status 3: no such room$"):
        await notifier("/bin/sh", "-c", script).send(NOTICE)


async def test_what_it_prints_is_bounded() -> None:
    with pytest.raises(NotifyError) as caught:
        await notifier("/bin/sh", "-c", "head -c 100000 /dev/zero | tr '\\0' x >&2; exit 1").send(
            NOTICE
        )
    assert len(str(caught.value)) < SHOWN + 100


async def test_a_signal_is_told() -> None:
    with pytest.raises(NotifyError, match="signal 15"):
        await notifier("/bin/sh", "-c", "kill -TERM $$").send(NOTICE)


@pytest.mark.parametrize("program", ["/nonexistent/tell-me", "/etc"])
async def test_a_program_that_cannot_be_started_is_told(program: str) -> None:
    with pytest.raises(NotifyError, match=f"^{program}: "):
        await notifier(program).send(NOTICE)


async def test_a_command_that_hangs_is_killed_with_its_children(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    script = f"sleep 600 & echo $! $$ > {pids}.new; mv {pids}.new {pids}; cat > /dev/null; wait"
    task = asyncio.create_task(notifier("/bin/sh", "-c", script).send(NOTICE))
    async with asyncio.timeout(PATIENCE_S):
        while not pids.exists():  # noqa: ASYNC110 - another process writes it
            await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    killed = pids.read_text().split()
    async with asyncio.timeout(PATIENCE_S):
        while any(is_alive(int(pid)) for pid in killed):  # noqa: ASYNC110 - processes end when they do
            await asyncio.sleep(0.01)


async def test_a_child_in_the_background_is_not_waited_for(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    async with asyncio.timeout(PATIENCE_S):
        await notifier("/bin/sh", "-c", f"sleep 600 & echo $! > {pid}").send(NOTICE)
    os.kill(int(pid.read_text()), 9)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize(
    "spec",
    [
        NotifySpec(kind="command"),
        NotifySpec(kind="command", command=("",)),
        NotifySpec(kind="command", command=("a", "b\0c")),
        NotifySpec(kind="command", command=("true",), url="env:X"),
    ],
)
def test_a_spec_that_cannot_work_is_refused(spec: NotifySpec) -> None:
    with pytest.raises(ConfigError, match="command"):
        CommandNotifier(spec, CommandOptions(), None)
