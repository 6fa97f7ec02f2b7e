"""The table of power modes: /etc/nvpmodel.conf, and what ``nvpmodel -p --verbose`` prints of it.

Pure; nothing raises. Tried on confs of L4T R32 to R36 (tests/recordings/jetson-*/nvpmodel).
Clocks are in the conf's own units: CPU in kHz, GPU and EMC in Hz.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from farm.model.parameters import short_id
from farm.model.power_mode import PowerMode, PowerModeTable

_NO_CAP = frozenset({2**31 - 1, 2**63 - 1})
"""How the tool prints the conf's -1: the first up to R35, the second from R36 on."""

_SECTION = re.compile(r"<\s*(PARAM|POWER_MODEL|PM_CONFIG)\b([^>]*)>")
_ATTRIBUTE = re.compile(r"\b(\w{1,64}) {0,4}= {0,4}([^\s>]+)")
_BUDGET = re.compile(r"(\d+)(?:_(\d))?_?W(?![A-Z])", re.IGNORECASE)
_VERBOSE = re.compile(r"^NVPM VERB:[ \t]?(.*?)\r?$", re.MULTILINE)
_PRINTED_DEFAULT = re.compile(r"\((-?\d{1,20})\)|DEFAULT=(\d{1,20})\s*$")
_INTEGER = re.compile(r"-?\d{1,20}")


@dataclass(frozen=True, slots=True)
class ConfMode:
    """One POWER_MODEL section: settings as (param, arg) -> value."""

    id: int
    name: str
    settings: Mapping[tuple[str, str], str]


@dataclass(frozen=True, slots=True)
class NvpmodelConf:
    """A whole conf.

    `paths`: (param, arg) -> file on the board; the file of the newer kernel has an arg ending
    in ``_KNEXT``. `kinds`: param -> FILE, CLOCK or HWMON.
    """

    modes: tuple[ConfMode, ...]
    default_id: int | None
    paths: Mapping[tuple[str, str], str]
    kinds: Mapping[str, str] = field(default_factory=dict)


class _Reader:
    """Takes the parts of a conf in their order. A mode without number or name is left out."""

    def __init__(self) -> None:
        self._modes: list[ConfMode] = []
        self._paths: dict[tuple[str, str], str] = {}
        self._kinds: dict[str, str] = {}
        self._default_id: int | None = None
        self._param: str | None = None
        self._settings: dict[tuple[str, str], str] = {}

    def begin_param(self, attributes: Mapping[str, str]) -> None:
        self._param = attributes.get("NAME", "")
        if self._param:
            self._kinds[self._param] = attributes.get("TYPE", "")

    def begin_mode(self, attributes: Mapping[str, str]) -> None:
        self._param, self._settings = None, {}
        number, name = _integer(attributes.get("ID", "")), attributes.get("NAME")
        if number is not None and name:
            self._modes.append(ConfMode(number, name, self._settings))

    def take_default(self, text: str) -> None:
        self._settings = {}
        self._default_id = _integer(text)

    def take_line(self, line: str) -> None:
        words = line.split(None, 2)
        if self._param and len(words) == 2:  # noqa: PLR2004 - "ARG path"
            self._paths[self._param, words[0]] = words[1]
        elif self._param is None and len(words) == 3:  # noqa: PLR2004 - "PARAM ARG value"
            self._settings[words[0], words[1]] = words[2].strip()

    def conf(self) -> NvpmodelConf:
        return NvpmodelConf(tuple(self._modes), self._default_id, self._paths, self._kinds)


def parse_conf(text: str) -> NvpmodelConf:
    """Read an nvpmodel.conf. Sections that make no sense are left out."""
    reader = _Reader()
    for raw in text.splitlines():
        line = raw.partition("#")[0].strip()
        section = _SECTION.match(line)
        attributes = dict(_ATTRIBUTE.findall(section[2])) if section else {}
        if section is None:
            reader.take_line(line)
        elif section[1] == "PARAM":
            reader.begin_param(attributes)
        elif section[1] == "POWER_MODEL":
            reader.begin_mode(attributes)
        else:
            reader.take_default(attributes.get("DEFAULT", ""))
    return reader.conf()


def parse_printed_conf(text: str) -> NvpmodelConf:
    """Read the output of ``nvpmodel -p --verbose``, which works without reading the file."""
    reader = _Reader()
    for line in _VERBOSE.findall(text):
        if line.startswith("PM_CONFIG:"):
            default = _PRINTED_DEFAULT.search(line)
            reader.take_default(default[1] or default[2] if default else "")
        elif line.startswith("PARAM TYPE="):
            reader.begin_param(dict(_ATTRIBUTE.findall(line)))
        elif line.startswith("POWER_MODEL:"):
            reader.begin_mode(dict(_ATTRIBUTE.findall(line)))
        else:
            reader.take_line(line)
    return reader.conf()


def gpu_masks(mode: ConfMode) -> Mapping[str, int]:
    """The GPU's power-gating masks that a mode sets, e.g. ``TPC_PG_MASK`` and ``FBP_PG_MASK``.

    Going between two modes whose masks differ is what may need a reboot.
    """
    masks = {}
    for (_, arg), value in mode.settings.items():
        number = _integer(value)
        if arg.endswith("_PG_MASK") and number is not None:
            masks[arg] = number
    return masks


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


def is_no_cap(value: str) -> bool:
    """Whether a conf's clock value means "no cap": -1 in its three spellings, or 0."""
    number = _integer(value)
    return number is not None and (number <= 0 or number in _NO_CAP)


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


def _integer(text: str) -> int | None:
    return int(text) if _INTEGER.fullmatch(text) else None
