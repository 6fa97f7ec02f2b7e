"""Ranges in names and their placeholders."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.config.ranges import MAX_NAMES, RangeName, expand_name, fill


def test_a_name_without_range() -> None:
    assert expand_name("tx2-01") == [RangeName("tx2-01")]


def test_a_range_keeps_its_width() -> None:
    assert expand_name("tx2-[08..10]b") == [
        RangeName("tx2-08b", "08"),
        RangeName("tx2-09b", "09"),
        RangeName("tx2-10b", "10"),
    ]
    assert [name.name for name in expand_name("[9..11]")] == ["9", "10", "11"]


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("tx2-[1-4]", '"tx2-[1-4]" is no range; write one like tx2-[01..40]'),
        ("tx2-[1..4][1..2]", '"tx2-[1..4][1..2]" is no range; write one like tx2-[01..40]'),
        ("tx2-[1..4", '"tx2-[1..4" is no range; write one like tx2-[01..40]'),
        ("tx2-[4..1]", 'the range of "tx2-[4..1]" ends before it begins'),
        ("x[1..20000]", 'the range of "x[1..20000]" has 20000 names; at most 10000'),
    ],
)
def test_broken_ranges(key: str, message: str) -> None:
    with pytest.raises(ValueError, match="range") as caught:
        expand_name(key)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    "key", ["", "a b", "../x", "a/b", "-x", "all", "last", "tag:x", "é", "a\n"]
)
def test_names_that_would_mean_something_else(key: str) -> None:
    with pytest.raises(ValueError, match="is no name"):
        expand_name(key)


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("plug-{n}", "plug-07"),
        ("10.0.0.{n:d}", "10.0.0.7"),
        ("{n:d+100}", "107"),
        ("{n:d-7}", "0"),
        ("{n}{n:d}", "077"),
        ("{m} {n", "{m} {n"),
    ],
)
def test_placeholders(text: str, filled: str) -> None:
    assert fill(text, "07") == filled


def test_broken_placeholders() -> None:
    with pytest.raises(ValueError, match="needs a range") as caught:
        fill("a {n:d}", None)
    assert str(caught.value) == "{n:d} needs a range in the name, like tx2-[01..40]"
    with pytest.raises(ValueError, match="is no placeholder") as caught:
        fill("a {n:x}", "1")
    assert str(caught.value) == "{n:x} is no placeholder; there are {n}, {n:d}, {n:d+100}"


@given(
    first=st.integers(0, 300),
    count=st.integers(1, 60),
    width=st.integers(1, 5),
    offset=st.integers(-999, 999),
)
def test_a_range_is_what_counting_gives(first: int, count: int, width: int, offset: int) -> None:
    begin = str(first).zfill(width)
    names = expand_name(f"b-[{begin}..{first + count - 1}]")
    assert len(names) == count <= MAX_NAMES
    assert len({name.name for name in names}) == count
    for index, name in enumerate(names):
        assert name.number is not None
        assert name.name == f"b-{name.number}"
        assert int(name.number) == first + index
        assert len(name.number) >= len(begin) if begin.startswith("0") else True
        assert fill(f"{{n:d{offset:+d}}}", name.number) == str(first + index + offset)
