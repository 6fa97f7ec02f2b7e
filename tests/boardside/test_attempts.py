import asyncio
import json
import os
import signal
from pathlib import Path

import pytest

from farm.errors import AgentError, LinkLostError, TransferError
from tests.boardside.local_board import Bench, job, until


def started_times(board: Bench, attempt_id: str) -> int:
    return len(board.path(attempt_id, "artifacts/count").read_bytes())


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


COUNT = "printf x >>$FARM_OUT/count; "


async def test_start_is_idempotent(board: Bench) -> None:
    payload = await board.push({"run.sh": COUNT + "while ! test -e go; do sleep 0.02; done"})
    first = await board.agent.start(job("a1", payload))
    again = await board.agent.start(job("a1", payload))
    assert (first.phase, again.phase) == ("running", "running")
    board.path("a1", "work/go").touch()
    exited = await board.exit_of("a1")
    late = await board.agent.start(job("a1", payload))
    assert (late.phase, late.exit) == ("finished", exited)
    assert started_times(board, "a1") == 1


async def test_unknown_attempt_is_absent(board: Bench) -> None:
    assert (await board.agent.status("nobody")).phase == "absent"
    assert (await board.agent.wait("nobody")).phase == "absent"


@pytest.mark.parametrize("hostile", ["../x", "a/b", "", ".", "..", ".x", "a\n", "a b", "a" * 300])
async def test_hostile_ids_are_refused(board: Bench, hostile: str) -> None:
    payload = await board.push({"run.sh": "exit 0"})
    with pytest.raises(AgentError, match="not an attempt id"):
        await board.agent.start(job(hostile, payload))
    with pytest.raises(AgentError, match="not an attempt id"):
        await board.agent.status(hostile)
    assert list((board.work / "attempts").iterdir()) == []


async def test_start_without_payload_can_be_repaired(board: Bench) -> None:
    payload = await board.push({"run.sh": "exit 0"})
    assert await board.agent.ensure_payload(payload) is False
    # Root can write through the hard link; the next start must not run what nobody sent.
    script = board.work / "payloads" / payload.digest / "run.sh"
    script.chmod(0o644)
    script.write_text("exit 9")
    with pytest.raises(TransferError, match="is not here"):
        await board.agent.start(job("a1", payload))
    assert (await board.agent.status("a1")).phase == "absent"
    assert await board.agent.ensure_payload(payload) is True
    await board.agent.start(job("a1", payload))
    assert (await board.exit_of("a1")).exit_status == 0


async def test_payload_cannot_change_its_folder_by_its_working_directory(board: Bench) -> None:
    script = "echo $FARM_PAYLOAD; rm data; echo new >data; echo extra >extra; ls;"
    script += "stat -c %a $FARM_PAYLOAD"
    payload = await board.push({"run.sh": script, "data": "old"})
    await board.agent.start(job("a1", payload))
    said = (await board.files_of(await board.exit_of("a1")))["stdout.log"].decode().split("\n")
    assert said[1:] == ["data", "extra", "run.sh", "555", ""]
    assert names_in(Path(said[0])) == ["data", "run.sh"]
    assert (Path(said[0]) / "data").read_text() == "old"


async def test_environment_and_params_reach_the_payload(board: Bench) -> None:
    script = 'echo "$FARM_ATTEMPT $SPEED $PWD"; cat $FARM_PARAMS'
    fields = {"environment": {"SPEED": "7"}, "params": {"b": [1, None], "a": "ü"}}
    exited = await board.run_script("a1", script, **fields)
    first, params = (await board.files_of(exited))["stdout.log"].decode().split("\n")
    assert first == f"a1 7 {board.path('a1', 'work')}"
    assert json.loads(params) == {"a": "ü", "b": [1, None]}


@pytest.mark.parametrize(
    "fields",
    [
        {"argv": ()},
        {"argv": ("a\0b",)},
        {"environment": {"A=B": "c"}},
        {"time_limit_s": "soon"},
        {"artifacts": (1,)},
    ],
)
async def test_malformed_jobs_are_refused(board: Bench, fields: dict[str, object]) -> None:
    payload = await board.push({"run.sh": "exit 0"})
    with pytest.raises(AgentError, match="bad_request"):
        await board.agent.start(job("a1", payload, **fields))
    assert (await board.agent.status("a1")).phase == "absent"


