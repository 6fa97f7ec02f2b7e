"""A night over real and simulated boards with faults drawn by a seed, and a host that is killed.

Faults begin when a board has begun so many payloads, not at a time: so the same seed gives much
the same night on a slow machine. Payload starts are counted outside the boards' own disks, which
lose what was last written when their power goes.
"""

import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.servers.namespace_board import USER
from tests.servers.namespaces import BoardLab, NamespaceBoard
from tests.servers.sim_workspace import COUNTING_YAML, SimWorkspace, private_network, sim_lab

KILLS = 3
ROUND_LIMIT_S = 900.0
"""Far more than a `farm run` of this size takes."""

SWEEP = """\
name: night
power_modes: [maxq]
clocks: locked
payloads:
  - {payload: counting, boards: [%s], axes: {cell: [%s], seconds: 0.5}}
  - {payload: counting, boards: [%s], axes: {cell: [%s], seconds: 2}}
repeats: 1
measure: {window_s: 0.3, warmup_s: 0, idle_s: 0, settle: {max_wait_s: 2, cool_down_s: 0.5}}
limits:
  time_s: 30
  retries: 4
  requeues: 1
  connect_retries: 3
  recovery: {quarantines_per_board: 2, rest_s: 2, longest_rest_s: 4, last_chance_s: 4,
    together_s: 2, lab_wait_s: 5, patience_s: 2, off_s: 1}
"""
COUNTING_RUN = """\
import os, time
import farm_payload as farm

path = "/run/machine/starts"
if not os.path.exists(path):
    path = os.path.join("%s", os.path.basename(os.environ["FARM_ROOT"]))
with open(path, "a") as starts:
    starts.write(os.environ["FARM_ATTEMPT"] + "\\n")
    starts.flush()
    os.fsync(starts.fileno())
with farm.window("measured"):
    time.sleep(float(farm.params()["seconds"]))
farm.metric("throughput", 10.0, "ops/s")
farm.metric("count", 10, "ops")
"""


@dataclass(frozen=True, slots=True)
class Size:
    """How large a night is: boards of each kind, trials and faults of each board."""

    real: int
    simulated: int
    trials: int
    faults: int


@dataclass
class NightWorkspace(SimWorkspace):
    """`boards` are all; `machines` the real ones among them."""

    machines: Mapping[str, NamespaceBoard]
    namespace: str

    def command(self, *words: str) -> list[str]:
        return ["ip", "netns", "exec", self.namespace, *super().command(*words)]

    def starts(self, board: str) -> list[str]:
        """The attempts that the board began, in order; each as often as it did."""
        machine = self.machines.get(board)
        path = machine.folder / "machine" / "starts" if machine else self.root / "starts" / board
        return [line.split(".", 1)[1] for line in path.read_text().split()]

    def all_starts(self) -> int:
        return sum(len(self.starts(board)) for board in self.boards)

    def read(self, board: str, path: str) -> str:
        """A board's file; "" where it has none. `~` is the user's home."""
        if machine := self.machines.get(board):
            on_board = path.replace("~", f"/home/{USER}")
            return machine.read(on_board).decode() if machine.exists(on_board) else ""
        file = self.board_root(board) / path.replace("~", "/home").lstrip("/")
        return file.read_text() if file.exists() else ""

    def attempts_kept(self, board: str) -> list[str]:
        """Names of the attempts that lie on the board."""
        if machine := self.machines.get(board):
            folder = f"/home/{USER}/.farm/attempts"
            return (
                machine.console(["ls", folder]).decode().split() if machine.exists(folder) else []
            )
        path = self.board_root(board) / "home/.farm/attempts"
        return sorted(one.name for one in path.iterdir()) if path.exists() else []


def has_meter(board: str) -> bool:
    """Every other simulated board."""
    return board.startswith("sim-") and board[-1] in "13579"


