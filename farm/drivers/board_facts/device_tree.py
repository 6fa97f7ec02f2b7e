"""Which board it is by its device tree: /proc/device-tree/model and /compatible. Pure.

Both files end with NUL; `compatible` is a list separated by NUL. The model's wording changes
with the release, so boards are told by the part number in `compatible`. In
``nvidia,p3768-0000+p3767-0005-super`` the last part is the module, the one before it its
carrier. Which part is which board stands in the profiles.
"""

import re
from dataclasses import dataclass

_SPLIT = re.compile(r"[\x00\r\n]+")
_PART = re.compile(r"(?<!\w)p\d{4}-\d{4}(?:-super)?(?!\w)")
_CHIP = re.compile(r"nvidia,(tegra\d{3})(?!\w)")


@dataclass(frozen=True, slots=True)
class DeviceTree:
    """A board by its device tree. "" and () are unknown.

    `modules` are the part numbers of NVIDIA's modules, the most exact entry's first, without
    their carriers; ``-super`` is part of the number where the tree says so.
    """

    model: str = ""
    compatible: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    chip: str = ""


def parse_device_tree(model: str, compatible: str) -> DeviceTree:
    """Read the text of the two files; either may be "" where it is missing."""
    entries = parse_compatible(compatible)
    parts = [found[-1] for entry in entries if (found := _PART.findall(entry))]
    chips = [chip[1] for entry in entries if (chip := _CHIP.fullmatch(entry))]
    return DeviceTree(
        model=parse_model(model),
        compatible=entries,
        modules=tuple(dict.fromkeys(parts)),
        chip=chips[0] if chips else "",
    )


def parse_model(text: str) -> str:
    """The model's name without its NUL."""
    return next((part.strip() for part in _SPLIT.split(text) if part.strip()), "")


def parse_compatible(text: str) -> tuple[str, ...]:
    """The entries, the most exact one first."""
    return tuple(part.strip() for part in _SPLIT.split(text) if part.strip())
