import json
import os
import signal

from tests.boardside.local_board import Bench, is_process, job, until


def supervisor_of(board: Bench, attempt_id: str) -> int:
    return int(json.loads(board.path(attempt_id, "lock").read_bytes())["pid"])


WAIT = "echo $$; while ! test -e go; do sleep 0.02; done"


async def test_a_supervisor_runs_one_attempt_after_another(board: Bench) -> None:
    first = await board.run_script("a1", "echo $SPEED; exit 3", environment={"SPEED": "7"})
    second = await board.run_script("a2", 'echo "none:$SPEED"', argv=("sh", "run.sh"))
    assert (first.exit_status, second.exit_status) == (3, 0)
    assert (await board.files_of(second))["stdout.log"] == b"none:\n"
    assert supervisor_of(board, "a1") == supervisor_of(board, "a2")


async def test_attempts_side_by_side_have_a_supervisor_each(board: Bench) -> None:
    for name in ("a1", "a2"):
        await board.start_script(name, WAIT)
    await until(lambda: board.log("a1") and board.log("a2"), "both run")
    pids = [supervisor_of(board, name) for name in ("a1", "a2")]
    assert pids[0] != pids[1]
    for name in ("a1", "a2"):
        board.path(name, "work/go").touch()
        assert (await board.exit_of(name)).exit_status == 0
    await until(lambda: sum(is_process(pid) for pid in pids) == 1, "one is enough to stand by")


async def test_the_signal_of_an_earlier_stop_stops_nothing(board: Bench) -> None:
    await board.start_script("a1", "sleep 1000")
    await board.agent.stop("a1")
    assert (await board.exit_of("a1")).ended_by == "stop"
    await board.start_script("a2", WAIT)
    await until(lambda: board.log("a2"), "it runs")
    os.kill(supervisor_of(board, "a2"), signal.SIGUSR1)  # late
    board.path("a2", "work/go").touch()
    assert (await board.exit_of("a2")).ended_by == "exit"


async def test_a_supervisor_that_was_killed_while_it_stood_by_is_replaced(board: Bench) -> None:
    await board.run_script("a1", "exit 0")
    pid = supervisor_of(board, "a1")
    os.kill(pid, signal.SIGKILL)
    await until(lambda: not is_process(pid), "it is gone")
    assert (await board.run_script("a2", "exit 0")).exit_status == 0
    assert supervisor_of(board, "a2") != pid


async def test_a_supervisor_that_stands_by_ends_with_its_agent(board: Bench) -> None:
    await board.run_script("a1", "exit 0")
    pid = supervisor_of(board, "a1")
    await board.agent.close()
    await until(lambda: not is_process(pid), "it is gone")


async def test_the_guard_kills_what_a_killed_supervisor_leaves(board: Bench) -> None:
    # No agent, and processes that dropped their environment: nobody else would find them.
    await board.start_script("a1", "env -i setsid sleep 1000 & echo $! $$; sleep 1000")
    await until(lambda: board.log("a1").endswith(b"\n"), "it runs")
    pids = [int(pid) for pid in board.log("a1").split()]
    await board.agent.close()
    os.kill(supervisor_of(board, "a1"), signal.SIGKILL)
    await until(lambda: not any(is_process(pid) for pid in pids), "nothing of it is left")


async def test_a_working_folder_is_used_again_only_as_it_was_made(board: Bench) -> None:
    script = 'ls; cat data; case "$1" in spoil) echo new >x;; swap) ln -sf /etc/passwd data;; esac'
    payload = await board.push({"run.sh": script, "data": "old\n"})
    for number, how in enumerate(["", "", "spoil", "swap", "", ""]):
        name = f"a{number}"
        await board.agent.start(job(name, payload, argv=("sh", "run.sh", how)))
        files = await board.files_of(await board.exit_of(name))
        assert files["stdout.log"] == b"data\nrun.sh\nold\n"
        await board.agent.remove([name])
        await board.agent.start(job(f"{name}-next", payload))  # takes the removal along
        await board.exit_of(f"{name}-next")
        await until(lambda: not list((board.work / "trash").iterdir()), "it is swept")
        is_kept = (board.work / "spare" / payload.digest[:12]).is_dir()
        assert is_kept == (how == "")