@contextmanager
def night_lab(root: Path, lab: BoardLab, size: Size) -> Iterator[NightWorkspace]:
    """The workspace with its real and simulated boards up."""
    machines = {machine.name: machine for machine in lab.up(size.real)}
    simulated = [f"sim-{number:02d}" for number in range(1, size.simulated + 1)]
    boards = (*machines, *simulated)
    made = NightWorkspace(root, boards, machines, lab.network.host)
    (root / "inventory.yaml").write_text(inventory(machines, simulated))
    (root / "starts").mkdir()
    for board in boards:
        machine = machines.get(board)
        path = machine.folder / "machine" / "starts" if machine else root / "starts" / board
        path.touch()
        path.chmod(0o666)
    script = COUNTING_RUN % (root / "starts")
    made.write_payload("counting", {"payload.yaml": COUNTING_YAML, "run.py": script})
    cells = ", ".join(str(cell) for cell in range(1, size.trials + 1))
    with_meter = [name for name in boards if has_meter(name)]
    others = [name for name in boards if not has_meter(name)]
    lists = ", ".join(others), cells, ", ".join(with_meter), cells
    made.write_sweep("night", SWEEP % lists)
    with sim_lab(made):
        yield made


def inventory(machines: Mapping[str, NamespaceBoard], simulated: Sequence[str]) -> str:
    """A meter can also switch its board."""
    net = private_network()
    lines = [
        "limits: {keepalive_s: 1, keepalive_count: 2, login_timeout_s: 10, starts_per_s: 200}",
        "defaults: {profile: jetson-tx2}",
        "boards:",
    ]
    lines += [
        f"  {name}: {{host: {machine.address}, user: {USER}, "
        f"identity_file: {machine.identity_file}, known_hosts: {machine.known_hosts}}}"
        for name, machine in machines.items()
    ]
    for number, name in enumerate(simulated, start=1):
        plug = f", meter: plug-{name}, outlet: plug-{name}" if has_meter(name) else ""
        lines.append(
            f"  {name}: {{host: {net}.{number}, port: 2222, user: farm, identity_file: "
            f".farm/sim/client_key, known_hosts: .farm/sim/known_hosts, simulation: {{}}{plug}}}"
        )
    lines.append("meters:")
    lines += [
        f"  plug-{name}: {{kind: shelly, host: {net}.{number}, port: 8080, poll_hz: 20, "
        "update_s: 0.05, averaging_s: 0.05, lag_s: 0.025, min_w: 0.5, deadline_s: 1, "
        "simulation: {refresh_s: 0.05}}"
        for number, name in enumerate(simulated, start=1)
        if has_meter(name)
    ]
    return "\n".join(lines) + "\n"


@dataclass
class Host:
    """`farm run` and `farm resume`, killed at moments that the boards' counts tell."""

    workspace: NightWorkspace
    texts: list[str] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    kills: int = 0

    def work(self, *words: str, until_starts: int | None = None, after_s: float = 0.0) -> None:
        """One process, to its end, or killed `after_s` after so many payloads began."""
        log = self.workspace.root / f"host-{len(self.texts)}.log"
        with log.open("wb") as out:
            process = subprocess.Popen(
                self.workspace.command(*words, "--plain"),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
            )
            try:
                self._watch(process, until_starts, after_s)
            finally:
                process.kill()
                process.wait(timeout=30)
        self.texts.append(log.read_text("utf-8", "replace"))
        self.statuses.append(process.returncode)
        self.kills += process.returncode == -signal.SIGKILL

    def _watch(
        self, process: "subprocess.Popen[bytes]", until_starts: int | None, after_s: float
    ) -> None:
        end = time.monotonic() + ROUND_LIMIT_S
        while process.poll() is None:
            assert time.monotonic() < end, f"{process.args!r} does not end"
            if until_starts is not None and self.workspace.all_starts() >= until_starts:
                threading.Event().wait(after_s)  # the random moment: this test's very subject
                return
            threading.Event().wait(0.1)
