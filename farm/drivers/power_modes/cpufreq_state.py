"""Frequency policies of a Linux kernel's CPUs: what is, what a mode wants, and its name. Pure.

A mode is a governor over the whole range of frequencies with all cores online; ``lowest`` is
there for drivers whose powersave is no fixed lowest frequency. Any other setting is called
``default`` when it is the one that was found, else ``custom``. Frequencies are in kHz.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from farm.drivers.power_modes.cpu_list import parse_cpu_list
from farm.model.parameters import short_id
from farm.model.power_mode import ClockPolicy, PowerMode, PowerModeTable

DEFAULT, CUSTOM, LOWEST = "default", "custom", "lowest"
POWERSAVE = "powersave"

_OWN_POWERSAVE = ("intel_pstate", "amd-pstate-epp", "amd_pstate_epp")
"""Drivers whose powersave chooses frequencies itself (kernel documentation, admin-guide/pm)."""
_PREFERRED = (POWERSAVE, "schedutil", "ondemand", "conservative")
_UNUSABLE = ("userspace",)
"""It sets nothing by itself: somebody's program must."""
_POLICY = re.compile(r"policy(\d{1,4})")
_SETTING = re.compile(r"([a-z_]{1,32}) (\d{1,10}) (\d{1,10})")


@dataclass(frozen=True, slots=True)
class Policy:
    """What one policy of the board offers."""

    number: int
    governors: tuple[str, ...]
    low_khz: int
    high_khz: int
    driver: str = ""


@dataclass(frozen=True, slots=True)
class Setting:
    """How one policy is set."""

    governor: str
    min_khz: int
    max_khz: int

    @property
    def is_locked(self) -> bool:
        """Whether only one frequency is left."""
        return self.min_khz == self.max_khz


@dataclass(frozen=True, slots=True)
class CpuState:
    """How all policies are set, and which cores are online."""

    online: frozenset[int]
    settings: Mapping[int, Setting]

    @property
    def is_locked(self) -> bool:
        """Whether every policy has one frequency left."""
        return bool(self.settings) and all(each.is_locked for each in self.settings.values())

    def locked(self) -> "CpuState":
        """The same with every policy pinned to its top."""
        pinned = {
            number: Setting(each.governor, each.max_khz, each.max_khz)
            for number, each in self.settings.items()
        }
        return CpuState(self.online, pinned)


def mode_names(policies: Sequence[Policy]) -> tuple[str, ...]:
    """The modes that all policies offer, the fastest first."""
    common = [
        name
        for name in (policies[0].governors if policies else ())
        if name not in _UNUSABLE and all(name in each.governors for each in policies)
    ]
    names = sorted(common, key=lambda name: (name != "performance", name == POWERSAVE, name))
    return (*names, LOWEST) if names and maxq_name(policies) == LOWEST else tuple(names)


def maxq_name(policies: Sequence[Policy]) -> str:
    """The mode of the lowest frequency: powersave where it is that, else ``lowest``."""
    is_plain = all(
        POWERSAVE in each.governors and each.driver not in _OWN_POWERSAVE for each in policies
    )
    return POWERSAVE if is_plain else LOWEST


def wanted_state(
    name: str, clocks: ClockPolicy, policies: Sequence[Policy], cores: frozenset[int]
) -> CpuState:
    """How the CPUs are set in a mode of `mode_names`.

    Locked clocks are pinned to the mode's top, which for a plain powersave is the lowest.
    """
    is_low = name == LOWEST or (name == POWERSAVE and maxq_name(policies) == POWERSAVE)
    settings = {}
    for each in policies:
        low, high = each.low_khz, each.high_khz
        if name == LOWEST or (is_low and clocks == "locked"):
            high = low
        elif clocks == "locked":
            low = high
        settings[each.number] = Setting(_governor(name, each), low, high)
    return CpuState(cores, settings)


def _governor(name: str, policy: Policy) -> str:
    if name != LOWEST:
        return name
    usable = [each for each in _PREFERRED if each in policy.governors]
    return usable[0] if usable else policy.governors[0]


def name_of(
    state: CpuState, found: CpuState, policies: Sequence[Policy], cores: frozenset[int]
) -> str:
    """The name of a state; `found` is how the board was before anybody changed it."""
    for name in mode_names(policies):
        choices: tuple[ClockPolicy, ...] = ("default", "locked")
        if any(state == wanted_state(name, each, policies, cores) for each in choices):
            return name
    return DEFAULT if state in (found, found.locked()) else CUSTOM


def mode_table(policies: Sequence[Policy], cores: frozenset[int], default: str) -> PowerModeTable:
    """The board's modes. `cpu_mhz` is the highest frequency that a mode lets a core reach."""
    names = mode_names(policies)
    slowest = maxq_name(policies)
    low = max((each.low_khz for each in policies), default=0) / 1e3
    high = max((each.high_khz for each in policies), default=0) / 1e3
    modes = [
        PowerMode(
            name=name,
            online_cores=len(cores),
            cpu_mhz=low if name == slowest else high,
            source="/sys/devices/system/cpu/cpufreq",
        )
        for name in names
    ]
    if default not in names:
        modes.append(PowerMode(name=default, source="as the board was found"))
    content = [[each.number, *each.governors, each.low_khz, each.high_khz] for each in policies]
    return PowerModeTable(
        modes=tuple(modes), default=default, digest=short_id([content, sorted(cores)])
    )


def state_fields(state: CpuState) -> dict[str, str]:
    """A state as short texts: ``online``, and ``policyN`` -> governor, least and most kHz."""
    fields = {"online": ",".join(str(core) for core in sorted(state.online))}
    for number, each in sorted(state.settings.items()):
        fields[f"policy{number}"] = f"{each.governor} {each.min_khz} {each.max_khz}"
    return fields


def state_of_fields(fields: Mapping[str, str]) -> CpuState | None:
    """The way back; None when it is not what `state_fields` makes."""
    settings = {}
    for key, value in fields.items():
        policy, setting = _POLICY.fullmatch(key), _SETTING.fullmatch(value)
        if policy is not None and setting is not None:
            settings[int(policy[1])] = Setting(setting[1], int(setting[2]), int(setting[3]))
    online = parse_cpu_list(fields.get("online", ""))
    return CpuState(online, settings) if online and settings else None
