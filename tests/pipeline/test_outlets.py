"""Which boards share an outlet, whatever their inventory calls it."""

import pytest

from farm.model.board import Board, Inventory, MeterSpec
from farm.pipeline.outlets import sharers


def board(name: str, outlet: str | None = None, meter: str | None = None) -> Board:
    return Board(name=name, profile="p", host=name, user="u", outlet=outlet, meter=meter)


def plug(name: str, host: str = "192.0.2.1", **more: object) -> MeterSpec:
    return MeterSpec.model_validate({"name": name, "kind": "shelly", "host": host, **more})


OWN = plug("own", "192.0.2.9")


@pytest.mark.parametrize(
    ("other", "plugs", "found"),
    [
        (board("b", outlet="one"), (), ("b",)),
        (board("b", meter="one"), (), ("b",)),
        (board("b", meter="own"), (), ()),
        (board("b"), (), ()),
        (board("b", outlet="two"), (plug("two"),), ("b",)),
        (board("b", outlet="two"), (plug("two", options={"id": 0}),), ("b",)),
        (board("b", outlet="two"), (plug("two", options={"id": 1}),), ()),
        (board("b", outlet="two"), (plug("two", options={"generation": 2}),), ("b",)),
        (board("b", outlet="two"), (plug("two", "192.0.2.2"),), ()),
        (board("b", meter="two"), (plug("two", "192.0.2.1."),), ("b",)),
    ],
)
def test_boards_behind_one_plug(
    other: Board, plugs: tuple[MeterSpec, ...], found: tuple[str, ...]
) -> None:
    first = board("a", outlet="one", meter="one")
    inventory = Inventory(boards=(first, other), meters=(plug("one"), OWN, *plugs))
    assert sharers(inventory, first) == found


def test_a_board_without_an_outlet_shares_none() -> None:
    inventory = Inventory(
        boards=(board("a", meter="one"), board("b", meter="one")), meters=(plug("one"),)
    )
    assert sharers(inventory, inventory.boards[0]) == ()
