"""A kernel's list of CPUs, as in /sys/devices/system/cpu/online. Pure."""

import re

_PART = re.compile(r"\s*(\d{1,4})(?:-(\d{1,4}))?\s*")


def parse_cpu_list(text: str) -> frozenset[int]:
    """A kernel's CPU list, e.g. ``0,3-5``. Nonsense gives the empty set."""
    numbers: set[int] = set()
    for part in text.strip().split(","):
        found = _PART.fullmatch(part)
        if found is None:
            return frozenset()
        numbers.update(range(int(found[1]), int(found[2] or found[1]) + 1))
    return frozenset(numbers)
