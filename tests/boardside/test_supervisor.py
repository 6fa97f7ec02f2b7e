import asyncio
import fcntl
import json
import os
import signal
from functools import partial
from pathlib import Path

import pytest

from farm.interfaces.agent import AttemptExit
from tests.boardside.local_board import (
    PATIENCE_S,
    Bench,
    bench,
    is_process,
    small_disk,
    until,
)


@pytest.mark.parametrize("status", [0, 1, 77, 255])
async def test_exit_status_is_told(board: Bench, status: int) -> None:
    exited = await board.run_script("a1", f"exit {status}")
    assert (exited.ended_by, exited.exit_status, exited.signal) == ("exit", status, None)
    assert exited.begin_s <= exited.end_s


async def test_death_by_signal_is_told(board: Bench) -> None:
    exited = await board.run_script("a1", "kill -SEGV $$")
    assert (exited.ended_by, exited.exit_status, exited.signal) == ("signal", None, 11)


async def test_a_program_that_is_absent_is_a_start_fault(board: Bench) -> None:
    exited = await board.run_script("a1", "", argv=("no-such-program", "x"))
    assert exited.ended_by == "start"
    assert exited.exit_status is None
    assert "no-such-program: No such file or directory" in exited.message


async def test_stdout_stderr_and_artifacts_come_with_the_end(board: Bench) -> None:
    script = "echo out; echo err >&2; cd $FARM_OUT; mkdir d; printf x >d/r.json; echo >o"
    exited = await board.run_script("a1", script, artifacts=("**/*.json",))
    files = await board.files_of(exited)
    assert files["stdout.log"] == b"out\n"
    assert files["stderr.log"] == b"err\n"
    assert files["artifacts/d/r.json"] == b"x"
    assert json.loads(files["skipped.json"]) == [
        {"path": "o", "reason": "no artifact by the payload's manifest"}
    ]


async def test_stdin_is_closed(board: Bench) -> None:
    exited = await board.run_script("a1", "cat; read x || echo end")
    assert (await board.files_of(exited))["stdout.log"] == b"end\n"


async def test_time_limit_ends_the_payload(board: Bench) -> None:
    exited = await board.run_script("a1", "echo begun; sleep 1000", time_limit_s=0.3)
    assert exited.ended_by == "timeout"
    assert "0.3 s" in exited.message
    assert (await board.files_of(exited))["stdout.log"] == b"begun\n"


async def test_time_limit_kills_who_ignores_sigterm(board: Bench) -> None:
    script = "trap '' TERM; echo $$; while :; do sleep 0.1; done"
    exited = await board.run_script("a1", script, time_limit_s=0.3)
    assert (exited.ended_by, exited.signal) == ("timeout", signal.SIGKILL)
    pid = int((await board.files_of(exited))["stdout.log"])
    assert not is_process(pid)


async def test_stop_ends_the_payload_and_its_children(board: Bench) -> None:
    await board.start_script("a1", "sleep 1000 & echo $!; exec sleep 1000")
    await until(lambda: board.log("a1"), "the child's id is told")
    await board.agent.stop("a1")
    exited = await board.exit_of("a1")
    assert (exited.ended_by, exited.message) == ("stop", "asked to stop")
    assert not is_process(int((await board.files_of(exited))["stdout.log"]))


async def test_payload_that_forks_and_hangs_ends(board: Bench) -> None:
    # The background child holds stdout, left the session, and has a new parent.
    script = "setsid sh -c 'echo $$ >$FARM_OUT/pid; exec sleep 1000' &\n"
    script += "while ! test -s $FARM_OUT/pid; do :; done; echo done"
    exited = await board.run_script("a1", script, artifacts=("pid",))
    files = await board.files_of(exited)
    assert (exited.ended_by, exited.exit_status) == ("exit", 0)
    assert files["stdout.log"] == b"done\n"
    assert not is_process(int(files["artifacts/pid"]))


async def test_memory_limit_ends_the_payload(board: Bench) -> None:
    script = "exec python3 -c 'x = bytearray(300 << 20); import time; time.sleep(1000)'"
    exited = await board.run_script("a1", script, memory_limit_mb=100)
    assert exited.ended_by == "memory"
    assert "more than 100 MB" in exited.message


async def test_memory_limit_leaves_the_modest_alone(board: Bench) -> None:
    exited = await board.run_script("a1", "sleep 0.5", memory_limit_mb=100)
    assert (exited.ended_by, exited.exit_status) == ("exit", 0)


async def test_100_mb_of_output_are_bounded_and_the_cut_is_told(board: Bench) -> None:
    script = "echo first; yes 0123456789abcde | head -c 104857600; echo last"
    exited = await board.run_script("a1", script, output_limit=1_000_000)
    record = exited.files[0]
    log = (await board.files_of(exited))["stdout.log"]
    assert record.cut_bytes == 6 + 104857600 + 5 - 1_000_000
    assert log.startswith(b"first\n")
    assert log.endswith(b"last\n")
    assert f"\n[farm: {record.cut_bytes} bytes left out here]\n".encode() in log
    assert len(log) == record.size < 1_000_100


