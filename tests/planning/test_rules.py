import pytest

from farm.model.record import Scalar
from farm.model.sweep import Rule
from farm.planning.rules import is_excluded

FACTS = {"board": "tx2-1", "profile": "tx2", "power_mode": "MAXN", "payload": "w"}
PARAMETERS: dict[str, Scalar] = {"batch": 1, "precision": "FP16", "is_fused": True}


@pytest.mark.parametrize(
    ("rule", "matches"),
    [
        ({"batch": 1}, True),
        ({"batch": 2}, False),
        ({"batch": (1, 2)}, True),
        ({"batch": (2, 4)}, False),
        ({"batch": 1, "precision": "FP32"}, False),
        ({"batch": 1, "power_mode": "maxn", "board": ("tx2-0", "tx2-1")}, True),
        ({"profile": "nano"}, False),
        ({"payload": "w"}, True),
        ({"batch": True}, False),
        ({"is_fused": 1}, False),
        ({"threads": 1}, False),
        ({"batch": 1, "threads": 1}, False),
        ({}, False),
    ],
)
def test_a_rule_matches_in_all_its_keys(rule: Rule, matches: bool) -> None:
    assert is_excluded([rule], FACTS, PARAMETERS) is matches


def test_any_rule_of_several_is_enough() -> None:
    assert is_excluded([{"batch": 9}, {"precision": "FP16"}], FACTS, PARAMETERS)
    assert not is_excluded([], FACTS, PARAMETERS)


def test_a_cell_without_a_board_does_not_match_a_rule_on_boards() -> None:
    facts = {key: value for key, value in FACTS.items() if key != "board"}
    assert not is_excluded([{"board": "tx2-1"}], facts, PARAMETERS)
