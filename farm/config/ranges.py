"""Ranges in names and the placeholders that use them. Pure.

``tx2-[01..40]`` stands for forty names. In the values below such a key, ``{n}`` is the number
as written (``01``), ``{n:d}`` the plain integer (``1``), ``{n:d+100}`` the integer with an
offset. Faults are ValueError; the caller knows file and line.
"""

import re
from dataclasses import dataclass

MAX_NAMES = 10_000
"""A longer range is taken for a slip of the keyboard."""

_RANGE = re.compile(r"([^\[\]]*)\[(\d{1,9})\.\.(\d{1,9})\]([^\[\]]*)")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_PLACEHOLDER = re.compile(r"\{n(?::([^{}]*))?\}")
_INTEGER = re.compile(r"d([+-]\d{1,9})?")


@dataclass(frozen=True, slots=True)
class RangeName:
    """One name; `number` is its text in the range, None for a name without a range."""

    name: str
    number: str | None = None


def expand_name(key: str) -> list[RangeName]:
    """All names that a key stands for, in order. Raises ValueError."""
    if "[" not in key and "]" not in key:
        return [RangeName(_checked(key))]
    found = _RANGE.fullmatch(key)
    if found is None:
        raise ValueError(f'"{key}" is no range; write one like tx2-[01..40]')
    before, first, last, after = found.groups()
    count = int(last) - int(first) + 1
    if count < 1:
        raise ValueError(f'the range of "{key}" ends before it begins')
    if count > MAX_NAMES:
        raise ValueError(f'the range of "{key}" has {count} names; at most {MAX_NAMES}')
    width = len(first) if first.startswith("0") else 0
    numbers = [str(number).zfill(width) for number in range(int(first), int(last) + 1)]
    return [RangeName(_checked(f"{before}{number}{after}"), number) for number in numbers]


def _checked(name: str) -> str:
    if not _NAME.fullmatch(name) or name in ("all", "last"):
        raise ValueError(
            f'"{name}" is no name: use letters, digits, ".", "_", "-", at most 64, beginning '
            'with a letter or digit; "all" and "last" have a meaning of their own'
        )
    return name


def has_placeholder(text: str) -> bool:
    """Whether the text uses the number of a range."""
    return _PLACEHOLDER.search(text) is not None


def fill(text: str, number: str | None) -> str:
    """The text with its placeholders replaced. Raises ValueError."""

    def replace(found: "re.Match[str]") -> str:
        if number is None:
            raise ValueError(f"{found[0]} needs a range in the name, like tx2-[01..40]")
        form = found[1]
        if form is None:
            return number
        integer = _INTEGER.fullmatch(form)
        if integer is None:
            raise ValueError(
                f"{found[0]} is no placeholder; there are {{n}}, {{n:d}}, {{n:d+100}}"
            )
        return str(int(number) + int(integer[1] or 0))

    return _PLACEHOLDER.sub(replace, text)
