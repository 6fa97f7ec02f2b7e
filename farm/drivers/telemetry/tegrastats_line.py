"""One line of NVIDIA's ``tegrastats``, as values. Pure; nothing raises.

Tried on captures of L4T R27 to R39 of TX1 to Thor (tests/recordings/jetson-*/tegrastats).
Fields are found by their form, in any order, with any number of blanks between them: names and
sets of fields change with board, release and rights. What is missing is unknown, never zero, and
never spoils the rest. What is not understood is kept in `unknown` under its name.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

_Value = TypeVar("_Value")
LONGEST_LINE = 8192
"""Assumed: the longest capture (Thor, R39) has under 800 characters."""

_NUMBER = r"-?\d{1,9}(?:\.\d{1,6})?"
_MHZ = r"(?:\[(?P<clocks>\d{1,7}(?:,\d{1,7}){0,31})\]|(?P<bare>\d{1,7}))"
_END = r"(?= |$)"
_TIME = re.compile(r"(0\d|1[0-2])-([0-3]\d)-(\d{4}) ([0-2]\d:[0-5]\d:[0-6]\d)" + _END)
_LFB = re.compile(r"lfb (?:(\d{1,9})x)?(\d{1,9})([kMG])B")
_CACHED = re.compile(r"cached (\d{1,9})([kMG])B")
_MEMORY = re.compile(
    r"(?P<name>RAM|SWAP|IRAM) (?P<used>\d{1,9})/(?P<total>\d{1,9})(?P<unit>[kMG])B"
    r"(?: ?\((?P<more>[^()]{0,80})\))?" + _END
)
_CPUS = re.compile(
    r"cpu \[(?P<cores>[^\[\]]{0,2000})\](?:@(?P<all>\d{1,7}))?" + _END, re.IGNORECASE
)
_CORE = re.compile(r"(\d{1,3})%(?:@(\d{1,7}))?")
_MTS = re.compile(r"MTS fg (\d{1,3})% bg (\d{1,3})%" + _END)
_TEMPERATURE = re.compile(
    rf"(?P<name>[A-Za-z][\w.-]*)@(?P<now>{_NUMBER})C(?:/(?P<top>{_NUMBER})C)?" + _END
)
_RAIL = re.compile(
    r"(?P<name>[A-Za-z][\w.-]*) (?P<now>-?\d{1,9})(?:mW)?/(?P<mean>-?\d{1,9})(?:mW)?"
    r"(?:/(?P<top>-?\d{1,9})(?:mW)?)?" + _END
)
_ENGINE = re.compile(
    rf"(?P<name>[A-Za-z]\w*) (?:(?P<off>off)|(?:(?P<load>\d{{1,3}})%)?(?:@{_MHZ})?(?<! ))" + _END
)
_BARE_CLOCK = re.compile(
    r"(?P<name>\w+_FREQ|APE|(?:VIC|NVENC|NVDEC|NVJPG|NVDLA|PVA|OFA|MSENC|SE)\d*) "
    r"(?P<clock>\d{1,7})" + _END
)
_IN_MB = {"k": 1 / 1024, "M": 1.0, "G": 1024.0}

_PMIC_FIXED_C = (50.0, 100.0)
"""Measured on captures: the power chip's zone reads one of these for ever; it has no sensor."""

_ASLEEP_C = -256.0
"""Measured on captures: what the sensor of a block without power reads."""


@dataclass(frozen=True, slots=True)
class Memory:
    """One kind of memory, MB. `block_mb`: the largest free block, `blocks`: how many there are."""

    used_mb: float
    total_mb: float
    cached_mb: float | None = None
    blocks: int | None = None
    block_mb: float | None = None


@dataclass(frozen=True, slots=True)
class Core:
    """One CPU. An offline core has neither load nor clock; None is unknown."""

    is_online: bool
    load_pct: float | None = None
    clock_mhz: float | None = None


@dataclass(frozen=True, slots=True)
class Engine:
    """GPU, memory controller, video... `clocks_mhz` is () if unknown, several for several GPCs."""

    load_pct: float | None = None
    clocks_mhz: tuple[float, ...] = ()
    is_off: bool = False


@dataclass(frozen=True, slots=True)
class Temperature:
    """Degrees Celsius; `max_c` since tegrastats began (R39), else None."""

    now_c: float
    max_c: float | None = None


@dataclass(frozen=True, slots=True)
class Rail:
    """Milliwatts. `mean_mw` and `max_mw` (R39) count from when tegrastats began: no window."""

    now_mw: float
    mean_mw: float
    max_mw: float | None = None


@dataclass(frozen=True, slots=True)
class TegrastatsLine:
    """One sample. Names are the tool's own, engines without their ``_FREQ``.

    `at` is the board's local time without a zone, as ISO 8601, or None. `dropped` are fields
    that are no readings (fixed PMIC values, sleeping sensors, rails that are not connected).
    """

    at: str | None = None
    memory: Mapping[str, Memory] = field(default_factory=dict)
    cores: tuple[Core, ...] = ()
    engines: Mapping[str, Engine] = field(default_factory=dict)
    temperatures: Mapping[str, Temperature] = field(default_factory=dict)
    rails: Mapping[str, Rail] = field(default_factory=dict)
    dropped: tuple[str, ...] = ()
    unknown: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_sample(self) -> bool:
        """Whether it is a sample at all, and not another program's noise: all have RAM or CPU."""
        return "RAM" in self.memory or bool(self.cores)