async def test_output_between_half_and_whole_limit_is_kept_whole(board: Bench) -> None:
    exited = await board.run_script("a1", "seq 1 1500", output_limit=8000)
    log = (await board.files_of(exited))["stdout.log"]
    assert log.split() == [str(n).encode() for n in range(1, 1501)]
    assert exited.files[0].cut_bytes == 0


async def test_payload_volunteers_for_the_oom_killer(board: Bench) -> None:
    exited = await board.run_script("a1", "cat /proc/self/oom_score_adj")
    assert (await board.files_of(exited))["stdout.log"] == b"500\n"


async def test_payload_has_default_signals(board: Bench) -> None:
    # Python ignores SIGPIPE; a payload that inherited that would never end in `yes | head`.
    exited = await board.run_script("a1", "grep SigIgn /proc/self/status")
    ignored = int((await board.files_of(exited))["stdout.log"].split()[1], 16)
    wanted = (signal.SIGPIPE, signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
    assert [number for number in wanted if ignored & 1 << number - 1] == []


async def test_board_shutdown_is_no_failure_of_the_payload(board: Bench) -> None:
    await board.start_script("a1", "echo $$; exec sleep 1000")
    await until(lambda: board.log("a1"), "it runs")
    lock = json.loads(board.path("a1", "lock").read_bytes())
    os.kill(lock["pid"], signal.SIGTERM)
    os.kill(int(board.path("a1", "stdout.log").read_bytes()), signal.SIGTERM)
    async with asyncio.timeout(PATIENCE_S):
        assert (await board.agent.wait("a1")).phase == "lost"


async def test_end_is_not_told_before_the_lock_is_free(board: Bench) -> None:
    # A dying supervisor's pipe to the agent may close before its lock does.
    await board.start_script("a1", "echo up; exec sleep 1000")
    await until(lambda: board.log("a1"), "it runs")
    waiting = asyncio.create_task(board.agent.wait("a1"))
    with board.path("a1", "lock").open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        os.kill(json.loads(lock.read())["pid"], signal.SIGKILL)
        done, _ = await asyncio.wait([waiting], timeout=0.5)
        assert not done
    async with asyncio.timeout(PATIENCE_S):
        assert (await waiting).phase == "lost"


async def test_a_lost_attempt_takes_nothing_of_another_work_folder_along(tmp_path: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
    async with bench(tmp_path / "one") as one, bench(tmp_path / "other") as other:
        for each in (one, other):
            await each.start_script("a1", "echo up; exec sleep 1000")
            await until(partial(each.log, "a1"), "it runs")
        os.kill(json.loads(one.path("a1", "lock").read_bytes())["pid"], signal.SIGKILL)
        async with asyncio.timeout(PATIENCE_S):
            assert (await one.agent.wait("a1")).phase == "lost"
        assert (await other.agent.status("a1")).phase == "running"
        await other.agent.stop("a1")
        assert (await other.exit_of("a1")).ended_by == "stop"


async def test_sigterm_from_elsewhere_is_told_as_a_signal(board: Bench) -> None:
    exited = await board.run_script("a1", "kill -TERM $$")
    assert (exited.ended_by, exited.signal) == ("signal", signal.SIGTERM)


async def test_killed_supervisor_is_lost_and_takes_the_payload_along(board: Bench) -> None:
    await board.start_script("a1", "setsid sleep 1000 & echo $! $$; sleep 1000")
    await until(lambda: board.log("a1"), "it runs")
    pids = [int(pid) for pid in board.path("a1", "stdout.log").read_bytes().split()]
    os.kill(json.loads(board.path("a1", "lock").read_bytes())["pid"], signal.SIGKILL)
    assert (await board.agent.wait("a1")).phase == "lost"
    await until(lambda: not any(is_process(pid) for pid in pids), "nothing of it is left")


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("yes", "No space left"),
        ("head -c 8000000 /dev/zero >$FARM_OUT/big 2>/dev/null || exit 3", "exit status 3 while"),
    ],
)
async def test_full_disk_is_told_with_a_whole_record(
    tmp_path: Path, script: str, said: str
) -> None:
    with small_disk(tmp_path / "disk", "3m") as disk:
        async with bench(tmp_path, work_dir=f"{disk}/farm") as board:
            limit = 64 * 1024 * 1024
            exited = await board.run_script("a1", script, output_limit=limit, artifacts=("**",))
            assert exited.ended_by == "full"
            assert said in exited.message
            assert isinstance(exited, AttemptExit)
            assert "stdout.log" in await board.files_of(exited)
