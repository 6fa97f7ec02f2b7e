"""The Jetson Linux (L4T) release: /etc/nv_tegra_release, else the package's version. Pure.

The file's first line, R28 to R39::

    # R36 (release), REVISION: 4.4, GCID: 41062509, BOARD: generic, EABI: aarch64, DATE: ...

On Yocto, NixOS and some small images it is missing; ``dpkg-query --show nvidia-l4t-core`` then
tells the release, where there are Debian packages.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

_FIRST = re.compile(
    r"^#?[ \t]*R(\d{1,3})\b[^,\n]{0,40},[ \t]*REVISION:[ \t]*(\d[\d.]{0,15})", re.MULTILINE
)
_PAIR = re.compile(r"\b([A-Z_]+):[ \t]*([^,\r\n]{1,100}?)[ \t]*(?=,|\r?$)", re.MULTILINE)
_SETTING = re.compile(
    r"^(?:#[ \t]*)?([A-Z_]{3,60})(?:=|:[ \t]+)(\S{1,200})[ \t]*\r?$", re.MULTILINE
)
_PACKAGE = re.compile(
    r"(?:^|\s)(?:nvidia-l4t-core(?::\w+)?\s+)?(\d{2,3})\.(\d{1,2}(?:\.\d{1,2})?)-(\d{8,14})(?!\S)"
)


@dataclass(frozen=True, slots=True)
class L4tRelease:
    """A release of Jetson Linux.

    `board` is ``t210ref``, ``t186ref`` (also Xavier, and Orin up to R35) or ``generic``: no
    sign of the board's type. `date` is as printed, in one of two clock formats; `source` is
    ``nv_tegra_release`` or ``dpkg``; `settings` are the file's further lines.
    """

    major: int
    revision: str
    gcid: str = ""
    board: str = ""
    date: str = ""
    source: str = "nv_tegra_release"
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """E.g. ``R36.4.4``."""
        return f"R{self.major}.{self.revision}"


def parse_l4t_release(text: str) -> L4tRelease | None:
    """The release from either source, or None."""
    return parse_nv_tegra_release(text) or parse_l4t_package(text)


def parse_nv_tegra_release(text: str) -> L4tRelease | None:
    """Read /etc/nv_tegra_release, whole or its first line; None when it is something else."""
    first = _FIRST.search(text)
    if first is None:
        return None
    line, _, rest = text[first.start() :].partition("\n")
    pairs = dict(_PAIR.findall(line))
    return L4tRelease(
        major=int(first[1]),
        revision=first[2].rstrip("."),
        gcid=pairs.get("GCID", ""),
        board=pairs.get("BOARD", ""),
        date=pairs.get("DATE", ""),
        settings=dict(_SETTING.findall(rest)),
    )


def parse_l4t_package(text: str) -> L4tRelease | None:
    """Read ``dpkg-query --show nvidia-l4t-core``, e.g. ``36.4.4-20250616085344``; else None."""
    found = _PACKAGE.search(text)
    if found is None:
        return None
    return L4tRelease(int(found[1]), found[2], date=found[3], source="dpkg")