def parse_line(line: str) -> TegrastatsLine:
    """Read one line of any release."""
    text = " ".join(line[:LONGEST_LINE].split())  # some lines have runs of blanks
    fields = _Fields()
    position = 0
    while position < len(text):
        position = fields.take(text, position) + 1  # and the blank
    return fields.line()


class _Fields:
    """Collects the fields of one line."""

    def __init__(self) -> None:
        self._at: str | None = None
        self._cores: tuple[Core, ...] = ()
        self._memory: dict[str, Memory] = {}
        self._engines: dict[str, Engine] = {}
        self._temperatures: dict[str, Temperature] = {}
        self._rails: dict[str, Rail] = {}
        self._dropped: list[str] = []
        self._unknown: dict[str, str] = {}

    def take(self, text: str, position: int) -> int:
        """Take the field at `position`, which is no blank; returns where it ends."""
        for pattern, keep in _FORMS:
            found = pattern.match(text, position)
            if found is not None:
                keep(self, found)
                return found.end()
        return self._keep_unknown(text, position)

    def line(self) -> TegrastatsLine:
        return TegrastatsLine(
            at=self._at,
            memory=self._memory,
            cores=self._cores,
            engines=self._engines,
            temperatures=self._temperatures,
            rails=self._rails,
            dropped=tuple(self._dropped),
            unknown=self._unknown,
        )

    def keep_time(self, found: re.Match[str]) -> None:
        self._at = f"{found[3]}-{found[1]}-{found[2]}T{found[4]}"

    def keep_memory(self, found: re.Match[str]) -> None:
        more = found["more"] or ""
        block, cached = _LFB.search(more), _CACHED.search(more)
        scale = _IN_MB[found["unit"]]
        self._memory[found["name"]] = Memory(
            used_mb=int(found["used"]) * scale,
            total_mb=int(found["total"]) * scale,
            cached_mb=int(cached[1]) * _IN_MB[cached[2]] if cached else None,
            blocks=int(block[1] or 1) if block else None,
            block_mb=int(block[2]) * _IN_MB[block[3]] if block else None,
        )

    def keep_cores(self, found: re.Match[str]) -> None:
        everyone = _mhz(found["all"])
        cores = []
        for text in found["cores"].split(","):
            core = _CORE.fullmatch(text.strip())
            if core is not None:
                own = _mhz(core[2])
                clock = own[0] if own else everyone[0] if everyone else None
                cores.append(Core(is_online=True, load_pct=float(core[1]), clock_mhz=clock))
            else:
                cores.append(Core(is_online=text.strip() != "off"))
        self._cores = tuple(cores)

    def keep_mts(self, found: re.Match[str]) -> None:
        self._engines["MTS_fg"] = Engine(float(found[1]))
        self._engines["MTS_bg"] = Engine(float(found[2]))

    def keep_temperature(self, found: re.Match[str]) -> None:
        name, now = found["name"], float(found["now"])
        is_fixed = name.upper() == "PMIC" and now in _PMIC_FIXED_C
        if is_fixed or now <= _ASLEEP_C:
            self._dropped.append(name)
            return
        top = float(found["top"]) if found["top"] else None
        self._once(self._temperatures, name, Temperature(now, top), found)

    def keep_rail(self, found: re.Match[str]) -> None:
        if found["name"] == "NC":  # "not connected", printed twice by AGX Orin
            self._dropped.append("NC")
            return
        top = float(found["top"]) if found["top"] else None
        rail = Rail(float(found["now"]), float(found["mean"]), top)
        self._once(self._rails, found["name"], rail, found)

    def keep_engine(self, found: re.Match[str]) -> None:
        engine = Engine(
            load_pct=float(found["load"]) if found["load"] else None,
            clocks_mhz=_mhz(found["clocks"] or found["bare"]),
            is_off=found["off"] is not None,
        )
        self._once(self._engines, found["name"].removesuffix("_FREQ"), engine, found)

    def keep_clock(self, found: re.Match[str]) -> None:
        engine = Engine(clocks_mhz=_mhz(found["clock"]))
        self._once(self._engines, found["name"].removesuffix("_FREQ"), engine, found)

    def _once(
        self, known: dict[str, _Value], name: str, value: _Value, found: re.Match[str]
    ) -> None:
        """The first of two fields of one name is taken; the other is kept as text."""
        if name in known:
            self._unknown[name] = found[0]
        known.setdefault(name, value)

    def _keep_unknown(self, text: str, position: int) -> int:
        """A word that is no field, with the next one when that looks like its value."""
        end = text.find(" ", position) % (len(text) + 1)
        value_end = text.find(" ", end + 1) % (len(text) + 1)
        name, value = text[position:end], text[end + 1 : value_end]
        if value and not value[0].isalpha() and not _TIME.match(text, end + 1):
            self._unknown[name] = value
            return value_end
        name, _, value = name.partition("@")
        self._unknown[name or f"@{value}"] = value if name else ""
        return end


_FORMS: tuple[tuple[re.Pattern[str], Callable[[_Fields, re.Match[str]], None]], ...] = (
    (_TIME, _Fields.keep_time),
    (_MEMORY, _Fields.keep_memory),
    (_CPUS, _Fields.keep_cores),
    (_MTS, _Fields.keep_mts),
    (_TEMPERATURE, _Fields.keep_temperature),
    (_RAIL, _Fields.keep_rail),
    (_ENGINE, _Fields.keep_engine),
    (_BARE_CLOCK, _Fields.keep_clock),
)


def _mhz(text: str | None) -> tuple[float, ...]:
    return tuple(float(number) for number in (text or "").split(",") if number)
