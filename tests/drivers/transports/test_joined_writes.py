"""Writes of one turn of the loop go out together and in order."""

import asyncio

from farm.drivers.transports.joined_writes import SMALL, JoinedWrites


class Inner(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.calls: list[bytes | str] = []

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.calls.append(bytes(data))

    def close(self) -> None:
        self.calls.append("close")

    def abort(self) -> None:
        self.calls.append("abort")

    def is_closing(self) -> bool:
        return "close" in self.calls or "abort" in self.calls


async def test_small_writes_of_one_turn_are_one() -> None:
    inner = Inner()
    joined = JoinedWrites(inner)
    joined.writelines([b"a", b"b"])
    joined.write(b"c")
    assert inner.calls == []
    await asyncio.sleep(0)
    assert inner.calls == [b"abc"]
    joined.write(b"d")
    await asyncio.sleep(0)
    assert inner.calls == [b"abc", b"d"]


async def test_large_write_goes_at_once_after_what_waits() -> None:
    inner = Inner()
    joined = JoinedWrites(inner)
    large = bytes(SMALL)
    joined.write(b"a")
    joined.write(large)
    assert inner.calls == [b"a" + large]
    joined.write(b"z")
    await asyncio.sleep(0)
    assert inner.calls == [b"a" + large, b"z"]


async def test_close_sends_first_and_abort_does_not() -> None:
    for end, expected in (("close", [b"bye", "close"]), ("abort", ["abort"])):
        inner = Inner()
        joined = JoinedWrites(inner)
        joined.write(b"bye")
        getattr(joined, end)()
        joined.write(b"too late")
        await asyncio.sleep(0)
        assert inner.calls == expected
        assert joined.is_closing()


async def test_abort_in_the_turn_after_a_last_word_lets_it_out() -> None:
    """As asyncssh says goodbye: a write, then `call_soon(transport.abort)`."""
    inner = Inner()
    joined = JoinedWrites(inner)
    joined.write(b"bye")
    asyncio.get_running_loop().call_soon(joined.abort)
    await asyncio.sleep(0)
    assert inner.calls == [b"bye", "abort"]
