"""Runs in a process of their own, which outlives the terminal."""

import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from farm.errors import RunHeldError
from farm.execution.system_clock import SystemClock
from farm.pipeline.equipment import equip
from farm.pipeline.lab import Lab
from farm.pipeline.notify import open_hooks
from farm.pipeline.runs import planned_payloads
from farm.store.database import Store
from farm.store.failures import file_errors
from farm.store.locks import held_text

CONSOLE = "console.log"
START_LIMIT_S = 90.0
POLL_S = 0.05
MOST_CONSOLE_BYTES = 1024 * 1024
_LAST_WORDS = 4000
_children: dict[int, subprocess.Popen[bytes]] = {}
"""Processes that this one started: kept, so that nothing waits for them or complains."""


@dataclass(frozen=True, slots=True)
class Started:
    """`exit_code`: None while it works on the run; else it ended already, with these words."""

    pid: int
    exit_code: int | None
    last_words: str = ""


def check_run(lab: Lab, store: Store, run_id: str) -> None:
    """Raise at once what a detached process could only write to a log.

    Raises RunHeldError, ConfigError, DriverError, StoreError.
    """
    holder = store.run_holder(run_id)
    if holder is not None:
        raise RunHeldError(held_text(f"run {run_id}", holder))
    plan = store.load_plan(run_id)
    planned_payloads(lab, plan)
    equip(lab, plan, SystemClock())
    open_hooks(lab)


def detached_command(lab: Lab, run_id: str) -> list[str]:
    """What goes on with a run and prints no view."""
    root = str(lab.workspace.root.absolute())
    return [sys.executable, "-m", "farm", "resume", run_id, "--detached", "-w", root]


def start_detached(lab: Lab, store: Store, run_id: str) -> Started:
    """Start it; returns once it holds the run, or has ended. Raises StoreError."""
    path = store.run_folder(run_id) / CONSOLE
    with file_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        begin = path.stat().st_size if path.exists() else 0
        mode = "ab" if begin < MOST_CONSOLE_BYTES else "wb"
        begin = begin if mode == "ab" else 0
        with path.open(mode) as console:
            process = subprocess.Popen(
                detached_command(lab, run_id),
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=console,
                start_new_session=True,
            )
    _children[process.pid] = process
    give_up_s = time.monotonic() + START_LIMIT_S
    while True:
        code = process.poll()
        if code is not None:
            return Started(process.pid, code, _words(path, begin))
        holder = store.run_holder(run_id)
        if holder is not None and holder.pid == process.pid:
            return Started(process.pid, None)
        if time.monotonic() > give_up_s:
            process.kill()
            process.wait()
            text = f"it did not take the run within {START_LIMIT_S:.0f} s\n"
            return Started(process.pid, 1, text + _words(path, begin))
        time.sleep(POLL_S)


def _words(path: Path, begin: int) -> str:
    with file_errors(path), path.open("rb") as file:
        file.seek(max(begin, path.stat().st_size - _LAST_WORDS))
        return file.read(_LAST_WORDS).decode("utf-8", "replace").strip()
