"""Precedence: the entry over its groups, later groups over earlier ones, those over defaults."""

import json

from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from farm.config.layers import Layered
from farm.config.ranges import RangeName
from farm.config.yaml_file import parse_document
from farm.model.board import Board, MeterSpec

_KEYS = st.sampled_from(["host", "user", "port", "python", "work_dir"])
_LAYER = st.dictionaries(_KEYS, st.integers(0, 9), max_size=5)


def layered(layers: list[dict[str, JsonValue]], number: str | None = None) -> Layered:
    text = json.dumps({f"layer{index}": layer for index, layer in enumerate(layers)})
    result = Layered(parse_document(text, "f.yaml"), Board, RangeName("b", number))
    for index in range(len(layers)):
        result.add((f"layer{index}",))
    return result


@given(st.lists(_LAYER, min_size=1, max_size=5))
def test_the_last_layer_that_has_a_key_wins(layers: list[dict[str, JsonValue]]) -> None:
    expected: dict[str, JsonValue] = {}
    owners: dict[str, int] = {}
    for index, layer in enumerate(layers):
        expected.update(layer)
        owners.update(dict.fromkeys(layer, index))
    result = layered(layers)
    assert result.data == expected
    assert result.origins == {(key,): (f"layer{owners[key]}", key) for key in expected}


@given(st.lists(st.lists(st.sampled_from("abcdef"), max_size=4), min_size=1, max_size=5))
def test_tags_are_united_in_order_without_repeats(tags: list[list[str]]) -> None:
    result = layered([{"tags": list(dict.fromkeys(words))} for words in tags])
    flat = [word for words in tags for word in words]
    assert result.data["tags"] == list(dict.fromkeys(flat))


def test_mappings_are_merged_and_other_values_replaced() -> None:
    result = layered(
        [
            {"simulation": {"seed": 1, "ambient_c": 20}, "host_key_algorithms": ["a", "b"]},
            {"simulation": {"seed": 2}, "host_key_algorithms": ["c"]},
        ]
    )
    assert result.data == {
        "simulation": {"seed": 2, "ambient_c": 20},
        "host_key_algorithms": ["c"],
    }
    assert result.origins["simulation", "seed"] == ("layer1", "simulation", "seed")
    assert result.origins["simulation", "ambient_c"] == ("layer0", "simulation", "ambient_c")
    assert ("host_key_algorithms", 1) not in result.origins


def test_null_takes_a_value_back() -> None:
    assert layered([{"meter": "plug"}, {"meter": None}]).data == {"meter": None}


def test_layers_do_not_change_the_file() -> None:
    text = "a: {simulation: {seed: 1}, tags: [x]}\nb: {simulation: {seed: 2}, tags: [y]}\n"
    document = parse_document(text, "f.yaml")
    for _ in range(2):
        result = Layered(document, Board, RangeName("b"))
        result.add(("a",))
        result.add(("b",))
    assert document.data == parse_document(text, "f.yaml").data


def test_a_filled_number_is_a_number_where_one_is_wanted() -> None:
    filled = layered(
        [{"port": "22{n}", "user": "{n:d}", "tags": ["{n:d}"], "host": "10.0.0.{n:d}"}], "07"
    ).data
    assert filled == {"port": 2207, "user": "7", "tags": ["7"], "host": "10.0.0.7"}


def test_a_drivers_options_take_numbers_but_keep_leading_zeros() -> None:
    document = parse_document('m: {options: {id: "{n:d}", serial: "{n}", url: "/{n}"}}', "f.yaml")
    result = Layered(document, MeterSpec, RangeName("m", "07"))
    result.add(("m",))
    assert result.data == {"options": {"id": 7, "serial": "07", "url": "/07"}}
