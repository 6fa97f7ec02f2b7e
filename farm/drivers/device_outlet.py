"""What all outlets do alike: switch, read back, and a time limit for both."""

from abc import ABC, abstractmethod

from farm.drivers.meter_dialogue import Dialogue, NoReading
from farm.interfaces.outlet import Outlet
from farm.model.board import MeterSpec


class DeviceOutlet(Outlet, ABC):
    """Connected when it is used and closed after. A driver implements the three below."""

    def __init__(self, spec: MeterSpec) -> None:
        self._spec = spec
        self._dialogue = Dialogue(spec, self._disconnect)

    @abstractmethod
    async def _set(self, *, to_on: bool) -> None:
        """Ask for the state. Raises NoReading, OSError, ValueError."""

    @abstractmethod
    async def _state(self) -> bool:
        """The state as the device tells it. Raises NoReading, OSError, ValueError."""

    @abstractmethod
    async def _disconnect(self) -> None:
        """Drop what is connected; never raises."""

    async def is_on(self) -> bool:
        """Read the state. Raises MeterError."""
        return await self._use(to_on=None)

    async def switch(self, *, to_on: bool) -> bool:
        """Switch, read back, return what was read. Raises MeterError."""
        return await self._use(to_on=to_on)

    async def _use(self, *, to_on: bool | None) -> bool:
        self._dialogue.is_open = True
        try:
            if to_on is not None:
                wanted = to_on
                await self._dialogue.ask(lambda: self._set(to_on=wanted))
            return await self._dialogue.ask(self._state)
        except NoReading as miss:
            step = "read outlet" if to_on is None else "switch outlet"
            raise self._dialogue.error(step, miss) from miss
        finally:
            await self._dialogue.close()
