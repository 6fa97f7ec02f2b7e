"""Pydantic's validation errors in words for the person who wrote the file. Pure.

Values under keys that sound secret are never repeated.
"""

import difflib
import json
import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple, Union, get_args, get_origin

from pydantic import BaseModel, JsonValue, ValidationError
from pydantic.fields import FieldInfo

_SECRET = re.compile(
    "password|passphrase|secret|token|credential|api_?key|community", re.IGNORECASE
)

_EXPECTED = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "path_type": "a path",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": 'a mapping (lines of "key: value")',
    "model_type": 'a mapping (lines of "key: value")',
    "model_attributes_type": 'a mapping (lines of "key: value")',
    "greater_than": "above {gt}",
    "greater_than_equal": "at least {ge}",
    "less_than": "below {lt}",
    "less_than_equal": "at most {le}",
    "too_short": "a list of at least {min_length}",
    "literal_error": "{expected}",
    "enum": "{expected}",
}
"""What should stand there, by pydantic's name of the error; braces are its context."""


class Fault(NamedTuple):
    """One thing wrong: where below the validated mapping, and what."""

    location: tuple[str | int, ...]
    message: str
    at_key: bool = False


class _Detail(NamedTuple):
    """What pydantic says of one wrong value: the error's name, its text, its context."""

    kind: str
    text: str
    context: Mapping[str, object]


def nearest(word: str, known: Iterable[str]) -> str:
    """``; did you mean "x"?`` for the known word nearest to `word`, or ""."""
    lowered = {name.lower(): name for name in known}
    close = difflib.get_close_matches(word.lower(), lowered, n=1)
    return f'; did you mean "{lowered[close[0]]}"?' if close else ""


def unknown(kind: str, word: str, known: Iterable[str]) -> str:
    """A message about an unknown word: the nearest known one, and all of them."""
    names = list(known)
    listed = ", ".join(names[:40]) + (", ..." if len(names) > 40 else "")  # noqa: PLR2004
    rest = f"known: {listed}" if names else "none is known here"
    hint = nearest(word, names)
    return f'unknown {kind} "{word}"{hint} {rest}' if hint else f'unknown {kind} "{word}"; {rest}'


def model_faults(
    error: ValidationError,
    model: type[BaseModel],
    data: JsonValue,
    *,
    hidden: tuple[str, ...] = (),
    also_valid: tuple[str, ...] = (),
) -> list[Fault]:
    """All faults of a validation error.

    Args:
        error: what pydantic raised.
        model: the model that was asked for.
        data: the data that was validated.
        hidden: keys at the top that the file does not set; not listed as valid.
        also_valid: further keys that are valid at the top.
    """
    faults: list[Fault] = []
    alternatives: dict[tuple[str | int, ...], list[_Detail]] = {}
    for detail in error.errors(include_url=False):
        place = _place(data, detail["loc"])
        if detail["type"] == "extra_forbidden":
            valid = _valid_keys(model, place[:-1])
            if not place[:-1]:
                valid = [*(key for key in valid if key not in hidden), *also_valid]
            faults.append(Fault(place, unknown("key", str(place[-1]), valid), at_key=True))
        elif detail["type"] == "missing":
            faults.append(Fault(place, f'"{detail["loc"][-1]}" is missing here', at_key=True))
        else:
            said = _Detail(detail["type"], detail["msg"], detail.get("ctx", {}))
            alternatives.setdefault(place, []).append(said)
    for place, details in alternatives.items():
        # Of a union's complaints only those of the member that went deepest help.
        if not any(other[: len(place)] == place and other != place for other in alternatives):
            faults.append(Fault(place, _wrong_value(place, details, data)))
    return faults


def _place(data: JsonValue, loc: tuple[int | str, ...]) -> tuple[str | int, ...]:
    """The part of pydantic's location that exists in the data: union members are left out."""
    place: list[str | int] = []
    value = data
    for step in loc:
        if has_step(value, step):
            value = take_step(value, step)
            place.append(step)
    return tuple(place)


