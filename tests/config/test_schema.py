"""The editors' schemas, by a small validator of the words that they use."""

import re
from pathlib import Path

import pytest
from pydantic import JsonValue

from farm.config.builtin import builtin_file, builtin_folder
from farm.config.schema import KINDS, json_schema
from farm.config.yaml_file import load_document, parse_document
from farm.errors import ConfigError

Schema = dict[str, JsonValue]

_WORDS = {
    *("$schema", "$defs", "$ref", "title", "description", "default", "format", "type", "anyOf"),
    *("properties", "patternProperties", "additionalProperties", "required", "items", "enum"),
    *("const", "pattern", "minimum", "maximum", "exclusiveMinimum", "minItems"),
}

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}


class Validator:
    """Just enough of JSON Schema; an unknown word is a failure of its own."""

    def __init__(self, root: Schema) -> None:
        self.root = root

    def faults(self, value: JsonValue, schema: JsonValue, place: str = "") -> list[str]:
        if schema is True or schema == {}:
            return []
        if not isinstance(schema, dict):
            return [f"{place}: not allowed"]
        assert set(schema) <= _WORDS, set(schema) - _WORDS
        found: list[str] = []
        if "$ref" in schema:
            definitions = self.root["$defs"]
            assert isinstance(definitions, dict)
            found += self.faults(value, definitions[str(schema["$ref"]).split("/")[-1]], place)
        if isinstance(members := schema.get("anyOf"), list):
            tries = [self.faults(value, member, place) for member in members]
            shortest = min(tries, key=len)
            found += shortest
        kind = schema.get("type")
        if isinstance(kind, str):
            is_bool = isinstance(value, bool) and kind != "boolean"
            if is_bool or not isinstance(value, _TYPES[kind]):
                return [*found, f"{place}: no {kind}"]
        return found + self._bounds(value, schema, place) + self._inner(value, schema, place)

    def _bounds(self, value: JsonValue, schema: Schema, place: str) -> list[str]:
        found = []
        if isinstance(choices := schema.get("enum"), list) and value not in choices:
            found.append(f"{place}: none of {choices}")
        if "const" in schema and value != schema["const"]:
            found.append(f"{place}: not {schema['const']}")
        if isinstance(value, str) and isinstance(pattern := schema.get("pattern"), str):
            found += [] if re.search(pattern, value) else [f"{place}: no {pattern}"]
        if isinstance(value, int | float):
            low, high = schema.get("minimum"), schema.get("maximum")
            found += [f"{place}: too low"] if isinstance(low, int | float) and value < low else []
            found += (
                [f"{place}: too high"] if isinstance(high, int | float) and value > high else []
            )
        return found

    def _inner(self, value: JsonValue, schema: Schema, place: str) -> list[str]:
        found = []
        if isinstance(value, list) and "items" in schema:
            for index, item in enumerate(value):
                found += self.faults(item, schema["items"], f"{place}/{index}")
        if isinstance(value, dict):
            properties = schema.get("properties", {})
            patterns = schema.get("patternProperties", {})
            required = schema.get("required", [])
            assert isinstance(properties, dict)
            assert isinstance(patterns, dict)
            assert isinstance(required, list)
            found += [f"{place}: needs {key}" for key in required if key not in value]
            for key, item in value.items():
                inner = [properties[key]] if key in properties else []
                inner += [part for text, part in patterns.items() if re.search(text, key)]
                inner = inner or [schema.get("additionalProperties", True)]
                for part in inner:
                    found += self.faults(item, part, f"{place}/{key}")
        return found


def faults_of(kind: str, data: JsonValue) -> list[str]:
    schema = json_schema(kind)
    return Validator(schema).faults(data, schema)


def shipped(kind: str) -> list[Path]:
    return {
        "inventory": lambda: [builtin_file("inventory.yaml")],
        "sweep": lambda: sorted(builtin_folder("sweeps").glob("*.yaml")),
        "payload": lambda: sorted(builtin_folder("payloads").glob("*/payload.yaml")),
        "profile": lambda: sorted(builtin_folder("device_profiles").glob("*.yaml")),
    }[kind]()


@pytest.mark.parametrize("kind", KINDS)
def test_the_shipped_files_hold(kind: str) -> None:
    files = shipped(kind)
    assert files
    for path in files:
        assert (path, faults_of(kind, dict(load_document(path).data))) == (path, [])


@pytest.mark.parametrize(
    ("kind", "text", "fault"),
    [
        ("inventory", "bords: {}", "/bords: not allowed"),
        ("inventory", "boards: {a: {prt: 3}}", "/boards/a/prt: not allowed"),
        ("inventory", "boards: {a: {name: a}}", "/boards/a/name: not allowed"),
        ("inventory", "boards: {a: {port: x}}", "/boards/a/port: no integer"),
        ("inventory", "boards: {'a[1-2]': {}}", "/boards/a[1-2]: not allowed"),
        ("inventory", "boards: {a: {group: 3}}", "/boards/a/group: no string"),
        ("inventory", "boards:\ndefaults: {group: x}", "/defaults/group: not allowed"),
        ("inventory", "boards:\nlimits: {connecting: 0}", "/limits/connecting: too low"),
        ("sweep", "name: x", ": needs payloads"),
        ("sweep", "name: x\npayloads: [{payload: p, axes: {a: {}}}]", "/payloads/0/axes/a: no"),
        ("payload", "name: x", ": needs level"),
        ("profile", "name: x\nsummary: y\ncores: 0", "/cores: too low"),
    ],
)
def test_faults_are_seen(kind: str, text: str, fault: str) -> None:
    assert any(
        found.startswith(fault) for found in faults_of(kind, dict(parse_document(text, "f").data))
    )


def test_the_short_forms_hold() -> None:
    text = """\
defaults: {user: u, simulation: {seed: "{n:d}"}}
groups: {a: {port: 22}, b: {groups: a}}
boards:
  "tx2-[01..40]": {group: [a, b], port: "{n:d+2200}", host: "10.0.0.{n:d}", meter: null}
  c:
meters: {"[1..4]-plug": {kind: shelly, port: "80{n}", options: {any: [thing]}}}
"""
    assert faults_of("inventory", dict(parse_document(text, "f").data)) == []
    text = (
        "name: x\nboards: all\npower_modes: maxn\npayloads: [{payload: p, axes: {a: 1, b: [2]}}]"
    )
    assert faults_of("sweep", dict(parse_document(text, "f").data)) == []


def test_unknown_kind() -> None:
    with pytest.raises(ConfigError) as caught:
        json_schema("boards")
    assert str(caught.value) == 'no schema "boards"; there are: inventory, sweep, payload, profile'
