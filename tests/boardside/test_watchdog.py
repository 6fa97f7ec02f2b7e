"""The board puts itself back when its host is gone: a real agent, a simulated Jetson."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from farm.drivers.power_modes.nvpmodel import NvpmodelPowerController
from farm.errors import AgentError, BoardRestoringError
from farm.interfaces.agent import KeptRestore
from farm.model.board import Board
from farm.model.power_mode import RestoreStep
from tests.boardside.local_board import PATIENCE_S, Bench, bench, is_process, until
from tests.simulation.board_shell import SHIPPED, BoardShell, boot_board

SHORT_S = 0.3
PWM = "sys/devices/pwm-fan/target_pwm"


def writes(path: Path, text: str = "done") -> RestoreStep:
    return RestoreStep(argv=("tee", str(path)), stdin=text)


async def guard_of(board: Bench) -> int:
    """The process that watches, once it told who it is."""
    lock = board.work / "watchdog.lock"
    await until(lambda: lock.read_bytes().endswith(b"}"), "the process tells its pid")
    return int(json.loads(lock.read_bytes())["pid"])


async def let_run_out(board: Bench, run_id: str) -> None:
    """Shorten the run's lease and have the process on the board look at it."""
    await board.agent.take_lease(run_id, "night@lab", SHORT_S)
    await board.agent.release_lease("nobody")  # changes nothing, and wakes it


