"""Files that a full disk of the host keeps from being written: kept waiting, not lost."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from farm.errors import StoreFullError
from farm.interfaces.sinks import Journal

T = TypeVar("T")


async def with_room(journal: Journal, action: Callable[[], Awaitable[T]]) -> T:
    """Do `action`, which may be repeated, again whenever there is room once more.

    Raises StoreFullError when that was waited for long enough.
    """
    while True:
        try:
            return await action()
        except StoreFullError as full:
            await journal.room(full)
