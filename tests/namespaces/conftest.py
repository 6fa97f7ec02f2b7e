"""Boards for the tests of this folder. The test's own thread is at the host's place meanwhile."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.servers.namespaces import BoardLab, BoardOptions, NamespaceBoard, why_unavailable


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests in this folder need namespaces; none may take long that does not say so."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.namespaces)
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(60))


@pytest.fixture(scope="session")
def lab() -> Iterator[BoardLab]:
    """A lab without boards. Skips where it cannot be made; fails instead where CI=true."""
    reason = why_unavailable()
    if reason and os.environ.get("CI") == "true":
        pytest.fail(reason)
    if reason:
        pytest.skip(reason)
    with BoardLab() as opened:
        yield opened


@pytest.fixture
def make_board(lab: BoardLab) -> Iterator[Callable[[BoardOptions], NamespaceBoard]]:
    """Boards of the test's own; its sockets are in their network."""
    made: list[NamespaceBoard] = []

    def make(options: BoardOptions) -> NamespaceBoard:
        made.extend(lab.up(1, options))
        return made[-1]

    with lab.host_network():
        yield make
    lab.down(made)


@pytest.fixture
def board(make_board: Callable[[BoardOptions], NamespaceBoard]) -> NamespaceBoard:
    """An ordinary board of the test's own."""
    return make_board(BoardOptions())
