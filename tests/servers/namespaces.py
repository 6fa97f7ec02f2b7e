"""Real-sshd test boards in namespaces: `BoardLab` makes them and takes them away again.

    with BoardLab() as lab, lab.host_network():
        (board,) = lab.up(1)
        ...  # sockets opened here by this thread reach board.address

Needs root and Debian's openssh-server, iproute2 and util-linux; `why_unavailable` says what a
machine refuses. Several processes may each have labs: names carry the process id, and what a
killed process left behind is removed by the next one that begins.
"""

import contextlib
import fcntl
import os
import re
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.servers.namespace_board import BoardOptions, NamespaceBoard
from tests.servers.namespace_network import BoardNetwork, command, remove_namespaces

__all__ = ["BoardLab", "BoardOptions", "NamespaceBoard", "why_unavailable"]

STATE = Path("/run/farm-test-boards")
TOOLS = ("ip", "unshare", "nsenter", "mount", "chroot", "sshd", "ssh-keygen", "ssh-keyscan")
_OWNER = re.compile(r"farm(\d+)x\d+$")
_POLL_S = 0.05
_lab_numbers = count(1)


class BoardLab:
    """Boards on one private switch. `close` removes everything, also after failures."""

    def __init__(self) -> None:
        self.prefix = f"farm{os.getpid()}x{next(_lab_numbers)}"
        self.folder = STATE / self.prefix
        self.network = BoardNetwork(self.prefix)
        self._boards: list[NamespaceBoard] = []
        self._numbers = count(1)
        self._closing = threading.Event()
        self._threads = [threading.Thread(target=self._serve_reboots, daemon=True)]

    def __enter__(self) -> Self:
        remove_leftovers()
        self.folder.mkdir(parents=True)
        try:
            key = str(self.folder / "identity")
            command(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "lab", "-f", key])
            self.network.open()
        except BaseException:
            self.close()
            raise
        self._threads[0].start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def up(self, n: int, options: BoardOptions | None = None) -> list[NamespaceBoard]:
        """Make and boot `n` boards; returns when sshd answers on all of them."""
        made = []
        for number in (next(self._numbers) for _ in range(n)):
            folder = self.folder / f"board-{number}"
            board = NamespaceBoard(self.network, folder, number, options or BoardOptions())
            board.make()
            self._boards.append(board)
            made.append(board)
            board.power_on()
        for board in made:
            board.wait_until_up()
        return made

    def down(self, boards: Sequence[NamespaceBoard]) -> None:
        """Remove boards before the lab ends."""
        for board in boards:
            self._boards.remove(board)
            board.destroy()

    def host_network(self) -> AbstractContextManager[None]:
        """The calling thread, and what it starts, is at the host's place in the network."""
        return self.network.entered()

    def run_in_host_namespace(
        self, argv: Sequence[str], *, timeout_s: float = 60.0
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a program at the host's place in the network; any exit status is a result."""
        inside = ["ip", "netns", "exec", self.network.host]
        return subprocess.run(
            [*inside, *argv],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout_s,
            check=False,
        )

    def close(self) -> None:
        """Remove the boards and the network; nothing of the lab is left."""
        self._closing.set()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()
        for board in self._boards:
            board.power_off()
        self._boards.clear()
        _sweep(self.folder)

    def _serve_reboots(self) -> None:
        """Do what `reboot`, typed on a board, asks for, until the lab closes."""
        while not self._closing.wait(_POLL_S):
            for board in tuple(self._boards):
                if board.take_reboot_request():
                    thread = threading.Thread(target=board.reboot, daemon=True)
                    self._threads.append(thread)
                    thread.start()


def why_unavailable() -> str:
    """Why this machine can make no boards; "" if it can."""
    if os.geteuid() != 0:
        return "namespace boards need root"
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        return f"namespace boards need {', '.join(missing)} (see tests/prepare.py)"
    script = (
        "mount --make-rprivate / && mount -t tmpfs tmpfs /mnt && mkdir /mnt/u /mnt/w /mnt/m"
        " && mount -t overlay overlay -o lowerdir=/,upperdir=/mnt/u,workdir=/mnt/w /mnt/m"
    )
    apart = ["unshare", "--mount", "--pid", "--fork", "--uts", "--ipc", "--net"]
    try:
        command([*apart, "sh", "-c", script])
    except RuntimeError as refused:
        return f"namespaces with an overlay are refused here: {refused}"
    return ""


def remove_leftovers() -> None:
    """Remove what processes that are gone have left of their labs."""
    STATE.mkdir(parents=True, exist_ok=True)
    with _locked(STATE / "lock"):
        for folder in STATE.iterdir():
            owner = _OWNER.match(folder.name)
            if owner and not Path(f"/proc/{owner[1]}").exists():
                _sweep(folder)


def _sweep(folder: Path) -> None:
    """Kill the boards below `folder`, remove their disks and its network."""
    for path in folder.glob("board-*/machine.pid"):
        pid = int(path.read_text())
        with contextlib.suppress(OSError):
            arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            if str(path.parent).encode() in arguments:  # not another process of that number
                os.kill(pid, signal.SIGKILL)
    disks = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    for disk in disks:
        if disk.startswith(f"{folder}/"):
            command(["umount", "--lazy", disk])
    remove_namespaces(folder.name)
    shutil.rmtree(folder)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
