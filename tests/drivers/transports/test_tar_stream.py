"""The tar stream, read back by Python's tarfile."""

import hashlib
import io
import tarfile
from pathlib import Path

import pytest

from farm.drivers.transports.tar_stream import PIECE, pieces_of, tar_stream


def read(stream: bytes) -> dict[str, tuple[bytes, int]]:
    with tarfile.open(fileobj=io.BytesIO(stream)) as tar:
        found = {}
        for member in tar.getmembers():
            file = tar.extractfile(member)
            assert file is not None
            found[member.name] = file.read(), member.mode
        return found


def test_members_folders_and_sums(tmp_path: Path) -> None:
    tool = tmp_path / "tool"
    tool.write_bytes(b"#!")
    tool.chmod(0o700)
    long = "n" * 150
    members = read(b"".join(tar_stream({"a/b/x": b"one", "tool": tool, f"a/b/{long}": b""})))
    assert members["0/x"] == (b"one", 0o644)
    assert members["1/tool"] == (b"#!", 0o755)
    assert members[f"0/{long}"] == (b"", 0o644)
    assert members["folders"][0] == b"a/b\n.\n"
    sums = [line.split("  ") for line in members["sums"][0].decode().splitlines()]
    assert sums[0] == [hashlib.sha256(b"one").hexdigest(), "0/x"]
    assert [name for _, name in sums] == ["0/x", "1/tool", f"0/{long}"]


def test_sums_come_last() -> None:
    """A stream that was cut has none, so that nothing of it is used."""
    assert list(read(b"".join(tar_stream({"x": b"1"}))))[-1] == "sums"


def test_small_files_share_a_piece_and_large_ones_are_cut() -> None:
    pieces = list(tar_stream({"large": bytes(4 * PIECE), "a": b"a", "b": b"b"}))
    assert len(pieces) == 5
    assert all(len(piece) <= 2 * PIECE for piece in pieces)


def test_file_that_shrinks_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"12345")
    with pytest.raises(OSError, match="shorter"):
        list(pieces_of(path, exactly=6))


def test_file_that_grows_is_cut_to_the_size_that_was_told(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"12345")
    assert b"".join(pieces_of(path, exactly=3)) == b"123"
