"""A board that really reboots: an emulated arm64 machine whose nvpmodel asks for it.

Its sudo is Debian's own and allows what `farm boards sudoers` prints, no more.
"""

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.servers.printed import lines_until
from tests.servers.sim_workspace import (
    COUNTING_YAML,
    SimWorkspace,
    private_network,
    sim_lab,
)
from tests.vm.image import HOST_KEY, OTHER_HOST_KEY, USER, Image
from tests.vm.machine import PATIENCE_S, VirtualBoard

PROFILE = "jetson-agx-orin-32gb"
COUNTER = f"/home/{USER}/counter"
HOLD = f"/home/{USER}/hold"
RUN = f"""\
import os, time
import farm_payload as farm

if not os.environ.get("FARM_ROOT"):  # which a simulated board has
    with open({COUNTER!r}, "a") as counter:
        counter.write(os.environ["FARM_ATTEMPT"] + "\\n")
        counter.flush()
        os.fsync(counter.fileno())
with farm.window("measured"):
    while os.path.exists({HOLD!r}):
        time.sleep(0.05)
farm.metric("throughput", 10.0, "ops/s")
farm.metric("count", 10, "ops")
"""
"""Counts its starts; works until it is no longer held up."""
DEFAULT = ("MODE_30W", "240")
SWEEP = """\
name: %s
boards: [%s]
power_modes: [%s]
payloads:
  - payload: counting
repeats: 1
measure: {window_s: 0.2, warmup_s: 0, idle_s: 0, power: "off"}
limits: {time_s: 280, reboot: true, reboot_s: %s, connect_retries: %s}
"""


