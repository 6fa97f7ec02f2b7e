import asyncio
import io
import os
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from farm.drivers import agent_tar
from farm.drivers.agent_tar import TarFeed, tar_of, tar_pieces
from farm.errors import TransferError
from farm.model.payload import Payload, PayloadFile
from tests.boardside.local_board import make_payload

FILES = {"empty": b"", "small": b"1" * 700, "d/large": os.urandom(3_000_000), "end": b"e"}


async def whole(feed: TarFeed) -> bytes:
    return b"".join([piece async for piece in feed.follow()])


def test_stream_is_what_tarfile_makes(tmp_path: Path) -> None:
    payload = make_payload(tmp_path, FILES)
    stream = b"".join(tar_pieces(payload, payload.files))
    expected = io.BytesIO()
    for file in payload.files:
        entry = tarfile.TarInfo(file.sha256)
        entry.size = file.size
        expected.write(entry.tobuf(tarfile.GNU_FORMAT))
        expected.write(FILES[file.path] + bytes(-file.size % 512))
    assert stream == expected.getvalue() + bytes(1024)


def test_size_beyond_octal_is_written_as_gnu_does() -> None:
    header = agent_tar._header("a" * 64, 8**11)
    assert tarfile.TarInfo.frombuf(header, "ascii", "strict").size == 8**11


async def test_boards_at_the_same_time_share_one_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    payload = make_payload(tmp_path, FILES)
    made: list[Payload] = []
    make = agent_tar.tar_pieces

    def counted(payload: Payload, files: Sequence[PayloadFile]) -> Iterator[bytes]:
        made.append(payload)
        return make(payload, files)

    monkeypatch.setattr(agent_tar, "tar_pieces", counted)

    async def one() -> bytes:
        async with tar_of(payload, payload.files) as feed:
            return await whole(feed)

    streams = await asyncio.gather(one(), one(), one())
    assert set(streams) == {b"".join(make(payload, payload.files))}
    assert len(made) == 1
    await one()
    assert len(made) == 2  # nothing is kept once all have it
    assert agent_tar._shared == {}


async def test_who_comes_late_gets_all_from_the_first_byte(tmp_path: Path) -> None:
    payload = make_payload(tmp_path, FILES)
    async with AsyncExitStack() as stack:
        first, second = [
            await stack.enter_async_context(tar_of(payload, payload.files)) for _ in range(2)
        ]
        assert await whole(first) == await whole(second)


async def test_larger_streams_are_not_kept_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_tar, "SHARED_LIMIT", 1_000_000)
    payload = make_payload(tmp_path, FILES)
    async with tar_of(payload, payload.files) as feed, tar_of(payload, payload.files) as other:
        assert feed is not other
        assert await whole(feed) == b"".join(tar_pieces(payload, payload.files))
        assert feed._pieces == []


async def test_unreadable_file_is_told_to_all(tmp_path: Path) -> None:
    payload = make_payload(tmp_path, FILES)
    (tmp_path / "end").unlink()

    async def one() -> None:
        async with tar_of(payload, payload.files) as feed:
            await whole(feed)

    ends = await asyncio.gather(one(), one(), return_exceptions=True)
    assert [type(end) for end in ends] == [TransferError, TransferError]
    assert agent_tar._shared == {}


async def test_one_that_gives_up_does_not_stop_the_others(tmp_path: Path) -> None:
    payload = make_payload(tmp_path, FILES)
    async with tar_of(payload, payload.files) as feed:

        async def leave() -> None:
            async for _ in feed.follow():
                return

        await leave()
        cancelled = asyncio.create_task(whole(feed))
        await asyncio.sleep(0)
        cancelled.cancel()
        assert await whole(feed) == b"".join(tar_pieces(payload, payload.files))
