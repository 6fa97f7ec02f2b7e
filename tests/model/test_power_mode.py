"""What a board's pick looks like in words, and the watts that a mode promises."""

import pytest

from farm.model.power_mode import AppliedPowerMode, PowerMode, PowerModeState
from farm.model.profile import BoardProfile


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"asked": "maxq", "name": "5W", "id": 1, "budget_w": 5.0}, "maxq is 5W (1), 5 W"),
        ({"asked": "maxn", "name": "MAXN", "id": 0}, "MAXN (0)"),
        ({"asked": "maxq", "name": "powersave"}, "maxq is powersave"),
        ({"asked": "MAXN", "name": "MAXN", "clocks": "locked"}, "MAXN, clocks locked"),
    ],
)
def test_a_pick_in_words(fields: dict[str, object], text: str) -> None:
    state = PowerModeState(name="x")
    assert AppliedPowerMode.model_validate({**fields, "read_back": state}).pick_text == text


@pytest.mark.parametrize(
    ("own", "known", "watts"), [(5.0, 7.5, 5.0), (None, 7.5, 7.5), (None, None, None)]
)
def test_the_boards_own_budget_comes_before_the_profiles(
    own: float | None, known: float | None, watts: float | None
) -> None:
    profile = BoardProfile(
        name="p", summary="", cores=4, power_modes=(PowerMode(name="MAXQ", budget_w=known),)
    )
    assert profile.budget_w(PowerMode(name="maxq", budget_w=own)) == watts
    assert profile.budget_w(PowerMode(name="other", budget_w=own)) == own
