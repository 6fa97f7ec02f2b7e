"""An outlet in memory, which keeps what it was told and can fail on demand."""

from collections.abc import Callable

from farm.errors import MeterError
from farm.interfaces.outlet import Outlet


class FakeOutlet(Outlet):
    """One outlet. `on_change` hears of each change; `switched` lists what it was told.

    `faults` are taken one by one, one a call of `switch`: None does as told, ``"ignored"``
    changes nothing, ``"refused"`` raises before the change, ``"unanswered"`` after it.
    """

    def __init__(self, on_change: Callable[[bool], None] | None = None) -> None:
        self.is_now_on = True
        self.switched: list[bool] = []
        self.faults: list[str | None] = []
        self._on_change = on_change

    async def is_on(self) -> bool:
        """The state."""
        return self.is_now_on

    async def switch(self, *, to_on: bool) -> bool:
        """Switch, or take the next fault."""
        fault = self.faults.pop(0) if self.faults else None
        self.switched.append(to_on)
        if fault == "refused":
            raise MeterError("switch outlet", "refused")
        if fault != "ignored" and self.is_now_on != to_on:
            self.is_now_on = to_on
            if self._on_change is not None:
                self._on_change(to_on)
        if fault == "unanswered":
            raise MeterError("switch outlet", "no answer")
        return self.is_now_on
