"""A local board for the tests of the agent."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.boardside.local_board import Bench, bench


@pytest.fixture
async def board(tmp_path: Path) -> AsyncIterator[Bench]:
    async with bench(tmp_path) as made:
        yield made
