"""What ``jetson_clocks`` prints: its ``--show`` and its complaints. Pure; nothing raises.

Tried on captures of L4T R32 to R39 (tests/recordings/jetson-*/jetson_clocks), and on texts made
after what is known of TX1 on R28 and of Thor. Clocks are in the tool's own units: CPU in kHz,
GPU, EMC and the other engines in Hz.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from farm.drivers.power_modes.cpu_list import parse_cpu_list

_ATTRIBUTE = re.compile(r"\b(\w{1,64}) {0,4}= {0,4}([^\s>]+)")
_INTEGER = re.compile(r"\d{1,20}")
_CPU = re.compile(r"cpu(\d{1,4})")
_HEAD = re.compile(r"SOC family:\s*(\S+)(?:[ \t]+Machine:[ \t]*([^\r\n]*\S))?")
_ONLINE = re.compile(r"^[ \t]*Online CPUs:[ \t]*([\d,-]+)", re.MULTILINE)
_MODE = re.compile(r"NV Power Mode:[ \t]*(\S+)[ \t]*\r?$", re.MULTILINE)
_TPCS = re.compile(r"Active GPU TPCs:[ \t]*(\d{1,4})")
_FAN = re.compile(r"^[ \t]*FAN\b.*?Speed[ \t]+control=(\S+)", re.MULTILINE | re.IGNORECASE)
_PWM = re.compile(
    r"^[ \t]*FAN\b.*?(?:pwm\d+|speed)=(\d{1,6})[ \t]*\r?$", re.MULTILINE | re.IGNORECASE
)


class ClocksMeaning(StrEnum):
    """What a complaint of jetson_clocks means."""

    NOT_ROOT = "not_root"
    """It must run as root; nothing was done."""
    UNSUPPORTED_SOC = "unsupported_soc"
    """The script does not know this chip (a script of another release)."""
    GPU_NOT_LOCKED = "gpu_not_locked"
    """The GPU was not brought to its highest clock."""
    PATH_MISSING = "path_missing"
    """A file that the script uses is not there (a path that changed with the kernel)."""
    NO_FAN = "no_fan"
    """There is no fan it can reach: no fault of the clocks."""
    NOISE = "noise"
    """A service manager that would not answer: no fault of the clocks."""


_TEXTS = (
    (re.compile(r"Run this script ?\(.*\) as a root user"), ClocksMeaning.NOT_ROOT),
    (re.compile(r"unsupported SOC", re.IGNORECASE), ClocksMeaning.UNSUPPORTED_SOC),
    (re.compile(r"Failed to max GPU frequency"), ClocksMeaning.GPU_NOT_LOCKED),
    (re.compile(r"line \d+: .*No such file or directory"), ClocksMeaning.PATH_MISSING),
    (re.compile(r"Can't access Fan"), ClocksMeaning.NO_FAN),
    (re.compile(r"Failed to retrieve unit state"), ClocksMeaning.NOISE),
)


@dataclass(frozen=True, slots=True)
class CpuClocks:
    """One CPU of ``jetson_clocks --show``, kHz. `idle_states`: name -> allowed."""

    is_online: bool
    min_khz: int
    max_khz: int
    now_khz: int | None = None
    governor: str = ""
    idle_states: Mapping[str, bool] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EngineClocks:
    """Another engine's clocks, Hz. `is_overridden` is EMC's way to be locked; None: not told."""

    min_hz: int
    max_hz: int
    now_hz: int | None = None
    is_overridden: bool | None = None


@dataclass(frozen=True, slots=True)
class ClocksShown:
    """What ``jetson_clocks --show`` told. GPU (min, max) in Hz by the tool's name for it."""

    cpus: Mapping[int, CpuClocks] = field(default_factory=dict)
    gpus: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    mode: str | None = None
    engines: Mapping[str, EngineClocks] = field(default_factory=dict)
    soc: str = ""
    machine: str = ""
    active_tpcs: int | None = None
    fan_control: str = ""
    fan_pwm: int | None = None

    @property
    def is_locked(self) -> bool:
        """All online CPUs and the GPU have min = max. EMC is no sign: its min may stay low."""
        clocks = [(cpu.min_khz, cpu.max_khz) for cpu in self.cpus.values() if cpu.is_online]
        has_both = bool(clocks) and bool(self.gpus)
        return has_both and all(low == high for low, high in (*clocks, *self.gpus.values()))


