"""What the service resumes and what it leaves alone; its unit; what it tells systemd."""

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from farm.errors import ConfigError, StoreError
from farm.interfaces.sinks import RunEvent
from farm.model.attempt import TrialState
from farm.pipeline import service as module
from farm.pipeline.lab import Lab
from farm.pipeline.sd_notify import sd_notify
from farm.pipeline.service import Service, resumable
from farm.pipeline.service_unit import unit_text
from farm.pipeline.stopping import Stop, stop_run
from farm.store.database import Store, open_store
from tests.pipeline.test_notify import lab_with
from tests.store.builders import NOW, new_run

BEGAN = RunEvent(NOW, "host_began")
ENDED = RunEvent(NOW, "host_ended")
BY_USER, BY_SYSTEM = Stop(signal.SIGINT).event(), Stop(signal.SIGTERM).event()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "results") as opened:
        yield opened


def begun(store: Store, state: str, *events: RunEvent, is_done: bool = False) -> str:
    """A run with these events, whose process is gone."""
    run_id = new_run(store)
    with store.lock_run(run_id):
        for event in events:
            store.add_event(run_id, event)
    store.set_run_state(run_id, state)
    if is_done:
        asyncio.run(decide_all(store, run_id))
    return run_id


async def decide_all(store: Store, run_id: str) -> None:
    journal = store.journal(run_id)
    for trial in store.progress(run_id):
        await journal.set_trial_state(trial, TrialState.DONE, "")
    await journal.close()


@pytest.mark.parametrize(
    ("state", "events", "is_resumed"),
    [
        ("running", [BEGAN], True),
        ("interrupted", [BEGAN, BY_SYSTEM], True),
        ("interrupted", [BEGAN, BY_USER, BEGAN, BY_SYSTEM], True),
        ("interrupted", [BEGAN, BY_SYSTEM, BEGAN, BY_USER], False),
        ("interrupted", [BEGAN, BY_USER], False),
        ("interrupted", [BEGAN, ENDED], False),
        ("running", [], False),
        ("finished", [BEGAN, ENDED], False),
    ],
    ids=["killed", "host shut down", "once stopped, then shut down", "resumed, then stopped",
         "stopped by the user", "boards fell out", "never begun", "finished"],
)  # fmt: skip
def test_what_is_resumed(
    store: Store, state: str, events: list[RunEvent], *, is_resumed: bool
) -> None:
    run_id = begun(store, state, *events)
    assert resumable(store) == ([run_id] if is_resumed else [])


def test_a_run_that_is_worked_on_or_decided_is_left_alone(store: Store) -> None:
    begun(store, "running", BEGAN, is_done=True)
    run_id = begun(store, "running", BEGAN)
    with store.lock_run(run_id):
        assert resumable(store) == []
    assert resumable(store) == [run_id]


def test_a_forgotten_run_is_left_alone(store: Store) -> None:
    run_id = begun(store, "running", BEGAN)
    long_ago = (NOW - timedelta(days=3650)).timestamp()
    os.utime(store.run_folder(run_id) / "lock", (long_ago, long_ago))
    assert resumable(store) == []


def test_a_killed_run_that_the_user_stops_is_not_resumed(store: Store) -> None:
    run_id = begun(store, "running", BEGAN)
    assert stop_run(store, run_id) is None
    assert resumable(store) == []
    assert store.run(run_id).state == "interrupted"


class HandClock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


async def looked_until_over(service: Service) -> None:
    """Look until the process that was started has been seen to end."""
    await service.look()
    for child in list(service._children.values()):
        await asyncio.wait_for(child.process.wait(), 60)
    await service.look()


