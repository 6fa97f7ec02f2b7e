"""Texts that are not our YAML: each gives one clear message with its place."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.config.yaml_file import MAX_BYTES, load_document, load_model, parse_document
from farm.errors import ConfigError
from farm.model.board import MeterAccuracy


def message_of(text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        parse_document(text, "f.yaml")
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "f.yaml: the file is empty; it should be a mapping"),
        ("# only a comment\n", "f.yaml: the file is empty; it should be a mapping"),
        (
            "- 1",
            'f.yaml:1:1: the file should be a mapping (lines of "key: value"), not a list',
        ),
        (
            "hello",
            'f.yaml:1:1: the file should be a mapping (lines of "key: value"), not a single value',
        ),
        ("a: 1\nb:\n  c: 1\n  c: 2\n", 'f.yaml:4:3: the key "c" is given twice here'),
        ("a: {b: 1, b: 2}", 'f.yaml:1:11: the key "b" is given twice here'),
        (
            "a: [1,\nb: 2",
            "f.yaml:2:5: not valid YAML: expected ',' or ']', but got '<stream end>' "
            "(while parsing a flow sequence)",
        ),
        (
            "a:\n\tb: 1",
            "f.yaml:2:1: not valid YAML: a tab character where YAML wants blanks; "
            "indent with blanks",
        ),
        ("a: 1\n b: 2\n", "f.yaml:2:3: not valid YAML: mapping values are not allowed here"),
        ("a: 1\nb: \x01", "f.yaml:2:4: a character that YAML does not allow: U+0001"),
        ("a: 1\n---\nb: 2", "f.yaml:2:1: not valid YAML: but found another document"),
        ("1: a", "f.yaml:1:1: a key should be text; put it in quotes"),
        ("a: 2026-11-30", "f.yaml:1:4: a date or time; put it in quotes to make it text"),
        ("a: .nan", "f.yaml:1:4: not a finite number"),
        ("a: [1, 1.0e+999]", "f.yaml:1:8: not a finite number"),
        ("a: !!set {x}", "f.yaml:1:4: a kind of value that is not used here"),
        ('a: "\\ud800"', "f.yaml:1:4: half of a character (a lone surrogate)"),
        (
            "a: !!python/object:os.system {}",
            'f.yaml:1:4: tags are not used here; quote text that begins with "!"',
        ),
        ("a: " + "[" * 1000, "f.yaml: not readable as YAML: it is nested too deeply"),
        ("a: " + "9" * 5000, "f.yaml: not readable as YAML: a broken value"),
    ],
)
def test_broken_text(text: str, message: str) -> None:
    assert message_of(text) == message


@pytest.mark.parametrize(
    "text",
    ["password: *hunter2", "password: !hunter2 x", "password: hunter2\npassword: hunter2", "{"],
)
def test_messages_repeat_no_values(text: str) -> None:
    assert "hunter2" not in message_of(text)


def test_all_refused_values_are_told_at_once() -> None:
    assert message_of("a: .inf\nb: 2026-11-30\n").splitlines() == [
        "f.yaml:1:4: not a finite number",
        "f.yaml:2:4: a date or time; put it in quotes to make it text",
    ]


def test_values_of_yaml_1_2() -> None:
    document = parse_document("a: 22:30\nb: on\nc: 0x10\nd: 1.5\ne: null\nf: no", "f.yaml")
    assert document.data == {"a": "22:30", "b": "on", "c": 16, "d": 1.5, "e": None, "f": "no"}
    assert [type(value) for value in document.data.values()] == [
        str,
        str,
        int,
        float,
        type(None),
        str,
    ]


def test_anchors_and_merge_keys() -> None:
    document = parse_document("x: &b {p: 1}\ny:\n  <<: *b\n  q: [2, *b]\n", "f.yaml")
    assert document.data["y"] == {"q": [2, {"p": 1}], "p": 1}
    assert document.position(("y", "q", 0)) == (4, 7)
    assert document.position(("y", "p")) == (3, 3)


def test_an_alias_bomb_is_stopped() -> None:
    rows = ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    rows += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    assert message_of("\n".join(rows)) == "f.yaml: more than 100000 values"


def test_missing_file(tmp_path: Path) -> None:
    path = tmp_path / "none.yaml"
    with pytest.raises(ConfigError) as caught:
        load_document(path)
    assert str(caught.value) == f"{path}: no such file"


def test_folder(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="this is a folder, a YAML file is needed"):
        load_document(tmp_path)


def test_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "f.yaml"
    path.write_bytes(b"a: 1\nb: gr\xc3\xbc\xdfe\n")
    with pytest.raises(ConfigError) as caught:
        load_document(path)
    assert str(caught.value) == f"{path}:2:7: not UTF-8 text: byte 0xdf; save the file as UTF-8"


def test_byte_order_mark_is_no_fault(tmp_path: Path) -> None:
    path = tmp_path / "f.yaml"
    path.write_bytes(b"\xef\xbb\xbfa: 1\n")
    assert load_document(path).data == {"a": 1}


def test_too_large(tmp_path: Path) -> None:
    path = tmp_path / "f.yaml"
    path.write_bytes(b"#" * (MAX_BYTES + 1))
    with pytest.raises(ConfigError, match="larger than 4 MB"):
        load_document(path)


def test_load_model(tmp_path: Path) -> None:
    path = tmp_path / "f.yaml"
    path.write_text("gain_pct: 1\n")
    assert load_model(path, MeterAccuracy) == MeterAccuracy(gain_pct=1)
    path.write_text("gain_pct: -1\n")
    with pytest.raises(ConfigError) as caught:
        load_model(path, MeterAccuracy)
    assert str(caught.value) == f'{path}:1:11: "gain_pct" should be at least 0, not -1'


@given(st.text(alphabet="ab:- \n\t[]{}&*!|>'\"#%@,?0159._~<=", max_size=60))
def test_any_text_gives_a_mapping_or_a_config_error(text: str) -> None:
    try:
        data: object = parse_document(text, "f.yaml").data
    except ConfigError as error:
        data = {"message": error.message} if error.file == "f.yaml" else None
    assert isinstance(data, dict)
