import json
import os
from pathlib import Path

import pytest

from farm.drivers.agent import open_agent
from farm.errors import AgentError, TransferError
from tests.boardside.local_board import Bench, bench, job, local_board, make_payload, small_disk


def receives(board: Bench) -> int:
    return sum("receive" in argv for argv in board.transport.argvs)


async def test_payload_is_sent_once(board: Bench, tmp_path: Path) -> None:
    payload = make_payload(tmp_path / "p", {"run.sh": "exit 0", "lib/a.py": "", "b.py": ""})
    assert await board.agent.ensure_payload(payload) is True
    assert await board.agent.ensure_payload(payload) is False
    await board.agent.close()
    await board.open()
    assert await board.agent.ensure_payload(payload) is False
    assert receives(board) == 1


async def test_second_trial_costs_no_request(
    board: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    payload = make_payload(tmp_path / "p", {"run.sh": "exit 0"})
    await board.agent.ensure_payload(payload)
    monkeypatch.setattr(board.agent._channel, "request", None)
    assert await board.agent.ensure_payload(payload) is False


async def test_only_what_is_missing_is_sent(board: Bench, tmp_path: Path) -> None:
    await board.agent.ensure_payload(make_payload(tmp_path / "p", {"a": "same", "b": "old"}))
    second = make_payload(tmp_path / "p", {"a": "same", "b": "new"})
    (tmp_path / "p/a").unlink()  # the board has it: nobody reads it here
    assert await board.agent.ensure_payload(second) is True
    assert (board.work / "payloads" / second.digest / "a").read_text() == "same"


async def test_executable_bit_is_kept_beside_the_same_content_without(
    board: Bench, tmp_path: Path
) -> None:
    files = {"run": "#!/bin/sh\necho ran\n", "copy": "#!/bin/sh\necho ran\n"}
    payload = make_payload(tmp_path / "p", files, executable="run")
    await board.agent.ensure_payload(payload)
    await board.agent.start(job("a1", payload, argv=("./run",)))
    assert (await board.files_of(await board.exit_of("a1")))["stdout.log"] == b"ran\n"
    assert not os.access(board.work / "payloads" / payload.digest / "copy", os.X_OK)


async def test_file_that_changed_on_the_host_is_refused(board: Bench, tmp_path: Path) -> None:
    payload = make_payload(tmp_path / "p", {"run.sh": "exit 0"})
    (tmp_path / "p/run.sh").write_text("exit 1")
    with pytest.raises(TransferError, match="not what was announced"):
        await board.agent.ensure_payload(payload)
    assert list((board.work / "blobs").iterdir()) == []
    (tmp_path / "p/run.sh").write_text("longer than before")
    with pytest.raises(TransferError, match=r"run\.sh changed"):
        await board.agent.ensure_payload(payload)
    (tmp_path / "p/run.sh").unlink()
    with pytest.raises(TransferError, match=r"cannot read run\.sh"):
        await board.agent.ensure_payload(payload)
    (tmp_path / "p/run.sh").write_text("exit 0")
    assert await board.agent.ensure_payload(payload) is True


@pytest.mark.parametrize("path", ["../out", "/abs", "a/../b", ""])
async def test_payload_paths_stay_inside(board: Bench, tmp_path: Path, path: str) -> None:
    payload = make_payload(tmp_path / "p", {"x": "1"})
    file = payload.files[0].model_copy(update={"path": path})
    hostile = payload.model_copy(update={"files": (file,), "folder": tmp_path / "p"})
    (tmp_path / "p" / "out").write_text("1")
    await board.agent.ensure_payload(payload)  # the content is there: only the folder is built
    with pytest.raises(AgentError, match="not a path inside"):
        await board.agent.ensure_payload(hostile.model_copy(update={"digest": "3" * 64}))
    assert not (board.work / "payloads" / ("3" * 64)).exists()


async def test_damage_is_seen_after_a_reboot(tmp_path: Path) -> None:
    root = tmp_path / "root/proc/sys/kernel/random"
    root.mkdir(parents=True)
    (root / "boot_id").write_text("one")
    async with bench(tmp_path, root_prefix=str(tmp_path / "root")) as board:
        payload = make_payload(tmp_path / "p", {"run.sh": "exit 0", "other": "kept"})
        await board.agent.ensure_payload(payload)
        await board.agent.close()
        # What a power cut does: the name and time are there, the content is not.
        script = board.work / "payloads" / payload.digest / "run.sh"
        times = script.stat()
        script.chmod(0o644)
        script.write_text("\0\0\0\0\0\0")
        script.chmod(0o444)
        os.utime(script, ns=(times.st_atime_ns, times.st_mtime_ns))
        (root / "boot_id").write_text("two")
        await board.open()
        assert await board.agent.ensure_payload(payload) is True
        assert script.read_text() == "exit 0"
        marker = json.loads(script.parent.with_name(payload.digest + ".json").read_bytes())
        assert marker["boot_id"] == "two"


async def test_stored_file_of_an_earlier_boot_is_hashed_before_it_is_used_again(
    tmp_path: Path,
) -> None:
    root = tmp_path / "root/proc/sys/kernel/random"
    root.mkdir(parents=True)
    (root / "boot_id").write_text("one")
    async with bench(tmp_path, root_prefix=str(tmp_path / "root")) as board:
        await board.agent.ensure_payload(make_payload(tmp_path / "p", {"shared": "good"}))
        await board.agent.close()
        (blob,) = (board.work / "blobs").iterdir()
        times = blob.stat()
        blob.chmod(0o644)
        blob.write_text("torn")
        blob.chmod(0o444)
        os.utime(blob, ns=(times.st_atime_ns, times.st_mtime_ns))
        (root / "boot_id").write_text("two")
        await board.open()
        other = make_payload(tmp_path / "q", {"shared": "good", "own": "1"})
        with pytest.raises(TransferError):
            await board.agent.ensure_payload(other)
        assert await board.agent.ensure_payload(other) is True
        assert (board.work / "payloads" / other.digest / "shared").read_text() == "good"


async def test_receive_refuses_what_is_no_tar(board: Bench) -> None:
    argv = board.agent._pusher._receive_argv if board.agent._pusher else ()
    for junk in (b"junk" * 1000, b""):
        result = await board.transport.run(argv, timeout_s=30, stdin=junk)
        answer = json.loads(result.stdout)
        assert not answer["ok"] or answer["files"] == 0


async def test_disk_full_while_receiving_is_told(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "2m") as disk:
        async with bench(tmp_path, work_dir=f"{disk}/farm") as board:
            payload = make_payload(tmp_path / "p", {"big": os.urandom(30_000_000)})
            with pytest.raises(TransferError, match="disk is full"):
                await board.agent.ensure_payload(payload)
            assert (await board.agent.exchange_clock()).board_s > 0


async def test_two_agents_share_one_cache(board: Bench, tmp_path: Path) -> None:
    payload = make_payload(tmp_path / "p", {"run.sh": "exit 0"})
    other = await open_agent(board.transport, local_board())
    await board.agent.ensure_payload(payload)
    assert await other.ensure_payload(payload) is False
    await other.close()