async def test_killed_agent_leaves_the_attempt_and_the_next_one_finds_it(board: Bench) -> None:
    script = COUNT + "echo begun; while ! test -e go; do sleep 0.02; done; echo done"
    await board.start_script("a1", script)
    waiting = asyncio.create_task(board.agent.wait("a1"))
    await until(lambda: board.log("a1"), "it runs")
    os.kill(board.transport.streams[0].pid, signal.SIGKILL)
    with pytest.raises(LinkLostError):
        await waiting
    await board.agent.close()

    await board.open()
    assert [each.phase for each in await board.agent.list_attempts()] == ["running"]
    waiting = asyncio.create_task(board.agent.wait("a1"))
    board.path("a1", "work/go").touch()
    exited = (await waiting).exit
    assert exited is not None
    assert exited.exit_status == 0
    assert (await board.files_of(exited))["stdout.log"] == b"begun\ndone\n"
    assert started_times(board, "a1") == 1


async def test_cut_link_leaves_the_attempt(board: Bench) -> None:
    await board.start_script("a1", "while ! test -e go; do sleep 0.02; done; echo done")
    board.transport.cut()
    with pytest.raises(LinkLostError):
        await board.agent.status("a1")
    board.path("a1", "work/go").touch()
    await until(lambda: board.path("a1", "exit.json").exists(), "the supervisor records the end")
    await board.agent.close()
    await board.transport.connect()
    await board.open()
    assert (await board.exit_of("a1")).exit_status == 0


async def test_half_made_attempt_is_lost_once_it_is_old(board: Bench) -> None:
    board.path("young", "").mkdir()
    board.path("old", "").mkdir()
    os.utime(board.path("old", ""), (1e9, 1e9))
    assert (await board.agent.status("young")).phase == "running"
    assert (await board.agent.status("old")).phase == "lost"
    assert (await board.agent.wait("old")).phase == "lost"


async def test_attempt_of_another_boot_is_lost(tmp_path: Path, board: Bench) -> None:
    await board.start_script("a1", "sleep 1000")
    about = board.path("a1", "job.json")
    fields = json.loads(about.read_bytes())
    about.write_text(json.dumps({**fields, "boot_id": "earlier"}))
    status = await board.agent.status("a1")
    assert (status.phase, status.boot_id) == ("lost", "earlier")
    about.write_text(json.dumps(fields))
    await board.agent.stop("a1")
    assert (await board.exit_of("a1")).ended_by == "stop"


async def test_remove_takes_finished_attempts_and_spares_running_ones(board: Bench) -> None:
    await board.run_script("done", "mkdir $FARM_OUT/d; touch $FARM_OUT/d/f; chmod 555 $FARM_OUT/d")
    await board.start_script("runs", "sleep 1000")
    await board.agent.remove(["done", "runs", "never-there"])
    await until(lambda: not board.path("done", "").exists(), "the finished one is removed")
    assert [each.attempt_id for each in await board.agent.list_attempts()] == ["runs"]
    await board.agent.stop("runs")
    await board.exit_of("runs")


async def test_remove_travels_with_the_next_start(board: Bench) -> None:
    await board.run_script("a1", "exit 0")
    await board.agent.remove(["a1"])
    await board.run_script("a2", "exit 0")
    await until(lambda: not board.path("a1", "").exists(), "the first is removed")
    assert board.path("a2", "exit.json").exists()


async def test_close_removes_what_was_to_be_removed(board: Bench) -> None:
    await board.run_script("a1", "exit 0")
    await board.agent.remove(["a1"])
    await board.agent.close()
    assert not board.path("a1", "").exists()


async def test_artifacts_stay_inside_and_links_are_not_followed(board: Bench) -> None:
    script = (
        "cd $FARM_OUT; ln -s /etc/passwd link; ln -s /etc dir; mkfifo pipe; mkdir s; echo ok >s/f;"
        " touch \"$(printf 'new\\nline')\" \"$(printf 'bad\\377')\""
    )
    exited = await board.run_script("a1", script, artifacts=("**", "../../../job.json"))
    files = await board.files_of(exited)
    assert sorted(files) == ["artifacts/s/f", "skipped.json", "stderr.log", "stdout.log"]
    reasons = {each["path"]: each["reason"] for each in json.loads(files["skipped.json"])}
    assert reasons["link"] == reasons["dir"] == "a symbolic link"
    assert reasons["pipe"] == "no regular file"
    assert "not kept" in reasons["new\\nline"]
    assert "not kept" in reasons["bad\\udcff"]


@pytest.mark.parametrize("path", ["../a2/job.json", "/etc/passwd", "artifacts/link", "a//b"])
async def test_files_outside_an_attempt_are_not_read(board: Bench, path: str) -> None:
    await board.run_script("a1", "ln -s /etc/passwd $FARM_OUT/link")
    got: list[bytes] = []
    with pytest.raises(AgentError, match="bad_request"):
        await board.agent.follow("a1", path, got.append)
    assert got == []


async def test_events_replaced_by_a_link_are_not_read(board: Bench) -> None:
    exited = await board.run_script("a1", "ln -s /etc/passwd $FARM_EVENTS")
    assert [file.path for file in exited.files] == ["stdout.log", "stderr.log"]
