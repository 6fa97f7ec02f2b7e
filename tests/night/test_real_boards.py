"""A small night over real boards: modes, a cut cable, a kill, a reboot, another address."""

import json
import os
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.servers.namespace_board import USER
from tests.servers.namespace_network import HOST_ADDRESS
from tests.servers.namespaces import BoardLab, NamespaceBoard, why_unavailable
from tests.servers.sim_workspace import COUNTING_RUN, COUNTING_YAML, SimWorkspace

pytestmark = [pytest.mark.namespaces, pytest.mark.slow, pytest.mark.timeout(240)]

COUNTER = f"/home/{USER}/counter"
STATUS = "/var/lib/nvpmodel/status"
SWEEP = """\
name: night
boards: [%s]
power_modes: [maxn, maxq]
clocks: default
payloads:
  - payload: counting
    axes: {cell: [1, 2], seconds: %s}
repeats: 1
measure: {window_s: 0.3, warmup_s: 0, idle_s: 1}
limits: {time_s: 30}
"""


@dataclass
class RealWorkspace(SimWorkspace):
    """A workspace whose boards are machines; `farm` runs at the host's place in their network."""

    machines: list[NamespaceBoard]
    namespace: str

    def command(self, *words: str) -> list[str]:
        return ["ip", "netns", "exec", self.namespace, *super().command(*words)]

    def counted(self) -> list[str]:
        lines: list[str] = []
        for machine in self.machines:
            lines += counted_on(machine)
        return lines

    def start(self, *words: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            self.command(*words, "--plain"),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def check_each_ran_once(self, run_id: str, *, lost: Counter[str] | None = None) -> None:
        """Each trial is done, and the boards counted one start for each attempt."""
        results = self.results()
        assert {one["state"] for one in results} == {"done"}
        assert {one["source"] for one in results} == {"measured"}
        wanted = Counter(f"{one['trial']}-a{one['attempts']}" for one in results)
        counted = (line.split(".", 1) for line in self.counted())
        assert Counter(attempt for run, attempt in counted if run == run_id) == wanted + (
            lost or Counter()
        )


def counted_on(machine: NamespaceBoard) -> list[str]:
    return machine.read(COUNTER).decode().split() if machine.exists(COUNTER) else []


def mode_of(machine: NamespaceBoard) -> bytes:
    return machine.read(STATUS)


def attempts_on(machine: NamespaceBoard) -> list[str]:
    folder = f"/home/{USER}/.farm/attempts"
    if not machine.exists(folder):
        return []
    return machine.console(["ls", folder]).decode().split()


def wait_until(is_so: Callable[[], bool], what: str, limit_s: float = 90.0) -> None:
    end = time.monotonic() + limit_s
    while not is_so():
        assert time.monotonic() < end, what
        threading.Event().wait(0.05)


@pytest.fixture(scope="module")
def machines() -> Iterator[tuple[BoardLab, list[NamespaceBoard]]]:
    reason = why_unavailable()
    if reason and os.environ.get("CI") == "true":
        pytest.fail(reason)
    if reason:
        pytest.skip(reason)
    with BoardLab() as lab:
        yield lab, lab.up(3)


@pytest.fixture
def workspace(
    machines: tuple[BoardLab, list[NamespaceBoard]], tmp_path: Path
) -> Iterator[RealWorkspace]:
    lab, boards = machines
    lines = [
        "limits: {keepalive_s: 1, keepalive_count: 2, login_timeout_s: 10}",
        "boards:",
    ]
    lines += [
        f"  {board.name}: {{profile: jetson-tx2, host: {board.address}, user: {USER}, "
        f"identity_file: {board.identity_file}, known_hosts: {board.known_hosts}}}"
        for board in boards
    ]
    (tmp_path / "inventory.yaml").write_text("\n".join(lines) + "\n")
    names = tuple(board.name for board in boards)
    made = RealWorkspace(tmp_path, names, boards, lab.network.host)
    script = COUNTING_RUN.replace('os.environ["FARM_ROOT"] + "/var/counter"', repr(COUNTER))
    made.write_payload("counting", {"payload.yaml": COUNTING_YAML, "run.py": script})
    before = [mode_of(board) for board in boards]
    yield made
    assert [mode_of(board) for board in boards] == before, "a board was not put back"
    for board in boards:
        wait_until(lambda one=board: not attempts_on(one), f"{board.name} keeps attempts", 5.0)  # type: ignore[misc]


def run_id_of(workspace: RealWorkspace) -> str:
    return str(workspace.show()["run"])


def test_two_power_modes_on_three_boards(workspace: RealWorkspace) -> None:
    workspace.write_sweep("night", SWEEP % ("all", 0.4))
    text = workspace.farm("run", "night", "--plain")
    results = workspace.results()
    assert len(results) == 3 * 2 * 2
    modes = [(one["board"], *mode_words(one)) for one in results]
    assert Counter(modes) == {
        (board, *mode, "default"): 2
        for board in workspace.boards
        for mode in (("maxn", "MAXN", 0), ("maxq", "MAXQ", 1))
    }
    assert {one["attempts"] for one in results} == {1}
    assert {one["power"] for one in results} == {None}
    assert {verdict_of(one) for one in results} == {"valid"}
    assert text.count("restored") == 3
    workspace.check_each_ran_once(run_id_of(workspace))


def mode_words(result: dict[str, object]) -> tuple[object, ...]:
    mode = result["power_mode"]
    assert isinstance(mode, dict)
    return mode["asked"], mode["name"], mode["id"], mode["clocks"]


def verdict_of(result: dict[str, object]) -> object:
    verdict = result["verdict"]
    assert isinstance(verdict, dict)
    return verdict["status"]


def begun_on(workspace: RealWorkspace, index: int, seconds: float) -> "subprocess.Popen[str]":
    """A run on one board whose second payload has just begun."""
    machine = workspace.machines[index]
    seen = len(counted_on(machine))
    workspace.write_sweep("night", SWEEP % (machine.name, seconds))
    process = workspace.start("run", "night")
    wait_until(
        lambda: process.poll() is not None or len(counted_on(machine)) >= seen + 2,
        "the second payload does not begin",
    )
    return process


def finish(process: "subprocess.Popen[str]") -> str:
    text, _ = process.communicate(timeout=120)
    assert process.returncode == 0, text
    return text


def test_a_cut_of_3_s_costs_nothing(workspace: RealWorkspace) -> None:
    machine = workspace.machines[0]
    process = begun_on(workspace, 0, 2.0)
    machine.link_down()
    threading.Event().wait(3.0)  # the cut: this test's very subject
    machine.link_up()
    finish(process)
    assert {one["attempts"] for one in workspace.results()} == {1}
    workspace.check_each_ran_once(run_id_of(workspace))


def test_a_killed_host_goes_on_where_it_stood(workspace: RealWorkspace) -> None:
    process = begun_on(workspace, 1, 2.0)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=30)
    states = Counter(one["state"] for one in workspace.results())
    assert states["running"] in (1, 2)  # the first one may not be committed yet
    assert states["running"] + states["done"] == 2
    text = finish(workspace.start("resume", "last"))
    assert "attempt adopted" in text
    assert {one["attempts"] for one in workspace.results()} == {1}
    workspace.check_each_ran_once(run_id_of(workspace))


