import pytest

from farm.errors import ConfigError
from farm.planning.selection import boards_in_maintenance, select_boards
from tests.planning.builders import board

BOARDS = (
    board("tx2-1", tags=("gpu", "rack-a")),
    board("tx2-2", tags=("gpu",)),
    board("nano-1", "nano", tags=("gpu",)),
    board("pi-1", "pi"),
    board("tx2-3", tags=("gpu",), is_maintenance=True),
)


@pytest.mark.parametrize(
    ("selectors", "names"),
    [
        (["all"], ["tx2-1", "tx2-2", "nano-1", "pi-1"]),
        (["pi-1", "tx2-1"], ["tx2-1", "pi-1"]),
        (["tx2-*"], ["tx2-1", "tx2-2"]),
        (["tx2-[12]", "tag:gpu"], ["tx2-1", "tx2-2", "nano-1"]),
        (["profile:nano", "nano-1"], ["nano-1"]),
        (["!tx2-2", "tag:gpu"], ["tx2-1", "nano-1"]),
        (["all", "!tag:gpu"], ["pi-1"]),
        (["!tx2-*"], ["nano-1", "pi-1"]),
        ([], ["tx2-1", "tx2-2", "nano-1", "pi-1"]),
        (["tx2-3"], []),
        (["pi-1", "!all"], []),
    ],
)
def test_selectors_name_boards_in_inventory_order(selectors: list[str], names: list[str]) -> None:
    assert [b.name for b in select_boards(BOARDS, selectors)] == names


@pytest.mark.parametrize(
    ("selector", "hint"),
    [
        ("tx2-9", "tx2-1"),
        ("!tx2_1", "tx2-1"),
        ("tag:gqu", "tag:gpu"),
        ("profile:nanoo", "profile:nano"),
        ("nope-*", "a glob"),
        ("tag:", "tag:gpu"),
    ],
)
def test_an_unknown_selector_is_an_error_with_the_nearest_words(selector: str, hint: str) -> None:
    with pytest.raises(ConfigError, match="no board matches") as caught:
        select_boards(BOARDS, ["all", selector])
    assert hint in str(caught.value)


def test_an_exact_name_is_no_glob() -> None:
    odd = (board("a[1]"), board("a1"))
    assert [b.name for b in select_boards(odd, ["a[1]"])] == ["a[1]"]


def test_boards_in_maintenance_are_told_apart() -> None:
    assert [b.name for b in boards_in_maintenance(BOARDS, ["tag:gpu"])] == ["tx2-3"]
    assert boards_in_maintenance(BOARDS, ["all", "!tx2-3"]) == ()
