"""Validation of a document's parts, with exact messages and places."""

from typing import Annotated, Literal

import pytest
from pydantic import AfterValidator, Field

from farm.config.document import MAX_SHOWN, Document, Problem, config_error
from farm.config.yaml_file import parse_document
from farm.errors import ConfigError
from farm.model.record import Record
from farm.model.sweep import Sweep


def _even(value: int) -> int:
    if value % 2:
        raise ValueError("an even number is needed")
    return value


class Options(Record):
    """What a driver might declare."""

    host: str
    port: int = Field(default=80, le=65535)
    kind: Literal["plug", "strip"] = "plug"
    outlets: tuple[int, ...] = ()
    api_token: str | None = None
    twins: Annotated[int, AfterValidator(_even)] = 0


def document_of(options: str) -> Document:
    return parse_document(f"meters:\n  plug-01:\n    options: {options}\n", "inv.yaml")


def errors_of(options: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        document_of(options).validate(("meters", "plug-01", "options"), Options)
    return str(caught.value).splitlines()


def test_a_subtree_becomes_a_model() -> None:
    document = document_of("{host: a, outlets: [1, 2]}")
    options = document.validate(("meters", "plug-01", "options"), Options)
    assert options == Options(host="a", outlets=(1, 2))


@pytest.mark.parametrize(
    ("options", "errors"),
    [
        (
            "{host: a, prot: 1}",
            [
                'inv.yaml:3:24: unknown key "prot"; did you mean "port"? '
                "known: host, port, kind, outlets, api_token, twins"
            ],
        ),
        (
            "{host: a, zzz: 1}",
            [
                'inv.yaml:3:24: unknown key "zzz"; '
                "known: host, port, kind, outlets, api_token, twins"
            ],
        ),
        ("{}", ['inv.yaml:3:5: "host" is missing here']),
        ("{host: 3}", ['inv.yaml:3:21: "host" should be text, not 3']),
        (
            '{host: a, port: "80"}',
            ['inv.yaml:3:30: "port" should be a whole number, not "80"'],
        ),
        ("{host: a, port: true}", ['inv.yaml:3:30: "port" should be a whole number, not true']),
        ("{host: a, port: 70000}", ['inv.yaml:3:30: "port" should be at most 65535, not 70000']),
        ("{host: a, outlets: 1}", ['inv.yaml:3:33: "outlets" should be a list, not 1']),
        (
            "{host: a, outlets: [1, x]}",
            ['inv.yaml:3:37: entry 2 of "outlets" should be a whole number, not "x"'],
        ),
        (
            "{host: a, kind: plugs}",
            [
                "inv.yaml:3:30: \"kind\" should be 'plug' or 'strip', not \"plugs\"; "
                'did you mean "plug"?'
            ],
        ),
        ("{host: a, twins: 3}", ['inv.yaml:3:31: "twins": an even number is needed']),
        ("{host: a, api_token: 123456}", ['inv.yaml:3:35: "api_token" should be text']),
        (
            "{port: -1.5, kind: 3}",
            [
                'inv.yaml:3:5: "host" is missing here',
                'inv.yaml:3:21: "port" should be a whole number, not -1.5',
                "inv.yaml:3:33: \"kind\" should be 'plug' or 'strip', not 3",
            ],
        ),
    ],
)
def test_each_fault_names_its_place(options: str, errors: list[str]) -> None:
    assert errors_of(options) == errors


def test_error_carries_its_place() -> None:
    with pytest.raises(ConfigError) as caught:
        document_of("{host: 3}").validate(("meters", "plug-01", "options"), Options)
    error = caught.value
    assert (error.file, error.line, error.column) == ("inv.yaml", 3, 21)
    assert error.message == '"host" should be text, not 3'


def test_absent_subtree_counts_as_empty() -> None:
    document = parse_document("meters:\n  plug-01:\n    kind: shelly\n", "inv.yaml")
    with pytest.raises(ConfigError) as caught:
        document.validate(("meters", "plug-01", "options"), Options)
    assert str(caught.value) == 'inv.yaml:2:3: "host" is missing here'


def test_subtree_that_is_no_mapping() -> None:
    with pytest.raises(ConfigError) as caught:
        document_of("[1]").validate(("meters", "plug-01", "options"), Options)
    assert (
        str(caught.value) == 'inv.yaml:3:14: "options" should be a mapping (lines of "key: value")'
    )


def test_unknown_keys_of_nested_models_and_union_faults() -> None:
    text = """\
name: x
clocks: lock
payloads:
  - payload: m
    axes: {batch: [1, [2]]}
    exclude:
      - {batch: [1, {}]}
      - {batch: {}}
    repeat: 3
measure: {window_s: 0, settle: {max_temp: 3}}
"""
    with pytest.raises(ConfigError) as caught:
        parse_document(text, "s.yaml").validate((), Sweep)
    assert str(caught.value).splitlines() == [
        "s.yaml:2:9: \"clocks\" should be 'default' or 'locked', not \"lock\"; "
        'did you mean "locked"?',
        's.yaml:5:23: entry 2 of "batch" should be text, a whole number, a number or '
        "true or false, not a list",
        's.yaml:7:21: entry 2 of "batch" should be text, a whole number, a number or '
        "true or false, not a mapping",
        's.yaml:8:17: "batch" should be text, a whole number, a number, true or false or '
        "a list, not a mapping",
        's.yaml:9:5: unknown key "repeat"; did you mean "repeats"? known: payload, boards, '
        "power_modes, axes, include, exclude, repeats, priority",
        's.yaml:10:21: "window_s" should be above 0, not 0',
        's.yaml:10:33: unknown key "max_temp"; did you mean "max_temperature_c"? '
        "known: max_temperature_c, max_wait_s, pause_s, cool_down_s",
    ]


def test_given_fields_are_not_set_in_the_file() -> None:
    document = parse_document("a: {host: x, hots: y}\nb: {port: 1}", "f.yaml")
    _, problems = document.parse(("a",), Options, given={"host": "h"}, also_valid=("group",))
    assert [tuple(problem) for problem in sorted(problems)] == [
        (1, 5, '"host" is not set here: it is the key above'),
        (
            1,
            14,
            'unknown key "hots"; known: port, kind, outlets, api_token, twins, group',
        ),
    ]
    parsed, problems = document.parse(("b",), Options, given={"host": "h"})
    assert (parsed, problems) == (Options(host="h", port=1), [])


def test_many_problems_are_cut() -> None:
    problems = [Problem(line, 1, "wrong") for line in range(1, MAX_SHOWN + 6)]
    lines = str(config_error("f.yaml", [*problems, *problems])).splitlines()
    assert len(lines) == MAX_SHOWN + 1
    assert lines[0] == "f.yaml:1:1: wrong"
    assert lines[-2:] == ["f.yaml:20:1: wrong", "and 5 more problems"]


def test_positions_of_keys_and_values() -> None:
    document = parse_document("a:\n  b: [x,\n    y]\n", "f.yaml")
    assert document.position(("a", "b"), at_key=True) == (2, 3)
    assert document.position(("a", "b", 1)) == (3, 5)
    assert document.position(("a", "b", 7)) == (2, 3)
    assert document.position(("zz",)) == (1, 1)
    assert document.get(("a", "b", 1)) == "y"
    assert document.get(("a", "b", 2)) is None
    assert document.get(("a", "c")) is None
