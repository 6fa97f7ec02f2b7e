"""The fan of a Jetson: who turns it, how fast, held at a duty and given back.

Up to L4T R32 the kernel's own control turns it (``temp_control``), with its duty in
``target_pwm``; from R34 on the service nvfancontrol, with the duty in a ``pwm1`` of hwmon. Tried
on simulated boards, not on a real Jetson yet. Duties are 255ths. Reading needs no root.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from farm.drivers.power_modes.root import require_root, run_as_root
from farm.errors import PowerModeError, UnsupportedPowerModeError
from farm.interfaces.agent import BoardCommands
from farm.interfaces.transport import CommandResult
from farm.model.power_mode import FanPolicy, RestoreStep

OLD = "/sys/devices/pwm-fan"
NEW = "/sys/devices/platform/pwm-fan/hwmon"
MOST_HWMON = 10
"""Numbers of hwmon that are looked for: they change with the order of the drivers at boot."""
SERVICE = "nvfancontrol"
AUTO = "auto"
FULL = 255
LIMIT_S = 30.0
TEE, SYSTEMCTL = "/usr/bin/tee", "/bin/systemctl"
ALLOW = (
    f"{TEE} {OLD}/temp_control",
    f"{TEE} {OLD}/target_pwm",
    f"{TEE} {NEW}/hwmon[0-9]/pwm1",
    f"{SYSTEMCTL} stop {SERVICE}",
    f"{SYSTEMCTL} start {SERVICE}",
)
"""What sudo must allow for sweeps that set the fan."""

SUDO_REMEDY = (
    "`farm boards sudoers --with-fan` prints the file that lets the board's user do this."
)

_HELD = re.compile(r"held (\d{1,3})")
_STEP = "set the fan"


@dataclass(frozen=True, slots=True)
class _Fan:
    """One fan: the file of its duty, and whether the kernel controls it (else a service)."""

    duty: str
    is_kernels: bool


class JetsonFan:
    """The fan of one Jetson. States are texts: ``auto``, ``held N``, "" where there is none."""

    def __init__(self, commands: BoardCommands) -> None:
        self._commands = commands
        self._found: _Fan | None = None  # of this boot: the numbers of hwmon change with it

    async def state(self) -> str:
        """Who turns it: ``auto`` while the board itself does, else ``held`` and the duty."""
        fan = await self._find()
        return "" if fan is None else await self._state(fan)

    async def hold(self, policy: FanPolicy) -> None:
        """Hold it at a duty, read back. Raises UnsupportedPowerModeError, PowerModeError."""
        if policy == "default":
            return
        fan = await self._find()
        if fan is None:
            raise UnsupportedPowerModeError(_STEP, "the board has no fan that can be set")
        await self._put(fan, f"held {FULL if policy == 'max' else policy}")

    async def restore(self, state: str) -> None:
        """Put back what `state` told; read back."""
        fan = await self._find()
        if fan is not None and (state == AUTO or _HELD.fullmatch(state)):
            await self._put(fan, state)

    async def steps(self, state: str) -> Sequence[RestoreStep]:
        """The commands that put `state` back."""
        fan = await self._find()
        if fan is None or not (state == AUTO or _HELD.fullmatch(state)):
            return ()
        return _steps(fan, state)

    async def _put(self, fan: _Fan, wanted: str) -> None:
        if await self._state(fan) == wanted:
            return
        told = ""
        for step in _steps(fan, wanted):
            result = await run_as_root(
                self._commands, step.argv, timeout_s=LIMIT_S, stdin=step.stdin.encode()
            )
            require_root(result, _STEP, SUDO_REMEDY)
            told = _said(result) or told
        now = await self._state(fan)
        if now != wanted:
            told = f" (it said: {told})" if told else ""
            raise PowerModeError(_STEP, f"the fan is {now}, not {wanted}{told}")

    async def _find(self) -> _Fan | None:
        if self._found is None:
            paths = [f"{OLD}/target_pwm", *(f"{NEW}/hwmon{n}/pwm1" for n in range(MOST_HWMON))]
            for path in paths:
                if await self._number(path) is not None:
                    self._found = _Fan(path, is_kernels=path.startswith(OLD))
                    break
        return self._found

    async def _state(self, fan: _Fan) -> str:
        if fan.is_kernels:
            is_auto = await self._number(f"{OLD}/temp_control") != 0
        else:
            result = await self._commands.run(["systemctl", "is-active", SERVICE])
            is_auto = result.text.strip() == "active"
        return AUTO if is_auto else f"held {await self._number(fan.duty)}"

    async def _number(self, path: str) -> int | None:
        text = (await self._commands.read_text(path) or "").strip()
        return int(text) if text.isdecimal() and len(text) < len("10000") else None


def _steps(fan: _Fan, state: str) -> tuple[RestoreStep, ...]:
    """Who controls it is told first: its control would overwrite the duty."""
    held = _HELD.fullmatch(state)
    if fan.is_kernels:
        control = _write(f"{OLD}/temp_control", "0" if held else "1")
    else:
        argv = ("systemctl", "stop" if held else "start", SERVICE)
        control = RestoreStep(argv=argv, needs_root=True, timeout_s=LIMIT_S)
    return (control, _write(fan.duty, held[1])) if held else (control,)


def _write(path: str, value: str) -> RestoreStep:
    argv = ("tee", path)
    return RestoreStep(argv=argv, needs_root=True, stdin=f"{value}\n", timeout_s=LIMIT_S)


def _said(result: CommandResult) -> str:
    return result.error_text.strip()[:200]
