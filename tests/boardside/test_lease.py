import json

import pytest

from farm.errors import LeaseHeldError
from tests.boardside.local_board import Bench


async def test_lease_is_taken_renewed_and_given_back(board: Bench) -> None:
    first = await board.agent.take_lease("run1", "host:1", 60)
    again = await board.agent.take_lease("run1", "host:1", 60)
    assert again.expires_s >= first.expires_s
    assert first.boot_id == board.agent.fingerprint.boot_id
    assert await board.agent.show_lease() == again
    await board.agent.release_lease("run1")
    assert await board.agent.show_lease() is None


async def test_another_run_is_refused_and_told_who_holds_it(board: Bench) -> None:
    await board.agent.take_lease("run1", "night@lab", 60)
    seen = r"run run1 of night@lab holds the board for \d+ s more \(until \d\d:\d\d:\d\d"
    with pytest.raises(LeaseHeldError, match=seen):
        await board.agent.take_lease("run2", "x", 60)
    await board.agent.release_lease("run2")
    lease = await board.agent.show_lease()
    assert lease is not None
    assert lease.run_id == "run1"


@pytest.mark.parametrize("change", [{"expires_s": 0.0}, {"boot_id": "earlier"}])
async def test_expired_lease_and_one_of_another_boot_are_void(
    board: Bench, change: dict[str, object]
) -> None:
    await board.agent.take_lease("run1", "x", 60)
    file = board.work / "lease.json"
    file.write_text(json.dumps({**json.loads(file.read_bytes()), **change}))
    assert (await board.agent.take_lease("run2", "y", 60)).run_id == "run2"


async def test_damaged_lease_is_void(board: Bench) -> None:
    (board.work / "lease.json").write_text("{")
    assert (await board.agent.take_lease("run2", "y", 60)).run_id == "run2"
