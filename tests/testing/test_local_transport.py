import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from farm.errors import CommandTimeoutError, LinkLostError, TransferError
from farm.testing.local_transport import LocalTransport
from tests.boardside.local_board import until


@pytest.fixture
async def transport(tmp_path: Path) -> AsyncIterator[LocalTransport]:
    async with LocalTransport(tmp_path, {"SHADE": "blue"}) as made:
        yield made


async def test_run_tells_any_status(transport: LocalTransport) -> None:
    script = 'read x; echo "$x $SHADE $HOME"; echo err >&2; exit 5'
    result = await transport.run(["sh", "-c", script], timeout_s=30, stdin=b"in\n")
    assert result.exit_status == 5
    assert result.text == f"in blue {transport.home}\n"
    assert result.error_text == "err\n"
    assert (await transport.run(["sh", "-c", "kill -9 $$"], timeout_s=30)).exit_status == -9
    assert (await transport.run(["no-such-program"], timeout_s=30)).exit_status == 127


async def test_run_has_a_time_limit(transport: LocalTransport) -> None:
    with pytest.raises(CommandTimeoutError):
        await transport.run(["sleep", "1000"], timeout_s=0.1)


async def test_stream_echoes_and_tells_its_end_once(transport: LocalTransport) -> None:
    got, lost = bytearray(), []
    stream = await transport.stream(["cat"], got.extend, on_lost=lambda: lost.append(1))
    data = b"x" * 1_000_000
    stream.write(data)
    await stream.drain()
    stream.end_input()
    assert await stream.wait(30) == 0
    assert (bytes(got), lost) == (data, [1])
    with pytest.raises(LinkLostError):
        stream.write(b"more")


async def test_cut_is_never_a_success(transport: LocalTransport) -> None:
    lost: list[int] = []
    stream = await transport.stream(["cat"], lambda _: None, on_lost=lambda: lost.append(1))
    running = asyncio.create_task(transport.run(["sleep", "1000"], timeout_s=30))
    await until(lambda: len(transport.streams) == 2, "both run")
    transport.cut()
    with pytest.raises(LinkLostError):
        await stream.wait(30)
    with pytest.raises(LinkLostError):
        await running
    with pytest.raises(LinkLostError):
        await transport.run(["true"], timeout_s=30)
    assert lost == [1]
    assert not transport.is_connected
    await transport.connect()
    assert (await transport.run(["true"], timeout_s=30)).exit_status == 0


async def test_put_and_get(transport: LocalTransport, tmp_path: Path) -> None:
    source = tmp_path / "tool"
    source.write_text("#!/bin/sh\necho ran\n")
    source.chmod(0o755)
    await transport.put({"d/a": b"bytes", "tool": source}, "~/put", timeout_s=30)
    assert (tmp_path / "put/d/a").read_bytes() == b"bytes"
    ran = await transport.run([str(tmp_path / "put/tool")], timeout_s=30)
    assert ran.text == "ran\n"
    await transport.get("~/put/d/a", tmp_path / "back", timeout_s=30)
    assert (tmp_path / "back").read_bytes() == b"bytes"
    with pytest.raises(TransferError):
        await transport.get("~/none", tmp_path / "none", timeout_s=30)
    with pytest.raises(TransferError, match="outside"):
        await transport.put({"../../x": b""}, "~/put", timeout_s=30)
