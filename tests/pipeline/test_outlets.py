"""Which boards share an outlet, whatever their inventory calls it."""

import pytest

from farm.model.board import Board, Inventory, MeterSpec
from farm.pipeline.outlets import sharers


def board(name: str, outlet: str | None = None, meter: str | None = None) -> Board:
    return Board(name=name, profile="p", host=name, user="u", outlet=outlet, meter=meter)


def plug(name: str, host: str = "192.0.2.1", **more: object) -> MeterSpec:
    return MeterSpec.model_validate({"name": name, "kind": "shelly", "host": host} | more)


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


@pytest.mark.parametrize(
    ("kind", "one", "two"),
    [
        ("mqtt-json", {"preset": "shelly", "device": "p1"}, {"preset": "shelly", "device": "p2"}),
        ("homeassistant", {"entity": "sensor.p1"}, {"entity": "sensor.p2"}),
        ("snmp", {"preset": "apc", "outlet": 1}, {"preset": "apc", "outlet": 2}),
        ("kasa", {"child": 0}, {"child": 1}),
    ],
)
def test_plugs_behind_one_address_are_told_apart(
    kind: str, one: dict[str, object], two: dict[str, object]
) -> None:
    meters = (
        plug("one", kind=kind, options=one),
        plug("two", kind=kind, options=two),
        plug("again", kind=kind, options=one),
    )
    boards = (board("a", outlet="one"), board("b", meter="two"), board("c", meter="again"))
    assert sharers(Inventory(boards=boards, meters=meters), boards[0]) == ("c",)


def test_a_board_without_an_outlet_shares_none() -> None:
    inventory = Inventory(
        boards=(board("a", meter="one"), board("b", meter="one")), meters=(plug("one"),)
    )
    assert sharers(inventory, inventory.boards[0]) == ()
