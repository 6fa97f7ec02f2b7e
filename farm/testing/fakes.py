"""Small honest fakes of the drivers' interfaces, in memory and in virtual time.

They keep the interfaces' promises (idempotent start, one lease, read back after setting), so
that code tested on them meets the same rules as on equipment. `farm.testing.fake_agent` has
the board-side agent, `farm.testing.fake_clock` the clock.
"""

from collections.abc import Callable, Sequence
from math import floor

from farm.errors import BoardError, MeterError, UnsupportedPowerModeError
from farm.interfaces.clock import Clock
from farm.interfaces.meter import Meter, MeterFacts
from farm.interfaces.power_controller import PowerController
from farm.model.power_mode import (
    AppliedPowerMode,
    ClockPolicy,
    PowerMode,
    PowerModeState,
    PowerModeTable,
)
from farm.model.trace import MeterMiss, MeterReading, MissKind
from farm.testing.fake_agent import FakeBoardAgent, FakeRun
from farm.testing.fake_clock import FakeClock

__all__ = ["FakeBoardAgent", "FakeClock", "FakeMeter", "FakePowerController", "FakeRun"]


class FakeMeter(Meter):
    """A meter whose true power is a function of the clock's time; the value is held `update_s`.

    `faults` are taken one by one: each read gives the next of them instead of a number.
    `open_error` is raised by `open`. The counter integrates the held values.
    """

    def __init__(
        self,
        clock: Clock,
        power_w: Callable[[float], float],
        *,
        update_s: float = 1.0,
        facts: MeterFacts | None = None,
    ) -> None:
        self._clock, self._power_w, self._update_s = clock, power_w, update_s
        self._facts = facts or MeterFacts("Fake", "000000000000", "1.0", is_simulated=True)
        self._begin_s = clock.monotonic()
        self._counted_s = self._begin_s
        self._energy_wh = 0.0
        self.faults: list[MissKind] = []
        self.open_error: MeterError | None = None
        self.is_open = False
        self.is_output_on = True
        self.reads = 0

    async def open(self) -> MeterFacts:
        """Identify, or raise `open_error`."""
        if self.open_error is not None:
            raise self.open_error
        self.is_open = True
        return self._facts

    async def read(self) -> MeterReading | MeterMiss:
        """The value of the last refresh, or the next fault."""
        self.reads += 1
        now_s = self._clock.monotonic()
        if not self.is_open:
            return MeterMiss(now_s, MissKind.REFUSED, "not open")
        if self.faults:
            return MeterMiss(now_s, self.faults.pop(0), "scripted")
        held_s = self._held_s(now_s)
        while self._counted_s < held_s:
            self._counted_s += self._update_s
            self._energy_wh += self._power_w(self._counted_s) * self._update_s / 3600
        return MeterReading(
            sent_s=now_s,
            received_s=now_s,
            power_w=self._power_w(held_s) if self.is_output_on else 0.0,
            energy_wh=self._energy_wh,
            is_output_on=self.is_output_on,
        )

    async def close(self) -> None:
        """Close."""
        self.is_open = False

    def _held_s(self, now_s: float) -> float:
        return self._begin_s + floor((now_s - self._begin_s) / self._update_s) * self._update_s


class FakePowerController(PowerController):
    """Modes by name; `errors` are raised by `apply`, one a call, before anything is set.

    `applied` lists every (asked, clocks) that was set. Assign `state` to play a board that
    leaves its mode by itself.
    """

    def __init__(
        self, names: Sequence[str] = ("MAXN", "MAXQ"), default: str | None = None
    ) -> None:
        modes = tuple(PowerMode(name=name, id=number) for number, name in enumerate(names))
        self._table = PowerModeTable(modes=modes, default=default or names[0], digest="fake")
        self.state = PowerModeState(name=names[0], id=0)
        self.errors: list[BoardError] = []
        self.applied: list[tuple[str, ClockPolicy]] = []
        self.restored: list[PowerModeState] = []

    async def modes(self) -> PowerModeTable:
        """The table."""
        return self._table

    async def current(self) -> PowerModeState:
        """The state."""
        return self.state

    async def apply(self, asked: str, clocks: ClockPolicy) -> AppliedPowerMode:
        """Set by exact name or ``current``."""
        if self.errors:
            raise self.errors.pop(0)
        mode = self._table.by_name(self.state.name if asked == "current" else asked)
        if mode is None:
            names = ", ".join(mode.name for mode in self._table.modes)
            raise UnsupportedPowerModeError("power mode", f"no {asked!r}; there are {names}")
        wanted = PowerModeState(name=mode.name, id=mode.id, is_locked=clocks == "locked")
        has_changed = wanted != self.state
        self.state = wanted
        self.applied.append((asked, clocks))
        return AppliedPowerMode(
            asked=asked,
            name=mode.name,
            id=mode.id,
            clocks=clocks,
            has_changed=has_changed,
            read_back=wanted,
        )

    async def restore(self, original: PowerModeState) -> None:
        """Set the state as it was."""
        self.state = original
        self.restored.append(original)
