"""Finding, measuring and ending the processes of a board."""

import asyncio
import os
import sys
import time
from pathlib import Path

import pytest

from farm.simulation.board_processes import BoardProcesses, board_marks, is_alive
from tests.simulation.lab_client import until

SPIN = "while True: pass"
SPIN_IN_A_THREAD = (
    "import threading; threading.Thread(target=exec, args=('while True: pass',)).start()"
)


async def start(code: str, name: str, root: Path) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, env=board_marks(name, root)
    )


@pytest.mark.parametrize("code", [SPIN, SPIN_IN_A_THREAD])
async def test_busy_cores_are_of_the_marked_board_only(tmp_path: Path, code: str) -> None:
    processes = BoardProcesses()
    processes.watch("one", tmp_path)
    processes.watch("two", tmp_path)
    child = await start(code, "one", tmp_path)

    def is_busy() -> bool:
        processes.refresh(time.monotonic())
        # It wants one core, whoever else wants it; reading times shift a little of it.
        return 0.8 < processes.busy_cores("one") < 1.2

    await until(is_busy)
    assert processes.busy_cores("two") == 0.0
    assert processes.count == 1
    await processes.end("two")
    assert is_alive(child.pid)
    await processes.end("one")
    assert await child.wait() == -9
    processes.refresh(time.monotonic())
    assert processes.busy_cores("one") == 0.0
    assert processes.count == 0


async def test_who_keeps_a_core_busy_makes_way_and_who_waits_does_not(tmp_path: Path) -> None:
    processes = BoardProcesses()
    processes.watch("one", tmp_path)
    busy = await start(SPIN, "one", tmp_path)
    idle = await start("import time; time.sleep(600)", "one", tmp_path)

    def has_made_way() -> bool:
        processes.refresh(time.monotonic())
        return os.getpriority(os.PRIO_PROCESS, busy.pid) > 0

    before = os.getpriority(os.PRIO_PROCESS, idle.pid)
    await until(has_made_way)
    assert os.getpriority(os.PRIO_PROCESS, idle.pid) == before
    await processes.end("one")
    await asyncio.gather(busy.wait(), idle.wait())


async def test_the_same_name_in_another_lab_is_another_board(tmp_path: Path) -> None:
    processes = BoardProcesses()
    processes.watch("one", tmp_path / "a")
    child = await start(SPIN, "one", tmp_path / "b")
    await processes.end("one")
    assert is_alive(child.pid)
    child.kill()
    await child.wait()
    assert not is_alive(child.pid)