def made_to_run(monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Instead of farm."""
    monkeypatch.setattr(
        module, "detached_command", lambda lab, run_id: [sys.executable, "-c", script]
    )


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return lab_with(tmp_path, "")


async def test_a_run_whose_processes_get_nowhere_is_let_be(
    lab: Lab, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    made_to_run(monkeypatch, "import os; os._exit(9)")
    monkeypatch.setattr(module, "MOST_FRUITLESS", 2)
    run_id = await asyncio.to_thread(begun, store, "running", BEGAN)
    said: list[str] = []
    clock = HandClock()
    service = Service(lab, store, said.append, clock)
    await looked_until_over(service)
    assert said[-1] == f"run {run_id}: again in 30 s"
    await looked_until_over(service)
    assert len(said) == 3, "it did not wait"
    clock.now_s += 31
    await looked_until_over(service)
    assert "got nowhere; left alone" in said[-1]
    clock.now_s += 10_000
    await looked_until_over(service)
    assert sum("goes on with it" in line for line in said) == 2


async def test_boards_that_are_not_up_yet_are_tried_again(
    lab: Lab, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    made_to_run(monkeypatch, "import os; os._exit(3)")
    run_id = await asyncio.to_thread(begun, store, "running", BEGAN)
    said: list[str] = []
    clock = HandClock()
    service = Service(lab, store, said.append, clock)
    await looked_until_over(service)
    store.set_run_state(run_id, "interrupted")
    store.add_event(run_id, ENDED)
    assert resumable(store) == []
    clock.now_s += 31
    await looked_until_over(service)
    assert sum("goes on with it" in line for line in said) == 2


async def test_a_process_without_a_heartbeat_is_killed(
    lab: Lab, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    made_to_run(monkeypatch, "import time; time.sleep(1000)")
    await asyncio.to_thread(begun, store, "running", BEGAN)
    said: list[str] = []
    clock = HandClock()
    service = Service(lab, store, said.append, clock)
    await service.look()
    await service.look()
    (child,) = service._children.values()
    clock.now_s += module.HUNG_S - 1
    await service.look()
    assert child.process.returncode is None
    clock.now_s += 2
    await service.look()
    assert "hangs; killed" in said[-1]
    assert await asyncio.wait_for(child.process.wait(), 60) == -signal.SIGKILL


async def test_a_store_that_is_away_ends_nothing(
    lab: Lab, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    made_to_run(monkeypatch, "import time; time.sleep(1000)")
    await asyncio.to_thread(begun, store, "running", BEGAN)
    said: list[str] = []
    clock = HandClock()
    service = Service(lab, store, said.append, clock)
    await service._look_patiently()
    (child,) = service._children.values()

    def is_away(*_: object) -> None:
        raise StoreError("the database does not answer")

    with monkeypatch.context() as away:
        away.setattr(store, "last_beat", is_away)
        for _ in range(3):
            clock.now_s += module.HUNG_S - 1
            await service._look_patiently()
    clock.now_s += module.HUNG_S - 1
    await service._look_patiently()
    assert [line.partition(":")[0] for line in said[1:]] == [
        "waiting for the store",
        "the store is back",
    ]
    assert child.process.returncode is None
    child.process.kill()
    await asyncio.wait_for(child.process.wait(), 60)


def test_systemd_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    assert not sd_notify("READY=1")
    path = tmp_path / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as server:
        server.bind(str(path))
        monkeypatch.setenv("NOTIFY_SOCKET", str(path))
        assert sd_notify("READY=1")
        assert server.recv(100) == b"READY=1"
    assert not sd_notify("WATCHDOG=1"), "nobody listens any more, which is no error"


@pytest.mark.parametrize("name", ["lab", 'a b%h$HOME"x'])
def test_systemd_accepts_the_unit(tmp_path: Path, name: str) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not here")
    folder = tmp_path / name
    folder.mkdir()
    for is_user in (False, True):
        unit = tmp_path / f"farm-{is_user}.service"
        unit.write_text(unit_text(folder, is_user=is_user))
        done = subprocess.run(
            ["systemd-analyze", "verify", "--man=no", unit],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")


def test_a_path_that_no_unit_can_name_is_refused() -> None:
    with pytest.raises(ConfigError, match="control"):
        unit_text(Path("/tmp/a\nExecStart=x"), is_user=False)
