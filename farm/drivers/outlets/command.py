"""Programs of your own that switch: one for on, one for off, one that prints the state.

In the inventory::

    relay-3:
      kind: command
      options:
        argv: [/usr/local/bin/read-watts, "3"]
        on_argv: [/usr/local/bin/relay, "3", "on"]
        off_argv: [/usr/local/bin/relay, "3", "off"]
        state_argv: [/usr/local/bin/relay, "3"]       # prints on or off, or 1 or 0

The state is always read back by ``state_argv``: an exit status proves nothing.
"""

from farm.drivers.command_options import CommandOptions
from farm.drivers.device_outlet import DeviceOutlet
from farm.drivers.meter_dialogue import NoReading, brief
from farm.drivers.meter_process import output
from farm.model.board import MeterSpec
from farm.model.trace import MissKind

_STATES = {"on": True, "1": True, "true": True, "off": False, "0": False, "false": False}


class CommandOutlet(DeviceOutlet):
    """Three programs."""

    Options = CommandOptions

    def __init__(self, spec: MeterSpec, options: CommandOptions, secret: str | None) -> None:
        super().__init__(spec)
        self._options, self._secret = options, secret

    async def _set(self, *, to_on: bool) -> None:
        argv = self._options.on_argv if to_on else self._options.off_argv
        await output(_given(argv, "on_argv" if to_on else "off_argv"), self._secret)

    async def _state(self) -> bool:
        printed = await output(_given(self._options.state_argv, "state_argv"), self._secret)
        state = _STATES.get(printed.strip().lower())
        if state is None:
            raise NoReading(MissKind.PROTOCOL, f"neither on nor off: {brief(printed)!r}")
        return state

    async def _disconnect(self) -> None:
        """Nothing is kept."""


def _given(argv: tuple[str, ...], name: str) -> tuple[str, ...]:
    if not argv:
        raise NoReading(MissKind.NO_DATA, f"options.{name} is not given")
    return argv
