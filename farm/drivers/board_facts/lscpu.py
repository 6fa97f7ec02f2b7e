"""Processors by ``lscpu``. Pure.

util-linux indents from 2.37 on; a chip with several kinds of cores has a block for each, which
begins with its ``Model name``.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

_CACHE = re.compile(r"L[1-4][di]?")


@dataclass(frozen=True, slots=True)
class CpuKind:
    """One kind of core. `cpus` are all logical CPUs of the kind, None where it is not told."""

    name: str
    cpus: int | None = None
    max_mhz: float | None = None
    min_mhz: float | None = None


@dataclass(frozen=True, slots=True)
class LscpuFacts:
    """What lscpu told; "" and None are unknown. `online` is a list such as ``0,3-5``."""

    architecture: str = ""
    cpus: int | None = None
    online: str = ""
    vendor: str = ""
    kinds: tuple[CpuKind, ...] = ()
    caches: tuple[tuple[str, str], ...] = ()


def parse_lscpu(text: str) -> LscpuFacts:
    """Read the output of ``lscpu`` in the C locale."""
    common: dict[str, str] = {}
    blocks: list[dict[str, str]] = []
    for line in text.splitlines():
        name, _, value = (part.strip() for part in line.partition(":"))
        if not name or not value:
            continue
        if name == "Model name":
            blocks.append({})
        (blocks[-1] if blocks else common).setdefault(name, value)
        common.setdefault(name, value)
    caches = tuple((name, value) for name, value in common.items() if _is_cache(name))
    return LscpuFacts(
        architecture=common.get("Architecture", ""),
        cpus=_count(common.get("CPU(s)")),
        online=common.get("On-line CPU(s) list", ""),
        vendor=common.get("Vendor ID", ""),
        kinds=tuple(_kind(block) for block in blocks),
        caches=caches,
    )


def _kind(block: dict[str, str]) -> CpuKind:
    threads = _count(block.get("Thread(s) per core")) or 1
    per_group, groups = _groups(block)
    cpus = None if per_group is None or groups is None else per_group * groups * threads
    return CpuKind(
        name=block["Model name"],
        cpus=cpus,
        max_mhz=_mhz(block.get("CPU max MHz")),
        min_mhz=_mhz(block.get("CPU min MHz")),
    )


def _groups(block: dict[str, str]) -> Sequence[int | None]:
    """Cores in a group and how many groups: clusters where there are no sockets to speak of."""
    for each, count in (
        ("Core(s) per cluster", "Cluster(s)"),
        ("Core(s) per socket", "Socket(s)"),
    ):
        if _count(block.get(each)) is not None:
            return _count(block[each]), _count(block.get(count))
    return None, None


def _is_cache(name: str) -> bool:
    return _CACHE.fullmatch(name.removesuffix(" cache")) is not None


def _count(text: str | None) -> int | None:
    return int(text) if text and re.fullmatch(r"[0-9]{1,6}", text) else None


def _mhz(text: str | None) -> float | None:
    return float(text) if text and re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,6})?", text) else None
