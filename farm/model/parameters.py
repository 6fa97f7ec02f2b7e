"""Canonical text of parameters, and ids made from content."""

import hashlib
import json
from collections.abc import Mapping


def canonical_json(value: object) -> str:
    """JSON with sorted keys and no blanks: the same value gives the same text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def short_id(value: object, length: int = 10) -> str:
    """The first `length` hex digits of the SHA-256 of the canonical JSON of `value`."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()[:length]


def parameters_text(parameters: Mapping[str, object]) -> str:
    """Parameters for people, e.g. ``batch=8 model=ResNet50``."""
    return " ".join(f"{key}={parameters[key]}" for key in sorted(parameters))
