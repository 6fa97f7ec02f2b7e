import hashlib
import os
from dataclasses import replace
from pathlib import Path

import pytest

from farm.drivers.agent_collect import PIECE, checked_path
from farm.errors import StoreError, TransferError
from farm.interfaces.agent import AttemptExit
from farm.model.attempt import FileRecord
from tests.boardside.local_board import Bench

HOSTILE = ["/etc/x", "../x", "a/../../x", "", ".", "a//b", "a/", "a\\b", "a\nb", "a\0b", "./a"]


@pytest.mark.parametrize("path", HOSTILE)
def test_hostile_paths_are_refused(path: str) -> None:
    with pytest.raises(TransferError, match="hostile path"):
        checked_path(path)


async def test_small_files_need_no_request(board: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    exited = await board.run_script("a1", "echo hi; printf x >$FARM_OUT/r", artifacts=("r",))
    monkeypatch.setattr(board.agent._channel, "post", None)
    assert (await board.files_of(exited))["artifacts/r"] == b"x"


async def test_large_files_come_in_pieces(board: Bench) -> None:
    size = 9 * PIECE + 17
    script = f"head -c {size} /dev/urandom >$FARM_OUT/big; sha256sum $FARM_OUT/big; : >$FARM_OUT/e"
    exited = await board.run_script("a1", script, artifacts=("*",))
    files = await board.files_of(exited)
    assert len(files["artifacts/big"]) == size
    sha256 = hashlib.sha256(files["artifacts/big"]).hexdigest()
    assert files["stdout.log"].split()[0].decode() == sha256
    assert files["artifacts/e"] == b""
    left = [path.name for path in (board.folder / "collected").rglob("*.part")]
    assert left == []


async def test_file_that_changed_since_is_refused(board: Bench, tmp_path: Path) -> None:
    script = "head -c 200000 /dev/zero >$FARM_OUT/big"
    exited = await board.run_script("a1", script, artifacts=("*",))
    big = board.path("a1", "artifacts/big")
    big.write_bytes(b"x" + big.read_bytes()[1:])
    with pytest.raises(TransferError, match="not what the board recorded"):
        await board.agent.collect(exited, tmp_path / "out")
    os.truncate(big, 1000)
    with pytest.raises(TransferError, match="has 1000 bytes, not 200000"):
        await board.agent.collect(exited, tmp_path / "out")
    assert not (tmp_path / "out/artifacts/big").exists()


async def test_nothing_is_written_outside(board: Bench, tmp_path: Path) -> None:
    exited = await board.run_script("a1", "exit 0")
    evil = FileRecord(path="../evil", size=0, sha256=hashlib.sha256().hexdigest())
    lied: AttemptExit = replace(exited, files=(evil,))
    with pytest.raises(TransferError, match="hostile path"):
        await board.agent.collect(lied, tmp_path / "out")
    assert not (tmp_path / "evil").exists()
    twice = replace(exited, files=exited.files + exited.files)
    with pytest.raises(TransferError, match="twice"):
        await board.agent.collect(twice, tmp_path / "out")


async def test_collect_after_reconnect_fetches_again(board: Bench) -> None:
    exited = await board.run_script("a1", "echo hi")
    await board.agent.close()
    await board.open()
    assert (await board.files_of(exited))["stdout.log"] == b"hi\n"


async def test_host_folder_that_cannot_be_written_is_told(board: Bench, tmp_path: Path) -> None:
    exited = await board.run_script("a1", "echo hi")
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"cannot write here.*farm resume"):
        await board.agent.collect(exited, tmp_path / "file" / "out")
