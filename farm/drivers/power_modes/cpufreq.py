"""Boards whose operating modes are the CPU frequency governors: a Raspberry Pi, a Linux PC.

In a device profile::

    power_controller: cpufreq

Modes are the governors that all CPUs offer (performance, schedutil, ondemand, powersave ...),
each with the whole range of frequencies and all cores online, and ``default``: as the board was
found. ``maxn`` is performance, ``maxq`` the lowest frequency. Locked clocks are the mode's top
as least and most. Every file that is written is read back. What was found is kept in a file
under /run until it is put back. Tried on a simulated /sys, not on a real board yet.
"""

import asyncio
from collections.abc import Mapping, Sequence

from farm.drivers.power_modes.cpu_list import parse_cpu_list
from farm.drivers.power_modes.cpufreq_state import (
    CUSTOM,
    DEFAULT,
    CpuState,
    Policy,
    Setting,
    maxq_name,
    mode_names,
    mode_table,
    name_of,
    state_fields,
    state_of_fields,
    wanted_state,
)
from farm.drivers.power_modes.root import require_root, run_as_root, sudoers_remedy
from farm.errors import PowerModeError, UnsupportedPowerModeError
from farm.interfaces.agent import BoardCommands
from farm.interfaces.power_controller import PowerController, UnattendedController
from farm.model.mode_words import resolve_mode
from farm.model.power_mode import (
    AppliedPowerMode,
    ClockPolicy,
    PowerModeState,
    PowerModeTable,
    RestoreStep,
)
from farm.model.profile import BoardProfile

CPU = "/sys/devices/system/cpu"
STORE = "/run/farm-cpufreq.conf"
"""What was found, for as long as it is changed. /run is root's and empty after a boot, when the
kernel's own setting is back too."""
WRITE_LIMIT_S = 10.0
MOST_CORES = 1024
TEE = "/usr/bin/tee"
ALLOW = (
    *(
        f"{TEE} {CPU}/cpufreq/policy{digits}/scaling_{file}"
        for digits in ("[0-9]", "[0-9][0-9]")
        for file in ("governor", "min_freq", "max_freq")
    ),
    *(f"{TEE} {CPU}/cpu{digits}/online" for digits in ("[0-9]", "[0-9][0-9]")),
    f"{TEE} {STORE}",
)
"""What sudo must allow. No ``*``: it would let further file names through."""