async def done(board: Bench) -> KeptRestore:
    """What the board did by itself, once it did."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            kept = await board.agent.kept_restore()
            if kept is not None and kept.done is not None:
                return kept
            await asyncio.sleep(0.02)


async def test_a_lease_that_runs_out_is_followed_by_the_restore_once(board: Bench) -> None:
    target, again = board.folder / "target", board.folder / "again"
    await board.agent.take_lease("run1", "night@lab", 600)
    steps = [
        RestoreStep(argv=("sh", "-c", f"echo x >> {again}")),
        writes(target),
        RestoreStep(argv=("sh", "-c", "echo no; exit 1"), expects="yes"),
        RestoreStep(argv=("sh", "-c", "exit 1"), may_fail=True),
        RestoreStep(argv=("no-such-command",)),
    ]
    await board.agent.keep_restore("run1", steps)
    guard = await guard_of(board)
    await let_run_out(board, "run1")
    await board.agent.close()  # the host is gone
    await until(target.exists, "the target is written")
    await until(lambda: not is_process(guard), "the process ends")
    await board.open()
    kept = await done(board)
    assert kept.done is not None
    assert (kept.run_id, kept.holder, kept.is_watched) == ("run1", "night@lab", False)
    assert [one.is_good for one in kept.done.results] == [True, True, False, True, False]
    assert [one.exit_status for one in kept.done.results] == [0, 0, 1, 1, 127]
    assert (kept.done.results[2].said, kept.is_pending) == ("no", True)
    assert (target.read_text(), again.read_text()) == ("done", "x\n")
    assert await board.agent.show_lease() is None
    assert kept.steps == tuple(steps)


async def test_whoever_comes_while_it_restores_is_told_to_wait(board: Bench) -> None:
    gate = board.folder / "gate"
    os.mkfifo(gate)
    await board.agent.take_lease("run1", "x", 600)
    step = RestoreStep(argv=("sh", "-c", f"read line < {gate}; echo $line"), expects="open")
    await board.agent.keep_restore("run1", [step])
    await let_run_out(board, "run1")
    lease = board.work / "lease.json"
    await until(lambda: b'"watchdog"' in lease.read_bytes(), "the board takes its own lease")
    with pytest.raises(BoardRestoringError, match="puts itself back"):
        await board.agent.take_lease("run1", "x", 60)
    await asyncio.to_thread(gate.write_text, "open\n")
    kept = await done(board)
    assert not kept.is_pending


async def test_a_renewed_lease_holds_it_off_and_two_never_watch(board: Bench) -> None:
    target = board.folder / "target"
    await board.agent.take_lease("run1", "x", 300)
    await board.agent.keep_restore("run1", [writes(target)])
    await board.agent.take_lease("run1", "x", 600)
    guard = await guard_of(board)
    await board.agent.release_lease("nobody")  # wakes it
    await board.agent.close()
    await board.open()  # a resumed run
    await board.agent.take_lease("run1", "x", 600)
    await board.agent.keep_restore("run1", [writes(target)])
    kept = await board.agent.kept_restore()
    assert kept is not None
    assert (kept.is_watched, kept.done, await guard_of(board)) == (True, None, guard)
    assert not target.exists()
    await board.agent.drop_restore("run1")
    await board.agent.release_lease("run1")
    await until(lambda: not is_process(guard), "the process ends with the lease")
    assert await board.agent.kept_restore() is None
    assert not target.exists()


async def test_a_lease_given_back_without_a_restore_is_acted_on_at_once(board: Bench) -> None:
    await board.agent.take_lease("run1", "x", 600)
    await board.agent.keep_restore("run1", [writes(board.folder / "target")])
    await board.agent.release_lease("run1")
    assert not (await done(board)).is_pending


async def test_a_running_payload_is_let_finish_first(board: Bench) -> None:
    order = board.folder / "order"
    gate = board.folder / "gate"
    os.mkfifo(gate)
    await board.agent.take_lease("run1", "x", 600)
    script = f"read line < {gate}; echo payload >> {order}"
    await board.start_script("a1", script, time_limit_s=60.0)
    await board.agent.keep_restore(
        "run1", [RestoreStep(argv=("sh", "-c", f"echo restore >> {order}"))]
    )
    await board.agent.release_lease("run1")
    await asyncio.to_thread(gate.write_text, "go\n")
    await done(board)
    assert order.read_text().split() == ["payload", "restore"]


async def test_without_the_lease_nothing_is_kept(board: Bench) -> None:
    with pytest.raises(AgentError, match="run run1 has no lease"):
        await board.agent.keep_restore("run1", [writes(board.folder / "target")])
    assert await board.agent.kept_restore() is None


async def test_a_list_of_an_earlier_boot_is_told_and_left_alone(board: Bench) -> None:
    target = board.folder / "target"
    await board.agent.take_lease("run1", "x", 600)
    await board.agent.keep_restore("run1", [writes(target)])
    guard, file = await guard_of(board), board.work / "restore.json"
    for path in (file, board.work / "lease.json"):
        path.write_text(json.dumps({**json.loads(path.read_bytes()), "boot_id": "earlier"}))
    await board.agent.release_lease("nobody")  # wakes it: to it the board has booted anew
    await until(lambda: not is_process(guard), "the process ends")
    kept = await board.agent.kept_restore()
    assert kept is not None
    assert (kept.is_pending, kept.is_watched, kept.done) == (True, False, None)
    assert not target.exists()


@asynccontextmanager
async def jetson(folder: Path, profile: str) -> AsyncIterator[tuple[Bench, BoardShell]]:
    """An agent among the files and tools of a simulated Jetson."""
    board = Board.model_validate({"name": "j", "profile": profile, "host": "h", "user": "u"})
    shell = boot_board(board, folder / "root", SHIPPED[profile])
    environment = {
        "FARM_ROOT": str(shell.root),
        "PATH": f"{shell.root}/bin:/usr/bin:/bin",
        "FARM_SIM_BOARD": "j",
    }
    async with bench(folder, environment, root_prefix=str(shell.root)) as made:
        yield made, shell


async def test_mode_clocks_and_fan_come_back_on_a_jetson(tmp_path: Path) -> None:
    async with jetson(tmp_path, "jetson-tx2") as (board, shell):
        controller = NvpmodelPowerController(board.agent, SHIPPED["jetson-tx2"])
        found = await controller.current()
        found = found.model_copy(
            update={"detail": {**found.detail, "fan": await controller.fan_state()}}
        )
        await board.agent.take_lease("run1", "x", 600)
        await board.agent.keep_restore("run1", await controller.restore_steps(found))
        applied = await controller.apply("MAXQ", "locked")
        await controller.set_fan("max")
        assert applied.read_back.is_locked
        assert (await controller.fan_state(), shell.file(PWM)) == ("held 255", "255")
        await let_run_out(board, "run1")
        kept = await done(board)
        assert not kept.is_pending, kept.done
        state = await controller.current()
        assert (state.name, state.is_locked) == (found.name, False)
        assert await controller.fan_state() == "auto"
