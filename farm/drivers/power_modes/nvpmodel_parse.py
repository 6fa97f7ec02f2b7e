"""What nvpmodel and jetson_clocks print and keep in files, as values. Pure; nothing raises.

Tried on captures of L4T R28 to R39 (tests/recordings/jetson-*): fields are found by search,
never by line number, because warnings come before, between and after them.
Clocks in the tools' own units: CPU in kHz, GPU and EMC in Hz.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from farm.model.parameters import short_id
from farm.model.power_mode import PowerMode, PowerModeTable

_NO_CAP = frozenset({2**31 - 1, 2**63 - 1})
"""How the tool prints the conf's -1: the first up to R35, the second from R36 on."""

_SECTION = re.compile(r"<\s*(PARAM|POWER_MODEL|PM_CONFIG)\b([^>]*)>")
_ATTRIBUTE = re.compile(r"(\w+)\s*=\s*([^\s>]+)")
_BUDGET = re.compile(r"(\d+)(?:_(\d))?_?W(?![A-Z])", re.IGNORECASE)
_QUERY = re.compile(r"NV Power Mode:[ \t]*(\S+)[ \t]*\r?\n[ \t]*(-?\d+)[ \t]*\r?$", re.MULTILINE)
_QUERY_NAME = re.compile(r"NV Power Mode:[ \t]*(\S+)[ \t]*\r?$", re.MULTILINE)
_VALUE = re.compile(
    r"PARAM (\S+): ARG (\S+): PATH (\S+): REAL_VAL: (\S*) CONF_VAL: (\S*)[ \t]*\r?$", re.MULTILINE
)
_VERBOSE = re.compile(r"^NVPM VERB:[ \t]?(.*?)\r?$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ConfMode:
    """One POWER_MODEL section: settings as (param, arg) -> value."""

    id: int
    name: str
    settings: Mapping[tuple[str, str], str]


@dataclass(frozen=True, slots=True)
class NvpmodelConf:
    """A whole conf. `paths`: (param, arg) -> file on the board, ARG_KNEXT among the args."""

    modes: tuple[ConfMode, ...]
    default_id: int | None
    paths: Mapping[tuple[str, str], str]


@dataclass(frozen=True, slots=True)
class QueryAnswer:
    """What ``nvpmodel -q`` told. `id` is None when only the name was printed."""

    name: str
    id: int | None


@dataclass(frozen=True, slots=True)
class ParamValue:
    """One line of ``nvpmodel -q --verbose``: what is, and what the conf wants."""

    param: str
    arg: str
    real: str
    conf: str


SetOutcome = Literal["done", "needs_reboot", "rebooting", "bad_mode", "failed"]


@dataclass(frozen=True, slots=True)
class SetReport:
    """What ``nvpmodel -m`` printed. "done" only means that nothing was complained of."""

    outcome: SetOutcome
    errors: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CpuClocks:
    """One CPU of ``jetson_clocks --show``, kHz."""

    is_online: bool
    min_khz: int
    max_khz: int


@dataclass(frozen=True, slots=True)
class ClocksShown:
    """What ``jetson_clocks --show`` told. GPU in Hz by the tool's name for it."""

    cpus: Mapping[int, CpuClocks] = field(default_factory=dict)
    gpus: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    mode: str | None = None

    @property
    def is_locked(self) -> bool:
        """All online CPUs and the GPU have min = max. EMC is no sign: its min may stay low."""
        clocks = [(cpu.min_khz, cpu.max_khz) for cpu in self.cpus.values() if cpu.is_online]
        has_both = bool(clocks) and bool(self.gpus)
        return has_both and all(low == high for low, high in (*clocks, *self.gpus.values()))


def parse_conf(text: str) -> NvpmodelConf:
    """Read an nvpmodel.conf. Sections that make no sense are left out."""
    modes: list[ConfMode] = []
    paths: dict[tuple[str, str], str] = {}
    default_id: int | None = None
    target: dict[tuple[str, str], str] = {}
    param: str | None = None
    for raw in text.splitlines():
        line = raw.partition("#")[0].strip()
        section = _SECTION.match(line)
        if section is None:
            _take_setting(line.split(None, 2), param, paths, target)
            continue
        attributes = dict(_ATTRIBUTE.findall(section[2]))
        param = attributes.get("NAME") if section[1] == "PARAM" else None
        if section[1] == "POWER_MODEL":
            target = {}
            number = _integer(attributes.get("ID", ""))
            if number is not None and attributes.get("NAME"):
                modes.append(ConfMode(number, attributes["NAME"], target))
        elif section[1] == "PM_CONFIG":
            target = {}
            default_id = _integer(attributes.get("DEFAULT", ""))
    return NvpmodelConf(tuple(modes), default_id, paths)


def parse_printed_conf(text: str) -> NvpmodelConf:
    """Read the output of ``nvpmodel -p --verbose``, which works without reading the file."""
    modes: list[ConfMode] = []
    paths: dict[tuple[str, str], str] = {}
    default_id: int | None = None
    target: dict[tuple[str, str], str] = {}
    param: str | None = None
    for line in _VERBOSE.findall(text):
        if line.startswith("PM_CONFIG:"):
            default = re.search(r"\((-?\d+)\)", line) or re.search(r"DEFAULT=(\d+)", line)
            default_id = int(default[1]) if default else None
        elif line.startswith("PARAM TYPE="):
            param = dict(_ATTRIBUTE.findall(line)).get("NAME")
        elif line.startswith("POWER_MODEL:"):
            param, target = None, {}
            attributes = dict(_ATTRIBUTE.findall(line))
            number = _integer(attributes.get("ID", ""))
            if number is not None and attributes.get("NAME"):
                modes.append(ConfMode(number, attributes["NAME"], target))
        else:
            _take_setting(line.split(None, 2), param, paths, target)
    return NvpmodelConf(tuple(modes), default_id, paths)


def mode_table(conf: NvpmodelConf, source: str) -> PowerModeTable:
    """The table of a conf; its digest changes when any setting of any mode changes."""
    names = {mode.id: mode.name for mode in conf.modes}
    content = [
        [mode.id, mode.name, sorted([*key, _plain(value)] for key, value in mode.settings.items())]
        for mode in conf.modes
    ]
    return PowerModeTable(
        modes=tuple(_power_mode(mode, source) for mode in conf.modes),
        default=names.get(conf.default_id) if conf.default_id is not None else None,
        digest=short_id([content, conf.default_id]),
    )


def parse_query(text: str) -> QueryAnswer | None:
    """The mode that ``nvpmodel -q`` names, or None."""
    found = _QUERY.search(text)
    if found is not None:
        return QueryAnswer(found[1], int(found[2]))
    named = _QUERY_NAME.search(text)
    return QueryAnswer(named[1], None) if named is not None else None


def parse_values(text: str) -> tuple[ParamValue, ...]:
    """The PARAM lines of ``nvpmodel -q --verbose``; what could not be read is not among them."""
    return tuple(
        ParamValue(param, arg, real, conf) for param, arg, _, real, conf in _VALUE.findall(text)
    )


def parse_set_output(text: str) -> SetReport:
    """What ``nvpmodel -m`` complained of, whatever its exit code was."""
    errors = tuple(
        line.strip().removeprefix("NVPM ERROR:").strip()
        for line in text.splitlines()
        if line.strip().startswith("NVPM ERROR:")
    )
    outcome: SetOutcome = "failed" if errors else "done"
    if "request for bad power mode" in text:
        outcome = "bad_mode"
    elif re.search(r"NVPM WARN: rebooting", text):
        outcome = "rebooting"
    elif "Reboot required" in text or "DO YOU WANT TO REBOOT" in text:
        outcome = "needs_reboot"
    return SetReport(outcome, errors)


def parse_clocks(text: str) -> ClocksShown:
    """Read ``jetson_clocks --show`` of any release; unknown lines are left out."""
    online = _online_cpus(text)
    cpus: dict[int, CpuClocks] = {}
    gpus: dict[str, tuple[int, int]] = {}
    for line in text.splitlines():
        name, values = _clock_line(line)
        low, high = _integer(values.get("MinFreq", "")), _integer(values.get("MaxFreq", ""))
        if low is None or high is None:
            continue
        if name.startswith("cpu") and name[3:].isdigit():
            number = int(name[3:])
            told = values.get("Online")
            is_online = told == "1" if told is not None else not online or number in online
            cpus[number] = CpuClocks(is_online, low, high)
        elif name == "GPU" or name.startswith("gpu-gpc"):
            gpus[name] = (low, high)
    mode = _QUERY_NAME.search(text)
    return ClocksShown(cpus, gpus, mode[1] if mode else None)


def parse_cpu_list(text: str) -> frozenset[int]:
    """A kernel's CPU list, e.g. ``0,3-5``. Nonsense gives the empty set."""
    numbers: set[int] = set()
    for part in text.strip().split(","):
        found = re.fullmatch(r"\s*(\d{1,4})(?:-(\d{1,4}))?\s*", part)
        if found is None:
            return frozenset()
        numbers.update(range(int(found[1]), int(found[2] or found[1]) + 1))
    return frozenset(numbers)


def is_no_cap(value: str) -> bool:
    """Whether a conf's clock value means "no cap": -1 in its three spellings, or 0."""
    number = _integer(value)
    return number is not None and (number <= 0 or number in _NO_CAP)


def _take_setting(
    words: list[str],
    param: str | None,
    paths: dict[tuple[str, str], str],
    target: dict[tuple[str, str], str],
) -> None:
    if param is not None and len(words) == 2:  # noqa: PLR2004 - "ARG path"
        paths[param, words[0]] = words[1]
    elif param is None and len(words) == 3:  # noqa: PLR2004 - "PARAM ARG value"
        target[words[0], words[1]] = words[2].strip()


def _power_mode(mode: ConfMode, source: str) -> PowerMode:
    cores = {arg: value for (_, arg), value in mode.settings.items() if arg.startswith("CORE_")}
    online = sum(value == "1" for value in cores.values())
    if cores and "CORE_0" not in cores:
        online += 1  # core 0 of TX2 cannot go offline and is not listed
    budget = _BUDGET.search(mode.name)
    mask = mode.settings.get(("TPC_POWER_GATING", "TPC_PG_MASK"), "")
    return PowerMode(
        name=mode.name,
        id=mode.id,
        online_cores=online if cores else None,
        cpu_mhz=_cap(mode, "CPU", 1e3),
        gpu_mhz=_cap(mode, "GPU", 1e6),
        emc_mhz=_cap(mode, "EMC", 1e6),
        tpc_mask=_integer(mask),
        budget_w=float(f"{budget[1]}.{budget[2] or 0}") if budget else None,
        source=source,
    )


def _cap(mode: ConfMode, kind: str, per_mhz: float) -> float | None:
    """The highest cap of the clocks of that kind, MHz; None as soon as one has no cap."""
    values = [
        value
        for (param, arg), value in mode.settings.items()
        if arg == "MAX_FREQ" and (param == kind or param.startswith(f"{kind}_"))
    ]
    numbers = [_integer(value) for value in values]
    if not values or any(is_no_cap(value) for value in values):
        return None
    return max((number / per_mhz for number in numbers if number is not None), default=None)


def _plain(value: str) -> str:
    """One spelling of -1, so that file and printed conf have the same digest."""
    return "-1" if _integer(value) in _NO_CAP else value


def _clock_line(line: str) -> tuple[str, Mapping[str, str]]:
    name, _, rest = line.strip().partition(" ")
    return name.rstrip(":"), dict(_ATTRIBUTE.findall(rest))


def _online_cpus(text: str) -> frozenset[int]:
    found = re.search(r"Online CPUs:[ \t]*([\d,-]+)", text)
    return parse_cpu_list(found[1].rstrip(",")) if found else frozenset()


def _integer(text: str) -> int | None:
    return int(text) if re.fullmatch(r"-?\d{1,20}", text) else None
