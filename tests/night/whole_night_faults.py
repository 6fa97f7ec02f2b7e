"""Faults of a night, drawn by a seed: those of real boards, and those the simulated lab has."""

import random
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from farm.pipeline.lab import open_lab
from farm.pipeline.sim_faults import tell_lab
from farm.simulation.fault_kinds import ENDS_ITSELF, FaultKind
from farm.simulation.faults import Fault
from tests.night.whole_night_rig import NightWorkspace, Size, has_meter
from tests.servers.namespaces import NamespaceBoard

REAL_KINDS = ("cable", "sshd", "hang", "reboot", "full_disk", "payload", "agent")
"""The last two: its process is killed, or all of farm's that are there."""
NEVER_ENDS = "cable_for_good"


@dataclass(frozen=True, slots=True)
class Deed:
    """A fault of one board, `after_s` after its `start`-th payload began."""

    start: int
    after_s: float
    for_s: float
    kind: str


Deeds = dict[str, list[Deed]]


def draw(boards: Sequence[str], kinds: Sequence[str], size: Size, chance: random.Random) -> Deeds:
    """Each kind about as often as any other, over the boards by chance."""
    pool: list[str] = []
    deeds: Deeds = {}
    for board in boards:
        begins = sorted(chance.choices(range(1, size.trials), k=size.faults))
        deeds[board] = []
        for begin in begins:
            fitting = [kind for kind in pool if fits(board, kind)]
            if not fitting:
                pool += chance.sample(kinds, len(kinds))
                fitting = [kind for kind in pool if fits(board, kind)]
            pool.remove(fitting[0])
            times = chance.uniform(0.0, 0.6), chance.uniform(1.5, 4.0)
            deeds[board].append(Deed(begin, *times, fitting[0]))
    return deeds


def fits(board: str, kind: str) -> bool:
    """Faults of a meter need one."""
    return not kind.startswith("meter_") or has_meter(board)


class Faults:
    """Has every board's faults when their time has come, each board in a thread of its own."""

    def __init__(self, workspace: NightWorkspace, deeds: Deeds) -> None:
        self._workspace, self._deeds = workspace, deeds
        self._lab = open_lab(workspace.root)
        self._over = threading.Event()
        self.had: list[str] = []
        self._pool = ThreadPoolExecutor(len(deeds), thread_name_prefix="faults")
        self._work: list[Future[None]] = []

    def begin(self) -> None:
        """From now on they happen."""
        self._work = [self._pool.submit(self._happen, board) for board in self._deeds]

    def end(self) -> None:
        """No more; those that are there end. Raises what went wrong in having them."""
        self._over.set()
        self._pool.shutdown()
        for one in self._work:
            one.result()

    def _happen(self, board: str) -> None:
        for deed in self._deeds[board]:
            while len(self._workspace.starts(board)) < deed.start:
                if self._over.wait(0.1):
                    return
            if self._over.wait(deed.after_s):
                return
            self.had.append(f"{board} {deed.kind}")
            machine = self._workspace.machines.get(board)
            if machine is None:
                self._tell_lab(board, deed)
                continue
            undo = REAL_FAULTS[deed.kind](machine)
            try:
                self._over.wait(None if deed.kind == NEVER_ENDS else deed.for_s)
            finally:
                undo()

    def _tell_lab(self, board: str, deed: Deed) -> None:
        kind = FaultKind(deed.kind)
        for_s = None if kind in ENDS_ITSELF else deed.for_s
        # A moment from now: the lab answers at once and not when the fault is there.
        tell_lab(self._lab, [Fault(board=board, kind=kind, after_s=0.01, for_s=for_s)])
        self._over.wait(deed.for_s)


def cable(machine: NamespaceBoard) -> Callable[[], None]:
    machine.link_down()
    return machine.link_up


def hang(machine: NamespaceBoard) -> Callable[[], None]:
    machine.freeze()
    return machine.thaw


def reboot(machine: NamespaceBoard) -> Callable[[], None]:
    machine.reboot()
    return nothing


def full_disk(machine: NamespaceBoard) -> Callable[[], None]:
    machine.fill_disk()
    return machine.free_disk


def killing(pattern: str) -> Callable[[NamespaceBoard], Callable[[], None]]:
    """Kill the board's processes whose command line fits; there may be none."""

    def kill(machine: NamespaceBoard) -> Callable[[], None]:
        machine.console(["sh", "-c", 'pkill -KILL -f "$1" || [ $? = 1 ]', "kill", pattern])
        return nothing

    return kill


def nothing() -> None:
    """What has happened is over."""


REAL_FAULTS: Mapping[str, Callable[[NamespaceBoard], Callable[[], None]]] = {
    "cable": cable,
    NEVER_ENDS: cable,
    "sshd": killing("^sshd: jet"),
    "hang": hang,
    "reboot": reboot,
    "full_disk": full_disk,
    "payload": killing("python3 run[.]py$"),
    "agent": killing("[f]arm-agent"),
}
"""Each has the fault, and returns what ends it."""
