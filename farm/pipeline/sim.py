"""The simulated lab as a process of its own."""

import asyncio
import logging
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from farm.errors import FarmError
from farm.pipeline.lab import Lab
from farm.simulation.fault_control import FaultControl
from farm.simulation.lab import SimulatedLab

UP_LIMIT_S = 60.0
DOWN_LIMIT_S = 30.0
POLL_S = 0.05
_children: dict[int, subprocess.Popen[bytes]] = {}
"""Labs that this process started, to be reaped when it stops them; others outlive it."""


def lab_root(lab: Lab) -> Path:
    """Where the simulated boards keep their files."""
    return lab.workspace.root / ".farm" / "sim"


def _pid_file(lab: Lab) -> Path:
    return lab_root(lab) / "pid"


def _running_pid(lab: Lab) -> int | None:
    """The pid of the lab's process, if it lives: a pid file alone may be of another life."""
    try:
        pid = int(_pid_file(lab).read_text())
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except (OSError, ValueError):
        return None
    return pid if b"serve" in command and str(lab.workspace.root).encode() in command else None


def lab_is_up(lab: Lab) -> bool:
    """True while the lab of this workspace runs and is ready."""
    return _running_pid(lab) is not None and (lab_root(lab) / "ready").exists()


def start_lab(lab: Lab) -> int:
    """Start the lab of this workspace unless it is up; returns its pid. Raises FarmError."""
    running = _running_pid(lab)
    if running is not None and lab_is_up(lab):
        return running
    if not any(board.simulation for board in lab.inventory.boards):
        raise FarmError("no board of the inventory has a `simulation` section")
    root = lab_root(lab)
    root.mkdir(parents=True, exist_ok=True)
    (root / "ready").unlink(missing_ok=True)
    command = [sys.executable, "-m", "farm", "sim", "serve", "-w", str(lab.workspace.root)]
    with (root / "log").open("ab") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    _pid_file(lab).write_text(str(process.pid))
    give_up_s = time.monotonic() + UP_LIMIT_S
    while not (root / "ready").exists():
        if process.poll() is not None or time.monotonic() > give_up_s:
            process.kill()
            process.wait()
            last = (root / "log").read_text("utf-8", "replace").strip().splitlines()[-1:]
            raise FarmError(f"the simulated lab did not start: {' '.join(last)} (see {root}/log)")
        time.sleep(POLL_S)
    _children[process.pid] = process
    return process.pid


def stop_lab(lab: Lab) -> bool:
    """Stop the lab of this workspace; False if it was not up. Raises FarmError."""
    pid = _running_pid(lab)
    if pid is None:
        return False
    os.kill(pid, signal.SIGTERM)
    give_up_s = time.monotonic() + DOWN_LIMIT_S
    while _is_alive(pid):
        if time.monotonic() > give_up_s:
            raise FarmError(f"the simulated lab (pid {pid}) does not stop")
        time.sleep(POLL_S)
    _pid_file(lab).unlink(missing_ok=True)
    _children.pop(pid, None)
    return True


def _is_alive(pid: int) -> bool:
    """Also reaps the process when it is our child."""
    if pid in _children:
        return _children[pid].poll() is None
    try:
        return b") Z " not in Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False


async def serve_lab(lab: Lab) -> None:
    """Be the lab until SIGTERM or SIGINT."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    # Under nohup SIGHUP is ignored, and the boards' commands would inherit that: what must end
    # with its SSH session would stay.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    ready = lab_root(lab) / "ready"
    _log_to_stderr()
    root = lab_root(lab)
    async with (
        SimulatedLab(lab.inventory, lab.profiles, root) as served,
        FaultControl(served.faults, root),
    ):
        ready.touch()
        await stop.wait()
        ready.unlink(missing_ok=True)


def _log_to_stderr() -> None:
    """What the lab does, with its time: `start_lab` has stderr in the lab's `log`."""
    lines = logging.StreamHandler()
    lines.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    log = logging.getLogger("farm.simulation")
    log.addHandler(lines)
    log.setLevel(logging.INFO)
    log.propagate = False
