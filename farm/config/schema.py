"""JSON schemas of our YAML files, for editors (yaml-language-server).

They describe the files as people write them: groups, defaults, ranges and placeholders in the
inventory, single values for lists in a sweep. Made from the models, so they cannot drift.
"""

from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Literal, get_args

from pydantic import BaseModel, JsonValue

from farm.errors import ConfigError
from farm.model.board import Board, ConnectionLimits, MeterSpec
from farm.model.notify import NotifySpec
from farm.model.payload import PayloadManifest
from farm.model.profile import BoardProfile
from farm.model.sweep import Sweep

Kind = Literal["inventory", "sweep", "payload", "profile"]

KINDS: tuple[Kind, ...] = get_args(Kind)

Schema = dict[str, JsonValue]

_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"
_NAME_OR_RANGE = r"^(?=.)([A-Za-z0-9][A-Za-z0-9._-]*)?(\[[0-9]+\.\.[0-9]+\][A-Za-z0-9._-]*)?$"
_PLACEHOLDER: Schema = {"type": "string", "pattern": r"\{n(:d([+-][0-9]+)?)?\}"}


def json_schema(kind: str) -> Schema:
    """The schema of one kind of file (`KINDS`). Raises ConfigError for another kind."""
    makers: dict[str, Callable[[], Schema]] = {
        "inventory": _inventory,
        "sweep": _sweep,
        "payload": lambda: _of(PayloadManifest),
        "profile": lambda: _of(BoardProfile),
    }
    if kind not in makers:
        raise ConfigError(f'no schema "{kind}"; there are: {", ".join(KINDS)}')
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"farm {kind} file",
        **{key: value for key, value in makers[kind]().items() if key != "title"},
    }


def _of(model: type[BaseModel]) -> Schema:
    return deepcopy(model.model_json_schema())


def _sweep() -> Schema:
    schema = _of(Sweep)
    entry = _mapping(_mapping(schema, "$defs"), "PayloadAxes")
    for owner in (schema, entry):
        for key in ("boards", "power_modes"):
            properties = _mapping(owner, "properties")
            properties[key] = _or(_mapping(properties, key), {"type": "string"})
    axes = _mapping(_mapping(entry, "properties"), "axes")
    values = _mapping(axes, "additionalProperties")
    axes["additionalProperties"] = _or(values, deepcopy(_mapping(values, "items")))
    return schema


def _inventory() -> Schema:
    definitions: Schema = {}
    board, meter = _entry(Board, definitions), _entry(MeterSpec, definitions)
    names = _or({"type": "string"}, {"type": "array", "items": {"type": "string"}})
    definitions["Board"] = _with_key(board, "group", names)
    definitions["Group"] = _with_key(board, "groups", names)
    definitions["Defaults"] = board
    definitions["Meter"] = meter
    notify = _of(NotifySpec)
    definitions.update(_mapping(notify, "$defs"))
    del notify["$defs"]
    definitions["Notify"] = notify
    return {
        "type": "object",
        "properties": {
            "defaults": _or(_ref("Defaults"), {"type": "null"}),
            "groups": _section("Group", _NAME),
            "boards": _section("Board", _NAME_OR_RANGE),
            "meter_defaults": _or(_ref("Meter"), {"type": "null"}),
            "meters": _section("Meter", _NAME_OR_RANGE),
            "limits": _or(_of(ConnectionLimits), {"type": "null"}),
            "notify": _or({"type": "array", "items": _ref("Notify")}, {"type": "null"}),
        },
        "required": ["boards"],
        "additionalProperties": False,
        "$defs": definitions,
    }


def _entry(model: type[BaseModel], definitions: Schema) -> Schema:
    """A model as a layer: no field is a must, numbers may be placeholders.

    The name is left out, for it is the key above. What the model refers to goes to
    `definitions`.
    """
    schema = _of(model)
    inner = schema.pop("$defs", {})
    if isinstance(inner, dict):
        definitions.update({name: _as_layer(value) for name, value in inner.items()})
    _mapping(schema, "properties").pop("name", None)
    layer = _as_layer(schema)
    return layer if isinstance(layer, dict) else {}


def _as_layer(schema: JsonValue) -> JsonValue:
    if isinstance(schema, list):
        return [_as_layer(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    layer: Schema = {
        key: _as_layer(value)
        for key, value in schema.items()
        if key not in ("required", "title", "default", "properties")
    }
    properties = schema.get("properties")
    if isinstance(properties, dict):
        layer["properties"] = {name: _as_layer(value) for name, value in properties.items()}
    return _or(layer, _PLACEHOLDER) if schema.get("type") in ("integer", "number") else layer


def _section(definition: str, name: str) -> Schema:
    """Entries by name; an entry may be empty."""
    entries: Schema = {
        "type": "object",
        "patternProperties": {name: _or(_ref(definition), {"type": "null"})},
        "additionalProperties": False,
    }
    return _or(entries, {"type": "null"})


def _with_key(schema: Schema, key: str, value: Schema) -> Schema:
    copied = deepcopy(schema)
    _mapping(copied, "properties")[key] = value
    return copied


def _or(*schemas: Schema) -> Schema:
    members: Iterable[JsonValue] = schemas
    return {"anyOf": list(members)}


def _ref(definition: str) -> Schema:
    return {"$ref": f"#/$defs/{definition}"}


def _mapping(schema: Schema, key: str) -> Schema:
    value = schema[key]
    if not isinstance(value, dict):
        raise TypeError(key)
    return value
