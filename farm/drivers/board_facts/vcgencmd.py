"""Raspberry Pi's ``vcgencmd``: throttling, temperature, clocks, volts, the Pi 5's rails. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

_THROTTLED = re.compile(r"^throttled=0x([0-9a-fA-F]{1,8})[ \t\r]*$", re.MULTILINE)
_TEMPERATURE = re.compile(r"^temp=(-?\d{1,4}(?:\.\d{1,4})?)'C[ \t\r]*$", re.MULTILINE)
_CLOCK = re.compile(r"^frequency\((\d{1,4})\)=(\d{1,12})[ \t\r]*$", re.MULTILINE)
_VOLTS = re.compile(r"^volt=(\d{1,3}(?:\.\d{1,8})?)V[ \t\r]*$", re.MULTILINE)
_RAIL = re.compile(
    r"^[ \t]*(\w{1,40})_([AV]) (current|volt)\(\d{1,4}\)=(-?\d{1,4}(?:\.\d{1,10})?)([AV])\s*?$",
    re.MULTILINE,
)

_CONDITIONS = ("under_voltage", "clock_capped", "throttled", "soft_temperature_limit")
_SINCE_BOOT_SHIFT = 16
"""Documented: bits 0 to 3 are now, bits 16 to 19 the same conditions since the boot."""


@dataclass(frozen=True, slots=True)
class Throttled:
    """``get_throttled``: conditions now, and at any time since the boot."""

    now: frozenset[str]
    since_boot: frozenset[str]


@dataclass(frozen=True, slots=True)
class PmicRail:
    """One rail of ``pmic_read_adc``; None is what was not printed."""

    amperes: float | None = None
    volts: float | None = None

    @property
    def watts(self) -> float | None:
        """Current times voltage, or None unless both are known."""
        if self.amperes is None or self.volts is None:
            return None
        return self.amperes * self.volts


def parse_throttled(text: str) -> Throttled | None:
    """Read ``throttled=0x50000``; None when it is something else."""
    found = _THROTTLED.search(text)
    if found is None:
        return None
    bits = int(found[1], 16)
    return Throttled(_set_bits(bits), _set_bits(bits >> _SINCE_BOOT_SHIFT))


def parse_temperature(text: str) -> float | None:
    """Degrees Celsius of ``temp=62.3'C``."""
    found = _TEMPERATURE.search(text)
    return float(found[1]) if found else None


def parse_clock(text: str) -> float | None:
    """Hertz of ``frequency(45)=1400000000``. The number in brackets changes with the model."""
    found = _CLOCK.search(text)
    return float(found[2]) if found else None


def parse_volts(text: str) -> float | None:
    """Volts of ``volt=0.7200V``."""
    found = _VOLTS.search(text)
    return float(found[1]) if found else None


def parse_pmic_adc(text: str) -> Mapping[str, PmicRail]:
    """The rails of a Pi 5's ``pmic_read_adc``, by name without the final ``_A`` or ``_V``."""
    rails: dict[str, PmicRail] = {}
    for name, kind, _, number, unit in _RAIL.findall(text):
        if kind != unit:
            continue
        known = rails.get(name, PmicRail())
        amperes = float(number) if unit == "A" else known.amperes
        volts = float(number) if unit == "V" else known.volts
        rails[name] = PmicRail(amperes, volts)
    return rails


def pmic_watts(rails: Mapping[str, PmicRail]) -> float | None:
    """The sum over all rails with a current; None as soon as one of them lacks its voltage.

    It is what the power chip gives to the board, without its own losses and without USB.
    """
    watts = [rail.watts for rail in rails.values() if rail.amperes is not None]
    known = [value for value in watts if value is not None]
    return sum(known) if known and len(known) == len(watts) else None


def _set_bits(bits: int) -> frozenset[str]:
    return frozenset(name for bit, name in enumerate(_CONDITIONS) if bits >> bit & 1)