class Lab:
    """A workspace over the board, and a simulated one beside it."""

    def __init__(self, root: Path, board: VirtualBoard, simulated: str = "") -> None:
        lines = ["limits: {keepalive_s: 2, keepalive_count: 3, login_timeout_s: 60}", "boards:"]
        lines += [board.inventory_line(PROFILE), simulated]
        (root / "inventory.yaml").write_text("\n".join(lines) + "\n")
        self.farm = SimWorkspace(root, (board.name,))
        self.farm.write_payload("counting", {"payload.yaml": COUNTING_YAML, "run.py": RUN})

    def sweep(
        self,
        name: str,
        boards: str,
        modes: str,
        *,
        reboot_s: float = PATIENCE_S,
        connect_retries: int = 20,
    ) -> None:
        text = SWEEP % (name, boards, modes, reboot_s, connect_retries)
        self.farm.write_sweep(name, text)

    @contextmanager
    def running(self, *words: str) -> Iterator["subprocess.Popen[str]"]:
        """The command while it runs; it is ended with the block at the latest."""
        process = subprocess.Popen(
            self.farm.command(*words, "--plain"),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            yield process
        finally:
            process.kill()
            process.communicate(timeout=PATIENCE_S)

    def told(self, *words: str, status: int = 0) -> str:
        return self.farm.farm(*words, status=status, timeout_s=2 * PATIENCE_S)

    def states(self) -> dict[tuple[object, object], object]:
        """(board, mode as asked) -> state of the last run's trials."""
        found = {}
        for one in self.farm.results():
            mode = one["power_mode"]
            assert isinstance(mode, dict)
            found[one["board"], mode["asked"]] = one["state"]
        return found

    def reason(self, board: str) -> str:
        (found,) = [one for one in self.farm.results() if one["board"] == board]
        return str(found["reason"])


def ended(process: "subprocess.Popen[str]", status: int = 0) -> str:
    text, _ = process.communicate(timeout=2 * PATIENCE_S)
    assert process.returncode == status, text
    return text


def mode_of(board: VirtualBoard) -> tuple[str, str]:
    """The stored mode, and the mask in force."""
    told = board.console("nvpmodel -q; cat /run/board/tpc_pg_mask").split()
    return told[3], told[-1]


def starts_on(board: VirtualBoard) -> list[str]:
    return board.console(f"cat {COUNTER}").split()


@pytest.fixture(scope="module")
def machine(image: Image, tmp_path_factory: pytest.TempPathFactory) -> Iterator[VirtualBoard]:
    board = VirtualBoard(image, tmp_path_factory.mktemp("boards") / "vm", f"{private_network()}.1")
    try:
        yield board
    finally:
        board.power_off()


@pytest.fixture
def board(machine: VirtualBoard, tmp_path: Path) -> VirtualBoard:
    """Up, in its default mode; its user may do what farm says it needs, no more."""
    if not machine.is_on:
        machine.power_on()
    machine.wait_until_up()
    rights = Lab(tmp_path, machine).told("boards", "sudoers", machine.name, "--with-reboot")
    place = "/etc/sudoers.d/farm"
    machine.console(
        f"rm -f {COUNTER} {HOLD}; cat > {place}; chmod 440 {place}; sync", stdin=rights
    )
    assert mode_of(machine) == DEFAULT
    return machine


def test_rebooted_into_modes_and_back_though_the_host_was_killed_meanwhile(
    board: VirtualBoard, tmp_path: Path
) -> None:
    lab = Lab(tmp_path, board)
    before, downs = board.boot_ids(), board.times_down()
    lab.sweep("modes", board.name, "30W, maxn, 15W")
    assert "reboots" in lab.told("plan", "modes")
    with lab.running("run", "modes") as process:
        told = lines_until(process, "into MODE_15W")
        assert "into MAXN" in told
        board.wait_for("its second way down", lambda: board.times_down() >= downs + 2)
        process.send_signal(signal.SIGKILL)
        assert process.wait(timeout=PATIENCE_S) == -signal.SIGKILL
    assert list(lab.states().values()).count("done") == 2, told
    text = lab.told("resume", "last", "--plain")
    assert lab.states() == {(board.name, mode): "done" for mode in ("30W", "maxn", "15W")}, text
    assert "restored" in text
    board.wait_until_up()
    assert len(set(board.boot_ids()) - set(before)) == 3, text
    assert mode_of(board) == DEFAULT
    assert len(starts_on(board)) == 3


def test_a_frozen_board_keeps_its_attempt_and_one_without_power_loses_it(
    board: VirtualBoard, tmp_path: Path
) -> None:
    lab = Lab(tmp_path, board)
    lab.sweep("faults", board.name, "current")
    board.console(f"touch {HOLD}; sync")
    with lab.running("run", "faults") as process:
        board.wait_for("the payload", lambda: board.has(COUNTER))
        board.freeze()
        lines_until(process, "again in")
        board.thaw()
        lines_until(process, "adopted")
        board.power_off()
        board.power_on()
        board.wait_until_up()
        board.console(f"rm {HOLD}")
        text = ended(process)
    (result,) = lab.farm.results()
    assert (result["state"], result["attempts"]) == ("done", 2), text
    first, second = starts_on(board)
    assert first.endswith("-a1")
    assert second.endswith("-a2")


def test_a_board_that_comes_back_with_another_key_and_one_that_never_does(
    board: VirtualBoard, tmp_path: Path
) -> None:
    simulated = (
        f"  sim: {{profile: jetson-agx-orin-64gb, host: {private_network()}.1, port: 2222, "
        "user: farm, identity_file: .farm/sim/client_key, known_hosts: .farm/sim/known_hosts, "
        "simulation: {}}"
    )
    lab = Lab(tmp_path, board, simulated)
    trusted, boots = board.known_hosts.read_text(), board.boot_ids()
    board.take_key(OTHER_HOST_KEY)
    lab.sweep("stranger", board.name, "maxn")
    text = lab.told("run", "stranger", "--plain", status=1)
    board.wait_until_up()
    assert len(board.boot_ids()) == len(boots) + 1, text
    assert lab.states() == {(board.name, "maxn"): "pending"}, text
    assert board.known_hosts.read_text() == trusted
    assert not board.has(COUNTER)
    reason = lab.reason(board.name)
    assert "is not the enrolled one" in reason
    assert f"farm boards enroll {board.name}" in reason
    board.take_key(HOST_KEY, is_served=True)
    board.stay_off_at_reboot()
    lab.sweep("gone", f"{board.name}, sim", "30W", reboot_s=5, connect_retries=1)
    with sim_lab(lab.farm):
        text = lab.told("run", "gone", "--plain", status=1)
    assert lab.states() == {(board.name, "30W"): "pending", ("sim", "30W"): "done"}, text
    assert not board.is_on
    reason = lab.reason(board.name)
    assert reason.startswith(f"{board.name}: reboot: not back after 5 s: connect: ")
    assert "farm resume" in reason
