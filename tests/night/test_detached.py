"""Detached runs and the service: closed terminals, other terminals, kills, a second process."""

import contextlib
import json
import os
import pty
import re
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from farm.pipeline.status import run_status
from farm.store.database import open_store
from tests.servers.sim_workspace import COUNTING_YAML, SimWorkspace, make_sim_workspace, sim_lab

LIMIT_S = 150.0
GATED_RUN = """\
import os, time
import farm_payload as farm

print("waiting at the gate", flush=True)
gate = os.environ["FARM_ROOT"] + "/var/gate"
while not os.path.exists(gate):
    time.sleep(0.05)
with farm.window("measured"):
    time.sleep(0.2)
farm.metric("throughput", 10.0, "ops/s")
farm.metric("count", 10, "ops")
"""
SWEEP = """\
name: gated
payloads:
  - payload: gated
    axes: {cell: [1, 2], seconds: 0.2}
repeats: 1
measure: {window_s: 0.1, warmup_s: 0, idle_s: 0, power: "off"}
limits: {time_s: 900}
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[SimWorkspace]:
    """Two boards whose payloads wait until the gate is opened."""
    made = make_sim_workspace(tmp_path, boards=2)
    yaml = COUNTING_YAML.replace("name: counting", "name: gated")
    made.write_payload("gated", {"payload.yaml": yaml, "run.py": GATED_RUN})
    made.write_sweep("gated", SWEEP)
    with sim_lab(made):
        try:
            yield made
        finally:
            made.farm("stop", "last", "--now", status=None)  # what a failed test left behind


def open_gate(workspace: SimWorkspace) -> None:
    for board in workspace.boards:
        (workspace.board_root(board) / "var").mkdir(exist_ok=True)
        (workspace.board_root(board) / "var" / "gate").touch()


@dataclass(frozen=True)
class Seen:
    """How the newest run stands, by the store: a process of `farm status` costs a second."""

    liveness: str
    pid: int
    running: int
    begun: int = 1


def wait_for(workspace: SimWorkspace, is_so: Callable[[Seen], bool]) -> Seen:
    give_up_s = time.monotonic() + LIMIT_S
    while not (workspace.root / "results" / "farm.db").exists():
        assert time.monotonic() < give_up_s, "no run was made"
        time.sleep(0.05)
    with open_store(workspace.root / "results", create=False) as store:
        while True:
            if store.runs():
                run_id = store.find_run("last")
                status = run_status(store, run_id)
                pid = status.holder.pid if status.holder else 0
                begun = len(store.events(run_id, kinds=("host_began",)))
                open_now = len(store.open_attempts(run_id))
                seen = Seen(status.liveness, pid, open_now, begun)
                if is_so(seen):
                    return seen
                assert time.monotonic() < give_up_s, f"{seen} {all_told(workspace)}"
            time.sleep(0.05)


def all_told(workspace: SimWorkspace) -> str:
    """All that a failed test may be asked about."""
    consoles = workspace.root.glob("results/runs/*/console.log")
    return workspace.farm("logs", "last") + "".join(path.read_text() for path in consoles)


def all_run(seen: Seen) -> bool:
    return seen.liveness == "working" and seen.running == 2


def states(workspace: SimWorkspace) -> list[object]:
    return [one["state"] for one in workspace.results()]


class Terminal:
    """A shell on a terminal of its own; closing it is what closing a window does."""

    def __init__(self, command: list[str]) -> None:
        self.master, slave = pty.openpty()
        quoted = " ".join(f"'{word}'" for word in command)
        # setsid makes the terminal the session's own: without it nobody would be hung up.
        self.shell = subprocess.Popen(
            ["setsid", "--ctty", "--wait", "sh", "-c", f"{quoted}; echo ended $?; exec cat"],
            stdin=slave,
            stdout=slave,
            stderr=slave,
        )
        os.close(slave)
        self.text = ""

    def read_to_end(self) -> str:
        """What the command printed, with ``ended`` and its exit status."""
        give_up_s = time.monotonic() + LIMIT_S
        while not re.search(r"ended \d+\r\n", self.text):
            assert time.monotonic() < give_up_s, self.text
            if select.select([self.master], [], [], 1.0)[0]:
                self.text += os.read(self.master, 4096).decode()
        return self.text

    def close(self) -> None:
        os.close(self.master)
        self.shell.wait(timeout=LIMIT_S)


@contextlib.contextmanager
def process(workspace: SimWorkspace, *words: str) -> "Iterator[subprocess.Popen[str]]":
    with subprocess.Popen(
        workspace.command(*words),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as started:
        try:
            yield started
        finally:
            if started.poll() is None:
                started.kill()


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_detached_run_outlives_its_terminal_and_is_seen_from_others(
    workspace: SimWorkspace,
) -> None:
    terminal = Terminal(workspace.command("run", "gated", "--detach"))
    text = terminal.read_to_end()
    assert "ended 0" in text, text
    assert "works on it, without this terminal" in text
    pid = wait_for(workspace, all_run).pid
    terminal.close()
    with pytest.raises(ProcessLookupError):
        os.killpg(terminal.shell.pid, 0)

    refused = workspace.farm("resume", "last", "--detach", status=2)
    assert f"process {pid} on" in refused
    assert "farm stop" in refused
    running = workspace.results()[0]
    assert "waiting at the gate" in workspace.farm("logs", "last", str(running["trial"]))
    with process(workspace, "watch", "--plain") as watch:
        assert watch.stdout is not None
        assert "0/4 trials" in watch.stdout.readline()
        assert wait_for(workspace, all_run).pid == pid
        open_gate(workspace)
        text, _ = watch.communicate(timeout=LIMIT_S)
    assert text.count(" done ") == 4, text
    assert "finished" in text
    assert states(workspace) == ["done"] * 4
    lines = [json.loads(line) for line in workspace.farm("logs", "last", "--json").splitlines()]
    ends = [line for line in lines if line.get("event") == "trial_end"]
    assert len(ends) == 4
    assert all(line["board"] and line["trial"] and line["attempt"] for line in ends)


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_stop_from_another_terminal_restores_the_boards(workspace: SimWorkspace) -> None:
    workspace.farm("run", "gated", "--detach")
    pid = wait_for(workspace, all_run).pid
    text = workspace.farm("stop")
    assert f"told process {pid}" in text
    assert text.count("restored") == 2
    wait_for(workspace, lambda seen: seen.liveness == "stopped")
    assert "nothing" in workspace.farm("service", "run", "--once")
    open_gate(workspace)
    workspace.farm("resume", "last", "--plain")
    assert states(workspace) == ["done"] * 4


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_the_service_goes_on_with_a_killed_run_and_after_its_own_stop(
    workspace: SimWorkspace,
) -> None:
    workspace.farm("run", "gated", "--detach")
    first = wait_for(workspace, all_run).pid
    os.kill(first, signal.SIGKILL)
    wait_for(workspace, lambda seen: seen.liveness == "gone")
    (told,) = json.loads(workspace.farm("status", "--json"))
    assert (told["liveness"], told["holder"]["pid"]) == ("gone", first)
    assert {one["state"] for one in told["boards"]} == {"running"}
    with process(workspace, "service", "run") as service:
        second = wait_for(workspace, lambda seen: all_run(seen) and seen.begun == 2).pid
        assert second != first
        service.terminate()  # as a host that shuts down does
        text, _ = service.communicate(timeout=LIMIT_S)
        assert service.returncode == 0, text
    assert f"process {second} goes on" in text
    wait_for(workspace, lambda seen: seen.liveness == "stopped")
    open_gate(workspace)
    text += workspace.farm("service", "run", "--once")
    assert states(workspace) == ["done"] * 4, text + all_told(workspace)
    assert "resumed 2 times" in workspace.farm("runs", "show")


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_closed_terminal_stops_a_run_that_was_not_detached_in_order(
    workspace: SimWorkspace,
) -> None:
    terminal = Terminal(workspace.command("run", "gated"))
    wait_for(workspace, all_run)
    terminal.close()
    wait_for(workspace, lambda seen: seen.liveness == "stopped")
    log = workspace.farm("logs", "last")
    assert log.count(" restored: ") == 2, log
    assert "internal error" not in log