class CpufreqPowerController(PowerController, UnattendedController):
    """Governors, frequency ranges and online cores of one board."""

    def __init__(self, commands: BoardCommands, profile: BoardProfile) -> None:
        self._commands, self._profile = commands, profile

    async def modes(self) -> PowerModeTable:
        """What the kernel offers. Raises PowerModeError when it has no cpufreq."""
        policies, cores = await self._policies(), await self._cores()
        found = await self._found()
        return mode_table(policies, cores, name_of(found, found, policies, cores))

    async def current(self) -> PowerModeState:
        """The mode by its settings; `detail` holds them for `restore`."""
        policies, cores = await self._policies(), await self._cores()
        state = await self._state(policies)
        name = name_of(state, await self._found(state), policies, cores)
        return PowerModeState(name=name, is_locked=state.is_locked, detail=state_fields(state))

    async def apply(self, asked: str, clocks: ClockPolicy) -> AppliedPowerMode:
        """Resolve, keep what was found, set file by file, read all back."""
        table, before = await self.modes(), await self.current()
        name = await self._resolve(asked, table, before)
        state = await self._state(await self._policies())
        wanted = await self._wanted(name, clocks, state)
        if wanted != state:
            if await self._stored() is None:
                await self._write(STORE, _as_text(state))
            await self._set(wanted, f"set power mode {name}")
        after = await self.current()
        if after.name != name or (clocks == "locked" and not after.is_locked):
            raise PowerModeError(
                f"set power mode {name}", f"read back {after.name}: {_as_text(wanted)} was set"
            )
        return AppliedPowerMode(
            asked=asked, name=name, clocks=clocks, has_changed=wanted != state, read_back=after
        )

    async def restore(self, original: PowerModeState) -> None:
        """Put back the settings in `original`'s detail, then forget what was found."""
        wanted = state_of_fields(original.detail)
        if wanted is None:
            raise PowerModeError(
                "restore power mode", f"{original.name} was recorded without its settings"
            )
        if wanted != await self._state(await self._policies()):
            await self._set(wanted, f"restore power mode {original.name}")
        if await self._stored() is not None:
            await self._write(STORE, "")

    async def restore_steps(self, original: PowerModeState) -> Sequence[RestoreStep]:
        """The files of `original`'s detail one by one, each range opened before it is set."""
        wanted = state_of_fields(original.detail)
        if wanted is None:
            return ()
        lows = {each.number: each.low_khz for each in await self._policies()}
        # All that can be online: we may have brought more online than there were.
        cores = sorted((await self._cores()) - {0})
        files = [(f"cpu{core}/online", "1") for core in cores if core in wanted.online]
        for number, setting in wanted.settings.items():
            folder = f"cpufreq/policy{number}/scaling_"
            files.append((f"{folder}governor", setting.governor))
            files.append((f"{folder}min_freq", str(lows.get(number, setting.min_khz))))
            files.append((f"{folder}max_freq", str(setting.max_khz)))
            files.append((f"{folder}min_freq", str(setting.min_khz)))
        files += [(f"cpu{core}/online", "0") for core in cores if core not in wanted.online]
        steps = [_write_step(f"{CPU}/{file}", f"{value}\n") for file, value in files]
        return (*steps, _write_step(STORE, ""))

    async def _resolve(self, asked: str, table: PowerModeTable, before: PowerModeState) -> str:
        word, policies = asked.strip().lower(), await self._policies()
        names = mode_names(policies)
        if word == "current":
            return before.name
        if word == DEFAULT and table.default is not None:
            return table.default
        if word == "maxn" and "performance" in names:
            return "performance"
        if word == "maxq" and maxq_name(policies) in names:
            return maxq_name(policies)
        return resolve_mode(asked, table, before).name

    async def _wanted(self, name: str, clocks: ClockPolicy, state: CpuState) -> CpuState:
        """What a mode sets. All cores come online first: offline, their policy tells nothing."""
        if name in (DEFAULT, CUSTOM):
            found = await self._found(state) if name == DEFAULT else state
            return found.locked() if clocks == "locked" else found
        cores = await self._cores()
        if state.online != cores:
            if await self._stored() is None:
                await self._write(STORE, _as_text(state))
            await self._set_online(cores, f"set power mode {name}")
        policies = await self._policies()
        if name not in mode_names(policies):
            raise UnsupportedPowerModeError(
                "power mode", f"not all cores have {name!r}; {', '.join(mode_names(policies))}"
            )
        return wanted_state(name, clocks, policies, cores)

    async def _set(self, wanted: CpuState, step: str) -> None:
        """Set everything; cores go offline last, since their policies could not be set then."""
        online = parse_cpu_list(await self._read(f"{CPU}/online") or "")
        await self._set_online(wanted.online | online, step)
        policies = {each.number: each for each in await self._policies()}
        for number, setting in wanted.settings.items():
            if number not in policies:
                raise PowerModeError(step, f"{CPU}/cpufreq/policy{number} is gone")
            await self._set_policy(policies[number], setting)
        await self._set_online(wanted.online, step)

    async def _set_policy(self, policy: Policy, setting: Setting) -> None:
        """The governor, then the range, which is opened first: min may never exceed max."""
        folder = f"{CPU}/cpufreq/policy{policy.number}"
        await self._write(f"{folder}/scaling_governor", setting.governor)
        now = await self._read(f"{folder}/scaling_min_freq")
        if now is None or not now.isdecimal() or int(now) > setting.max_khz:
            await self._write(f"{folder}/scaling_min_freq", str(policy.low_khz))
        await self._write(f"{folder}/scaling_max_freq", str(setting.max_khz))
        await self._write(f"{folder}/scaling_min_freq", str(setting.min_khz))

    async def _set_online(self, cores: frozenset[int], step: str) -> None:
        online = parse_cpu_list(await self._read(f"{CPU}/online") or "")
        for core in sorted(cores - online):
            await self._write(f"{CPU}/cpu{core}/online", "1")
        for core in sorted(online - cores):
            await self._write(f"{CPU}/cpu{core}/online", "0")
        after = parse_cpu_list(await self._read(f"{CPU}/online") or "")
        if after != cores:
            raise PowerModeError(
                step, f"{CPU}/online lists cores {sorted(after)}, not {sorted(cores)}"
            )

    async def _write(self, path: str, value: str) -> None:
        """Write a file as root unless it reads so already, and read it back."""
        if await self._read(path) == value:
            return
        data = f"{value}\n".encode() if value else b""
        result = await run_as_root(
            self._commands, ["tee", path], timeout_s=WRITE_LIMIT_S, stdin=data
        )
        require_root(result, f"write {path}", sudoers_remedy(ALLOW))
        back = await self._read(path)
        if back != value:
            said = result.error_text.strip()[:200]
            told = f" (it said: {said})" if said else ""
            raise PowerModeError(f"write {path}", f"it reads {back!r}, not {value!r}{told}")

    async def _read(self, path: str) -> str | None:
        text = await self._commands.read_text(path)
        return None if text is None else text.strip()

    async def _cores(self) -> frozenset[int]:
        return parse_cpu_list(await self._read(f"{CPU}/present") or "")

    async def _policies(self) -> tuple[Policy, ...]:
        """The policies that can be read now; those of cores that are all offline cannot."""
        cores = [core for core in sorted(await self._cores()) if core < MOST_CORES]
        read = await asyncio.gather(*(self._policy(core) for core in cores))
        policies = tuple(policy for policy in read if policy is not None)
        if not policies:
            raise PowerModeError(
                "read power modes",
                f"{CPU}/cpufreq has no policy with governors",
                remedy=f"Has the board's kernel no cpufreq? Then give {self._profile.name} the "
                "power controller `fixed` in its profile.",
            )
        return policies

    async def _policy(self, number: int) -> Policy | None:
        folder = f"{CPU}/cpufreq/policy{number}"
        governors = await self._read(f"{folder}/scaling_available_governors")
        if not governors:
            return None
        low = await self._read(f"{folder}/cpuinfo_min_freq")
        high = await self._read(f"{folder}/cpuinfo_max_freq")
        if low is None or high is None or not (low.isdecimal() and high.isdecimal()):
            return None
        driver = await self._read(f"{folder}/scaling_driver") or ""
        return Policy(number, tuple(governors.split()[:32]), int(low), int(high), driver)

    async def _state(self, policies: tuple[Policy, ...]) -> CpuState:
        settings = await asyncio.gather(*(self._setting(each.number) for each in policies))
        online = parse_cpu_list(await self._read(f"{CPU}/online") or "")
        numbers = (each.number for each in policies)
        return CpuState(online, dict(zip(numbers, settings, strict=True)))

    async def _setting(self, number: int) -> Setting:
        folder = f"{CPU}/cpufreq/policy{number}"
        files = ("scaling_governor", "scaling_min_freq", "scaling_max_freq")
        read: Mapping[str, str] = {f: await self._read(f"{folder}/{f}") or "" for f in files}
        for file in files[1:]:
            if not read[file].isdecimal():
                raise PowerModeError("read power mode", f"{folder}/{file} reads {read[file]!r}")
        return Setting(read[files[0]], int(read[files[1]]), int(read[files[2]]))

    async def _stored(self) -> CpuState | None:
        lines = (await self._read(STORE) or "").splitlines()
        return state_of_fields(dict(line.partition(" ")[::2] for line in lines))

    async def _found(self, state: CpuState | None = None) -> CpuState:
        """How the board was before we changed it: as stored, else as it is."""
        stored = await self._stored()
        if stored is not None:
            return stored
        return state if state is not None else await self._state(await self._policies())


def _as_text(state: CpuState) -> str:
    return "\n".join(f"{key} {value}" for key, value in state_fields(state).items())


def _write_step(path: str, text: str) -> RestoreStep:
    argv = ("tee", path)
    return RestoreStep(argv=argv, needs_root=True, stdin=text, timeout_s=WRITE_LIMIT_S)
