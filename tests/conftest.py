"""For all tests: what the process that started pytest left behind must not decide them."""

import signal
from pathlib import Path

import pytest

# Signals that are ignored stay so in every process that a test starts: SIGHUP under nohup, SIGINT
# and SIGQUIT in a shell's background job. What must end by them would stay.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)

_NIGHTS = Path(__file__).parent / "night"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files first: a worker that begins one at the end keeps the other waiting."""
    items.sort(key=lambda item: _NIGHTS not in item.path.parents)
    for item in items:
        if _NIGHTS in item.path.parents and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(400))  # dozens of processes each
