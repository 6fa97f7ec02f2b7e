"""Answers of ``nvidia-smi --query-gpu=FIELDS --format=csv[,noheader][,nounits]``. Pure.

What a GPU does not have is printed as ``[N/A]``, ``N/A``, ``[Not Supported]`` or another word in
brackets: unknown, never zero. A driver or a GPU that is gone prints a sentence in place of a row.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_HEADING = re.compile(r"([\w.]+)(?: \[[^\]]{1,20}\])?")
_NUMBER = re.compile(r"(-?\d{1,15}(?:\.\d{1,9})?)(?: ?(?:W|MiB|MHz|%|C|s))?")
_UNKNOWN = re.compile(r"\[.{0,60}\]|N/A|Not Supported|")


@dataclass(frozen=True, slots=True)
class SmiAnswer:
    """One row a GPU: field -> text, None where the GPU does not tell it.

    `problem` is the first line that is no row, "" when there was none.
    """

    rows: tuple[Mapping[str, str | None], ...]
    problem: str = ""


def parse_query(text: str, fields: Sequence[str]) -> SmiAnswer:
    """Read the answer to a query of `fields`, with or without its heading."""
    rows: list[Mapping[str, str | None]] = []
    problem = ""
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        if not line.strip() or _headings(cells) == list(fields):
            continue
        if len(cells) != len(fields) or (len(fields) == 1 and _is_sentence(cells[0])):
            problem = problem or line.strip()[:300]
            continue
        rows.append({name: _known(cell) for name, cell in zip(fields, cells, strict=True)})
    return SmiAnswer(tuple(rows), problem)


def smi_number(text: str | None) -> float | None:
    """The number of a cell, with or without its unit; None when it is unknown or no number."""
    found = _NUMBER.fullmatch(text) if text else None
    return float(found[1]) if found else None


def _headings(cells: Sequence[str]) -> list[str]:
    return [found[1] if (found := _HEADING.fullmatch(cell)) else "" for cell in cells]


def _is_sentence(cell: str) -> bool:
    """A query of a single field gives one cell; so does an error. Errors end like sentences."""
    return cell.endswith((".", "!")) or cell.startswith(("NVIDIA-SMI has failed", "No devices"))


def _known(cell: str) -> str | None:
    return None if _UNKNOWN.fullmatch(cell) else cell
