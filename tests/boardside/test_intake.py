"""The board's own reader of tar streams, against archives that Python's tarfile makes."""

import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import cast

import pytest

from farm.drivers.agent_bundle import receive_argv
from tests.boardside.local_board import local_board

BOARDSIDE = Path(__file__).parents[2] / "farm/boardside"
EDGES = (0, 1, 511, 512, 513, 1024 * 1024 - 512, 1024 * 1024 + 1, 3_000_000)


def archive(contents: Iterable[bytes], kind: int = tarfile.GNU_FORMAT) -> bytes:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w", format=kind) as tar:
        for content in contents:
            entry = tarfile.TarInfo(hashlib.sha256(content).hexdigest())
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return target.getvalue()


def receive(work: Path, *parts: bytes) -> Mapping[str, object]:
    argv = receive_argv(local_board(python=sys.executable), str(BOARDSIDE), str(work))
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, umask=0o077) as run:
        assert run.stdin is not None
        for part in parts:
            os.write(run.stdin.fileno(), part)
        answer, _ = run.communicate(timeout=60)
    return cast("Mapping[str, object]", json.loads(answer))


def stored(work: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (work / "blobs").iterdir()}


@pytest.mark.parametrize("kind", [tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT])
def test_files_of_every_length_arrive(tmp_path: Path, kind: int) -> None:
    contents = [os.urandom(size) for size in EDGES]
    answer = receive(tmp_path, archive(contents, kind))
    assert answer == {"farm": "received", "ok": True, "files": len(EDGES), "bytes": sum(EDGES)}
    expected = {hashlib.sha256(content).hexdigest(): content for content in contents}
    assert stored(tmp_path) == expected
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "blobs").iterdir()} == {0o444}


def test_stream_may_come_in_small_pieces(tmp_path: Path) -> None:
    stream = archive([b"first", os.urandom(700), b""])
    answer = receive(tmp_path, *(stream[at : at + 7] for at in range(0, len(stream), 7)))
    assert answer["files"] == 3


def test_file_that_is_not_what_its_name_says_is_told_and_not_kept(tmp_path: Path) -> None:
    stream = archive([b"one", b"two"]).replace(b"one", b"ONE")
    answer = receive(tmp_path, stream)
    bad = hashlib.sha256(b"one").hexdigest()
    assert answer["error"] == {
        "kind": "hash",
        "text": "1 files are not what was announced",
        "missing": [bad],
    }
    assert list(stored(tmp_path).values()) == [b"two"]


def test_stream_that_ends_early_leaves_only_whole_files(tmp_path: Path) -> None:
    stream = archive([b"whole", os.urandom(5000)])
    answer = receive(tmp_path, stream[:3000])
    assert cast("dict[str, str]", answer["error"])["kind"] == "io"
    assert list(stored(tmp_path).values()) == [b"whole"]


def damaged(stream: bytes, at: int, value: bytes) -> bytes:
    return stream[:at] + value + stream[at + len(value) :]


def test_what_is_no_plain_file_with_a_hash_for_a_name_is_refused(tmp_path: Path) -> None:
    link = tarfile.TarInfo("a" * 64)
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    named = tarfile.TarInfo("../" * 20 + "out1")
    longer = tarfile.TarInfo("a" * 65)
    for entry, kind in ((link, "bad_request"), (named, "bad_request"), (longer, "bad_request")):
        answer = receive(tmp_path, entry.tobuf(tarfile.GNU_FORMAT) + bytes(1024))
        assert cast("dict[str, str]", answer["error"])["kind"] == kind
    good = archive([b"content"])
    for bad in (damaged(good, 3, b"~"), damaged(good, 124, b"9"), damaged(good, 148, b"junk")):
        answer = receive(tmp_path, bad)
        assert "damaged" in cast("dict[str, str]", answer["error"])["text"]
    assert stored(tmp_path) == {}