def parse_clocks(text: str) -> ClocksShown:
    """Read ``jetson_clocks --show`` of any release; unknown lines are left out."""
    listed = _ONLINE.search(text)
    online = parse_cpu_list(listed[1].rstrip(",")) if listed else frozenset()
    cpus: dict[int, CpuClocks] = {}
    engines: dict[str, EngineClocks] = {}
    for line in text.splitlines():
        name, _, rest = line.strip().partition(" ")
        name, values = name.rstrip(":"), dict(_ATTRIBUTE.findall(rest))
        number = _CPU.fullmatch(name)
        if number is not None:
            cpu = _cpu_clocks(int(number[1]), rest, values, online)
            cpus.update({int(number[1]): cpu} if cpu else {})
        elif (engine := _engine_clocks(values)) is not None:
            engines[name] = engine
    return _with_the_rest(text, cpus, engines)


def parse_complaints(text: str) -> tuple[ClocksMeaning, ...]:
    """What jetson_clocks complained of, the worst first; () for "All done." and the like."""
    return tuple(meaning for pattern, meaning in _TEXTS if pattern.search(text))


def _with_the_rest(
    text: str, cpus: Mapping[int, CpuClocks], engines: Mapping[str, EngineClocks]
) -> ClocksShown:
    head, mode, tpcs = _HEAD.search(text), _MODE.search(text), _TPCS.search(text)
    fan, pwm = _FAN.search(text), _PWM.search(text)
    return ClocksShown(
        cpus=cpus,
        gpus={name: (e.min_hz, e.max_hz) for name, e in engines.items() if _is_gpu(name)},
        mode=mode[1] if mode else None,
        engines={name: engine for name, engine in engines.items() if not _is_gpu(name)},
        soc=head[1] if head else "",
        machine=(head[2] or "") if head else "",
        active_tpcs=int(tpcs[1]) if tpcs else None,
        fan_control=fan[1] if fan else "",
        fan_pwm=int(pwm[1]) if pwm else None,
    )


def _cpu_clocks(
    number: int, rest: str, values: Mapping[str, str], online: frozenset[int]
) -> CpuClocks | None:
    low, high = _integer(values.get("MinFreq")), _integer(values.get("MaxFreq"))
    if low is None or high is None:
        return None
    told = values.get("Online")  # TX1 on R28 and all on R39 do not tell it here
    idle = dict(_ATTRIBUTE.findall(rest.partition("IdleStates:")[2]))
    return CpuClocks(
        is_online=told == "1" if told is not None else not online or number in online,
        min_khz=low,
        max_khz=high,
        now_khz=_integer(values.get("CurrentFreq")),
        governor=values.get("Governor") or values.get("Gonvernor") or "",  # sic, on R28
        idle_states={name: value == "1" for name, value in idle.items()},
    )


def _engine_clocks(values: Mapping[str, str]) -> EngineClocks | None:
    low, high = _integer(values.get("MinFreq")), _integer(values.get("MaxFreq"))
    if low is None or high is None:
        return None
    told = values.get("FreqOverride")
    now = _integer(values.get("CurrentFreq"))
    return EngineClocks(low, high, now, None if told is None else told == "1")


def _is_gpu(name: str) -> bool:
    """Thor names the shader clock gpu-gpc-0; its gpu-nvd-0 (video) is locked on its own."""
    return name == "GPU" or name.startswith("gpu-gpc")


def _integer(text: str | None) -> int | None:
    return int(text) if text and _INTEGER.fullmatch(text) else None
