"""The user's words on the tables of real boards."""

from pathlib import Path

import pytest

from farm.drivers.power_modes.nvpmodel_conf import mode_table, parse_conf, parse_printed_conf
from farm.errors import UnsupportedPowerModeError
from farm.model.mode_words import resolve_mode
from farm.model.power_mode import PowerMode, PowerModeState, PowerModeTable

RECORDINGS = Path(__file__).parents[1] / "recordings"
HERE = PowerModeState(name="here", id=3)


def table(case: str) -> PowerModeTable:
    board, _, name = case.partition("/")
    text = (RECORDINGS / board / "nvpmodel" / f"{name}.txt").read_text()
    parse = parse_printed_conf if name.startswith("printed") else parse_conf
    return mode_table(parse(text), "case")


TX2, NANO = "jetson-tx2/conf", "jetson-nano/printed_conf"
AGX_ORIN, AGX_XAVIER = "jetson-agx-orin/conf", "jetson-agx-xavier/printed_conf"
ORIN_NANO, XAVIER_NX = "jetson-orin-nano/conf_super", "jetson-xavier-nx/conf_shifted"


@pytest.mark.parametrize(
    ("case", "asked", "name"),
    [
        (TX2, "maxn", "MAXN"),
        (TX2, "MAXQ", "MAXQ"),
        (TX2, "maxp", "MAXP_CORE_ALL"),
        (TX2, "maxp_core_arm", "MAXP_CORE_ARM"),
        (NANO, "maxn", "MAXN"),
        (NANO, "maxq", "5W"),
        (NANO, "maxp", "MAXN"),
        (NANO, "5w", "5W"),
        (AGX_ORIN, "30W", "MODE_30W"),
        (AGX_ORIN, "mode_30w", "MODE_30W"),
        (AGX_ORIN, "maxq", "MODE_15W"),
        (AGX_ORIN, "maxp", "MODE_30W"),
        (AGX_XAVIER, "10W", "MODE_10W"),
        (AGX_XAVIER, "30w_2core", "MODE_30W_2CORE"),
        (ORIN_NANO, "maxn", "MAXN_SUPER"),
        (ORIN_NANO, "maxq", "15W"),
        (XAVIER_NX, "maxn", "MAXN"),
        (XAVIER_NX, "maxq", "MODE_10W_DESKTOP"),
        (XAVIER_NX, "20w_6core", "MODE_20W_6CORE"),
    ],
)
def test_words(case: str, asked: str, name: str) -> None:
    assert resolve_mode(asked, table(case), HERE).name == name


def test_maxn_without_that_name_is_the_mode_with_most_cores() -> None:
    known = table(XAVIER_NX)
    without = known.model_copy(update={"modes": known.modes[1:]})
    assert resolve_mode("maxn", without, HERE).name == "MODE_15W_6CORE"


def test_maxp_prefers_the_default_among_several() -> None:
    known = table(TX2).model_copy(update={"default": "MAXP_CORE_ARM"})
    assert resolve_mode("maxp", known, HERE).name == "MAXP_CORE_ARM"
    other = known.model_copy(update={"default": "MAXN"})
    assert resolve_mode("maxp", other, HERE).name == "MAXP_CORE_ALL"


def test_current_is_the_mode_the_board_is_in_even_if_no_table_has_it() -> None:
    assert resolve_mode("current", table(TX2), PowerModeState(name="MAXQ", id=1)).gpu_mhz == 850
    assert resolve_mode("current", table(TX2), HERE) == PowerMode(name="here", id=3)


@pytest.mark.parametrize(
    ("case", "asked", "says"),
    [
        (AGX_XAVIER, "30W", "MODE_30W_ALL or MODE_30W_6CORE"),
        (TX2, "30W", "it has MAXN, MAXQ, MAXP_CORE_ALL, MAXP_CORE_ARM"),
        (TX2, "", "the board has no ''"),
        ("jetson-orin-nx/conf_custom", "MAXP_CORE_ALL", "it has MODE_28_1_W"),
    ],
)
def test_refusals_list_what_exists(case: str, asked: str, says: str) -> None:
    with pytest.raises(UnsupportedPowerModeError) as caught:
        resolve_mode(asked, table(case), HERE)
    assert says in str(caught.value)


def test_maxq_needs_a_budget_to_compare() -> None:
    known = PowerModeTable(modes=(PowerMode(name="A", id=0), PowerMode(name="B", id=1)))
    with pytest.raises(UnsupportedPowerModeError):
        resolve_mode("maxq", known, HERE)
