"""Cores by /proc/cpuinfo of 64-bit Arm (and the model name of others). Pure.

L4T's kernels add ``model name`` and, for NVIDIA's own cores, ``MTS version``; mainline prints
neither. Offline cores are not listed.
"""

import re
from dataclasses import dataclass

CORES = {
    (0x41, 0xD03): "Cortex-A53",
    (0x41, 0xD04): "Cortex-A35",
    (0x41, 0xD05): "Cortex-A55",
    (0x41, 0xD07): "Cortex-A57",
    (0x41, 0xD08): "Cortex-A72",
    (0x41, 0xD0B): "Cortex-A76",
    (0x41, 0xD42): "Cortex-A78AE",
    (0x4E, 0x003): "Denver 2",
    (0x4E, 0x004): "Carmel",
}
"""(implementer, part) -> name; documented in Linux's cputype.h and NVIDIA's board pages."""


@dataclass(frozen=True, slots=True)
class Core:
    """One core that is online. `name` is "" where neither its numbers nor its text tell it."""

    number: int
    name: str = ""
    implementer: int | None = None
    part: int | None = None


@dataclass(frozen=True, slots=True)
class Cpuinfo:
    """The cores in their order; `hardware` and `model` are lines of old kernels and of the Pi."""

    cores: tuple[Core, ...] = ()
    hardware: str = ""
    model: str = ""


def parse_cpuinfo(text: str) -> Cpuinfo:
    """Read /proc/cpuinfo; serial numbers are left alone."""
    blocks: list[dict[str, str]] = []
    board: dict[str, str] = {}
    for line in text.splitlines():
        name, _, value = (part.strip() for part in line.partition(":"))
        if name == "processor":
            blocks.append({})
        if name in ("Hardware", "Model"):
            board[name] = value
        elif blocks:
            blocks[-1][name] = value
    return Cpuinfo(
        cores=tuple(core for block in blocks if (core := _core(block)) is not None),
        hardware=board.get("Hardware", ""),
        model=board.get("Model", ""),
    )


def _core(block: dict[str, str]) -> Core | None:
    number = block.get("processor", "")
    if not re.fullmatch(r"[0-9]{1,5}", number):
        return None
    implementer, part = _hex(block.get("CPU implementer")), _hex(block.get("CPU part"))
    name = CORES.get((implementer, part), "") if implementer is not None and part else ""
    return Core(int(number), name or block.get("model name", ""), implementer, part)


def _hex(text: str | None) -> int | None:
    return int(text, 16) if text and re.fullmatch(r"0x[0-9a-fA-F]{1,8}", text) else None
