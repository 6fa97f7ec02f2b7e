"""Records as JSON text, and back. What a board said may hold any character and any number."""

import json
import math
from typing import TypeVar

from farm.model.record import Record

R = TypeVar("R", bound=Record)


def document(record: Record) -> str:
    """A record as JSON text; the same record gives the same text.

    NaN and infinities are kept as Python's json writes them, so that what was recorded comes
    back as it was.
    """
    return to_text(record.model_dump(mode="json"))


def to_text(value: object) -> str:
    """JSON text; what JSON has no form for becomes text, lone surrogates a question mark."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    return text.encode("utf-8", "replace").decode()


def read_document(kind: type[R], text: str) -> R:
    """The record that `document` wrote. Raises pydantic.ValidationError."""
    return kind.model_validate_json(text)


def plain(text: str, limit: int = 10_000) -> str:
    """Text that every database takes: no NUL, no lone surrogates, at most `limit` characters."""
    if "\0" in text:
        text = text.replace("\0", "\N{REPLACEMENT CHARACTER}")
    return text.encode("utf-8", "replace").decode()[:limit]


def finite(value: float | None) -> float | None:
    """The value, or None when it is no number that can be ranked."""
    return value if value is not None and math.isfinite(value) else None