def has_step(value: JsonValue, step: str | int) -> bool:
    """Whether `value` is a mapping with that key or a list with that index."""
    if isinstance(value, dict):
        return step in value
    return isinstance(value, list) and isinstance(step, int) and 0 <= step < len(value)


def take_step(value: JsonValue, step: str | int) -> JsonValue:
    """What stands under a key or index that `has_step` found."""
    if isinstance(value, dict):
        return value[str(step)]
    return value[int(step)] if isinstance(value, list) else None


def _wrong_value(place: tuple[str | int, ...], details: list[_Detail], data: JsonValue) -> str:
    """``"port" should be at most 65535, not 99999``."""
    name = _name(place)
    expected: list[str] = []
    for detail in details:
        template = _EXPECTED.get(detail.kind)
        if template is None:
            text = detail.text.removeprefix("Value error, ").removeprefix("Input should be ")
            if detail.kind == "value_error":
                return f"{name}: {text}" if name else text
        else:
            bounds = {name: _bound(value) for name, value in detail.context.items()}
            text = template.format(**bounds)
        if text not in expected:
            expected.append(text)
    message = f"{name or 'this'} should be {_either(expected)}"
    if any(isinstance(step, str) and _SECRET.search(step) for step in place):
        return message
    value = _value_at(data, place)
    if details[0].kind in ("literal_error", "enum") and isinstance(value, str):
        known = re.findall(r"'([^']*)'", str(details[0].context.get("expected", "")))
        return f"{message}, not {_shown(value)}{nearest(value, known)}"
    return f"{message}, not {_shown(value)}"


def _bound(value: object) -> object:
    """A bound of a model without a needless ``.0``."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _either(words: list[str]) -> str:
    """``a, b or c``."""
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _name(place: tuple[str | int, ...]) -> str:
    """The last key in quotes; a list's entry is counted from 1."""
    if not place:
        return ""
    if isinstance(place[-1], str):
        return f'"{place[-1]}"'
    owner = _name(place[:-1])
    entry = f"entry {place[-1] + 1}"
    return f"{entry} of {owner}" if owner else entry


def _value_at(data: JsonValue, place: tuple[str | int, ...]) -> JsonValue:
    value = data
    for step in place:
        value = take_step(value, step)
    return value


def _shown(value: JsonValue) -> str:
    """A value as a message shows it, short."""
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "an empty list" if not value else "a list"
    if value is None:
        return "nothing"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}..."  # noqa: PLR2004


def _valid_keys(model: type[BaseModel], place: tuple[str | int, ...]) -> list[str]:
    """The keys of the model that stands at `place`, in its own order."""
    for annotation in annotations_at(model, place):
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            return [_key(name, info) for name, info in annotation.model_fields.items()]
    return []


def annotations_at(model: type[BaseModel], place: tuple[str | int, ...]) -> list[object]:
    """The types that may stand at `place` of a model; empty where it has no such place."""
    annotations: list[object] = [model]
    for step in place:
        annotations = [inner for outer in annotations for inner in _inside(outer, step)]
    return annotations


def _inside(annotation: object, step: str | int) -> list[object]:
    """The annotations of what stands under `step`, unions taken apart."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        found = [
            info.annotation
            for name, info in annotation.model_fields.items()
            if step in (name, _key(name, info))
        ]
        return [part for inner in found for part in _parts(inner)]
    arguments = get_args(annotation)
    if not arguments:
        return []
    inner = arguments[1] if get_origin(annotation) is dict else arguments[0]
    return _parts(inner)


def _parts(annotation: object) -> list[object]:
    """The members of a union, else the annotation alone."""
    if get_origin(annotation) is Union or type(annotation).__name__ == "UnionType":
        return list(get_args(annotation))
    return [annotation]


def _key(name: str, info: FieldInfo) -> str:
    """The key that a file uses for a field."""
    return info.validation_alias if isinstance(info.validation_alias, str) else name