def test_a_board_that_reboots_loses_one_attempt_and_no_trial(workspace: RealWorkspace) -> None:
    machine = workspace.machines[2]
    process = begun_on(workspace, 2, 2.0)
    machine.reboot()
    text = finish(process)
    assert "rebooted" in text
    results = workspace.results()
    again = [one for one in results if one["attempts"] == 2]
    assert len(again) == 1
    assert Counter(one["attempts"] for one in results) == {1: 3, 2: 1}
    first = f"{again[0]['trial']}-a1"
    (manifest,) = workspace.root.glob(f"results/runs/*/attempts/{first}/attempt.json")
    assert json.loads(manifest.read_text())["record"]["outcome"] == "lost"
    workspace.check_each_ran_once(run_id_of(workspace), lost=Counter([first]))


def test_a_detached_run_goes_on_when_the_hosts_address_changes(
    machines: tuple[BoardLab, list[NamespaceBoard]], workspace: RealWorkspace
) -> None:
    network, machine = machines[0].network, workspace.machines[0]
    seen = len(counted_on(machine))
    workspace.write_sweep("night", SWEEP % (machine.name, 4.0))
    workspace.farm("run", "night", "--detach")
    wait_until(lambda: len(counted_on(machine)) > seen, "the first payload does not begin")
    network.change_host_address("198.18.255.253")
    try:
        text = workspace.farm("watch", "--plain")
    finally:
        network.change_host_address(HOST_ADDRESS)
    assert "finished" in text
    log = workspace.farm("logs", "last")
    assert " retry: " in log, "the change was not noticed"
    assert " attempt_adopted: " in log
    assert {one["attempts"] for one in workspace.results()} == {1}
    workspace.check_each_ran_once(run_id_of(workspace))
