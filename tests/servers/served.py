"""What tests serve on loopback: up inside of ``async with``, down behind it."""

from abc import ABC, abstractmethod
from typing import Self


class Served(ABC):
    """An async context manager that goes down whatever happened inside."""

    @abstractmethod
    async def come_up(self) -> None:
        """Answer from when this returns."""

    @abstractmethod
    async def go_down(self) -> None:
        """Nothing of it is left when this returns, not even what hung."""

    async def __aenter__(self) -> Self:
        await self.come_up()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.go_down()
