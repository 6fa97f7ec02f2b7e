"""A trace of channels that come and go."""

from math import isnan

from hypothesis import given
from hypothesis import strategies as st

from farm.model.telemetry import MOST_CHANNELS, ForeignLoad, TelemetryTrace

ROWS = st.lists(
    st.tuples(
        st.floats(0, 1000),
        st.dictionaries(st.sampled_from("abcd"), st.floats(-1e6, 1e6), max_size=4),
    ),
    max_size=20,
)


@given(ROWS)
def test_every_row_that_does_not_go_back_is_kept_whole(
    rows: list[tuple[float, dict[str, float]]],
) -> None:
    trace, kept = TelemetryTrace(), list[tuple[float, dict[str, float]]]()
    for t_s, values in rows:
        trace.append(t_s, values)
        if not kept or t_s >= kept[-1][0]:
            kept.append((t_s, values))
    assert list(trace.t_s) == [t_s for t_s, _ in kept]
    for name, column in trace.channels.items():
        wanted = [values.get(name) for _, values in kept]
        assert [None if isnan(value) else value for value in column] == wanted
        assert list(trace.known(name)) == [(t, v[name]) for t, v in kept if name in v]
    part = trace.between(200, 700)
    assert list(part.t_s) == [t_s for t_s, _ in kept if 200 <= t_s <= 700]
    assert all(len(column) == len(part) for column in part.channels.values())


def test_channels_are_bounded_and_named_by_kind() -> None:
    trace = TelemetryTrace()
    trace.append(1.0, {f"rail_mw:{number}": 1.0 for number in range(2 * MOST_CHANNELS)})
    assert len(trace.channels) == MOST_CHANNELS
    assert len(trace.named("rail_mw")) == MOST_CHANNELS
    assert trace.named("rail") == []


def test_what_lies_before_is_forgotten() -> None:
    trace = TelemetryTrace()
    for t_s in range(10):
        trace.append(float(t_s), {"attempts": 1.0})
    trace.foreign = [ForeignLoad(0, 4, "early", 50), ForeignLoad(4, 9, "late", 50)]
    trace.drop_before(5.0)
    assert list(trace.t_s) == [5, 6, 7, 8, 9]
    assert len(trace.channels["attempts"]) == 5
    assert [one.name for one in trace.foreign] == ["late"]
