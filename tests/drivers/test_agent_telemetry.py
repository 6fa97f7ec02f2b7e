"""Telemetry events of a board that may be hostile."""

import json
import math
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farm.drivers.agent_telemetry import LONGEST_LINE, batch_of
from farm.interfaces.telemetry import TelemetryLine, TelemetryReading
from farm.model.telemetry import ForeignLoad

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)
ITEM = st.tuples(st.sampled_from(["v", "l", "p", "x"]), JSON, JSON).map(list)


def test_items_in_their_order() -> None:
    batch = batch_of(
        {
            "source": "tool",
            "dropped": 3,
            "items": [
                ["v", 5.0, {"temperature_c:GPU": 41.5, "attempts": 1}],
                ["l", 5.5, "RAM 1/2MB"],
                ["p", 6, 1.0, "apt", 12.5],
            ],
        }
    )
    assert batch.items == (
        TelemetryReading(5.0, {"temperature_c:GPU": 41.5, "attempts": 1.0}),
        TelemetryLine(5.5, "RAM 1/2MB"),
        ForeignLoad(1.0, 6.0, "apt", 12.5),
    )
    assert (batch.source, batch.dropped) == ("tool", 3)


@pytest.mark.parametrize(
    "item",
    [
        ["v", -1.0, {}],
        ["v", math.nan, {}],
        ["v", True, {}],
        ["v", 1.0, "x"],
        ["l", 1.0, 5],
        ["p", 1.0, 2.0, "from the future", 5.0],
        ["p", 1.0, 0.0, "no percent", None],
        ["?", 1.0, {}],
        "text",
        [],
    ],
)
def test_what_makes_no_sense_is_passed_over(item: object) -> None:
    assert batch_of({"items": [item]}).items == ()


def test_names_and_figures_are_checked() -> None:
    values = {
        "temperature_c:ok-1.x y": 1,
        "<script>": 1,
        "temperature_c:\n": 1,
        "a" * 80: 1,
        "load_pct:GPU": math.inf,
        "clock_mhz:GPU": 2**70,
        "cap_mhz:GPU": "9",
    }
    (reading,) = batch_of({"items": [["v", 1.0, values]]}).items
    assert isinstance(reading, TelemetryReading)
    assert reading.values == {"temperature_c:ok-1.x y": 1.0}
    (line,) = batch_of({"items": [["l", 1.0, "x" * 99999]]}).items
    assert isinstance(line, TelemetryLine)
    assert len(line.text) == LONGEST_LINE
    (load,) = batch_of({"items": [["p", 1.0, 0.5, "\x1b[31m" + "n" * 99, 50]]}).items
    assert isinstance(load, ForeignLoad)
    assert load.name == "?[31m" + "n" * 59


@settings(max_examples=40, deadline=None)
@given(st.dictionaries(st.sampled_from(["source", "dropped", "items"]), JSON | st.lists(ITEM)))
def test_whatever_comes_gives_finite_figures(event: Mapping[str, object]) -> None:
    batch = batch_of(event)
    assert batch.dropped >= 0
    for item in batch.items:
        if isinstance(item, TelemetryReading):
            json.dumps(dict(item.values), allow_nan=False)
