"""The words of messages."""

from farm.config.model_errors import annotations_at, nearest, unknown
from farm.model.board import Board, MeterSpec


def test_nearest_ignores_case() -> None:
    assert nearest("maxn", ["MAXN", "MAXQ"]) == '; did you mean "MAXN"?'
    assert nearest("zzz", ["MAXN"]) == ""


def test_unknown_lists_what_is_known() -> None:
    assert unknown("meter", "plug-1", ["plug-01", "strip"]) == (
        'unknown meter "plug-1"; did you mean "plug-01"? known: plug-01, strip'
    )
    assert unknown("meter", "x", []) == 'unknown meter "x"; none is known here'


def test_unknown_cuts_long_lists() -> None:
    message = unknown("board", "x", [f"board-{n:03}" for n in range(200)])
    assert message.endswith("board-039, ...")


def test_annotations_at_a_place() -> None:
    assert annotations_at(Board, ("port",)) == [int]
    assert annotations_at(Board, ("tags", 3)) == [str]
    assert annotations_at(Board, ("simulation", "seed")) == [int]
    assert annotations_at(Board, ("nothing",)) == []
    assert str not in annotations_at(MeterSpec, ("options", "id"))
