"""Event files of payloads, good ones and hostile ones."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.analysis.events import (
    MAX_LINE_BYTES,
    PayloadEvents,
    inferences,
    needs_window,
    parse_events,
)
from farm.model.measurement import Measurement, Window
from farm.model.payload import Metric, PayloadManifest

MANIFEST = PayloadManifest(
    name="p",
    level=2,
    summary="s",
    command=("run",),
    metrics={
        "throughput": Metric(unit="images/s"),
        "done": Metric(unit="inferences"),
        "load": Metric(unit="s", scope="attempt"),
    },
    inferences="done",
)
PLAIN = MANIFEST.model_copy(update={"metrics": {}, "inferences": None})
BEGIN = {"event": "window_begin", "name": "measured", "t": 100.5}
END = {"event": "window_end", "name": "measured", "t": 160.5}
METRICS = (
    {"event": "metric", "name": "throughput", "value": 57.9, "unit": "images/s"},
    {"event": "metric", "name": "done", "value": 3474, "unit": "inferences"},
    {"event": "metric", "name": "load", "value": 2.5, "unit": "s"},
)


def lines(*events: object) -> bytes:
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)


def codes(events: PayloadEvents) -> list[str]:
    return [problem.code for problem in events.problems]


def test_a_good_file() -> None:
    extra = {"event": "metric", "name": "extra", "value": 1, "unit": "K"}
    note = {"event": "note", "text": "warm"}
    progress = {"event": "progress", "done": 3, "of": 10}
    events = parse_events(lines(BEGIN, progress, note, END, *METRICS, extra), MANIFEST)
    assert events.window == Window(begin_s=100.5, end_s=160.5)
    assert events.problems == ()
    assert events.notes == ("warm",)
    assert events.metrics["throughput"] == Measurement(
        value=57.9, unit="images/s", scope="window", window="measured"
    )
    assert events.metrics["load"] == Measurement(value=2.5, unit="s", scope="attempt")
    assert events.metrics["extra"] == Measurement(value=1, unit="K", scope="attempt")
    assert inferences(events, MANIFEST) == 3474


def test_a_missing_unit_is_the_promised_one() -> None:
    told = {"event": "metric", "name": "load", "value": 2.5}
    assert parse_events(lines(told), MANIFEST).metrics["load"].unit == "s"


def test_another_unit_is_no_measurement() -> None:
    told = {"event": "metric", "name": "throughput", "value": 57.9, "unit": "ms"}
    events = parse_events(lines(BEGIN, END, told, *METRICS[1:]), MANIFEST)
    assert codes(events) == ["metric_unit"]
    assert "throughput" not in events.metrics


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "5", None, True, 10**400, [1]])
def test_what_is_no_finite_number_is_missing(value: object) -> None:
    told = {"event": "metric", "name": "throughput", "value": value, "unit": "images/s"}
    events = parse_events(lines(BEGIN, END, told, *METRICS[1:]), MANIFEST)
    assert codes(events) == ["metric_missing", "events_garbled"]
    assert "throughput" in events.problems[0].text
    assert "throughput" not in events.metrics


def test_a_metric_told_twice_counts_last_and_is_told() -> None:
    again = {"event": "metric", "name": "load", "value": 9, "unit": "s"}
    events = parse_events(lines(BEGIN, END, *METRICS, again), MANIFEST)
    assert events.metrics["load"].value == 9
    assert codes(events) == ["metric_repeated"]


@pytest.mark.parametrize(
    ("marks", "code"),
    [
        ((), "window_missing"),
        ((BEGIN,), "window_incomplete"),
        ((END,), "window_incomplete"),
        ((BEGIN, END, BEGIN, END), "window_repeated"),
        ((BEGIN, BEGIN, END), "window_repeated"),
        ((BEGIN | {"t": 160.5}, END), "window_backwards"),
        ((BEGIN | {"t": 170.0}, END), "window_backwards"),
        ((BEGIN | {"name": "warmup"}, END | {"name": "warmup"}), "window_missing"),
    ],
)
def test_windows_that_do_not_hold(marks: tuple[object, ...], code: str) -> None:
    events = parse_events(lines(*marks, *METRICS), MANIFEST)
    assert events.window is None
    assert codes(events) == [code]


def test_other_windows_are_ignored() -> None:
    warmup = ({"event": "window_begin", "name": "warmup", "t": 1.0},)
    events = parse_events(lines(*warmup, BEGIN, END, *METRICS), MANIFEST)
    assert events.window is not None
    assert events.problems == ()


def test_a_payload_without_window_metrics_owes_no_window() -> None:
    assert not needs_window(PLAIN)
    assert parse_events(b"", PLAIN).problems == ()
    assert needs_window(MANIFEST)
    attempt = PLAIN.model_copy(update={"metrics": {"load": Metric(unit="s", scope="attempt")}})
    assert not needs_window(attempt)


def test_the_reason_of_unsupported() -> None:
    events = parse_events(lines({"event": "unsupported", "reason": "no INT8"}), PLAIN)
    assert events.unsupported_reason == "no INT8"


@pytest.mark.parametrize(
    "junk",
    [
        b"Segmentation fault\n",
        b"\xff\xfe\n",
        b"[1, 2]\n",
        b'{"event": 5}\n',
        b'{"event": "metric", "name": "x"}\n',
        b'{"event": "window_begin", "t": "soon"}\n',
        b'{"event": "window_begin", "t": -1}\n',
        b"[" * 50_000 + b"\n",
        b'{"event": "note", "text": "' + b"x" * MAX_LINE_BYTES + b'"}\n',
    ],
)
def test_garbage_is_told_and_the_rest_is_read(junk: bytes) -> None:
    events = parse_events(junk + lines(BEGIN, END, *METRICS), MANIFEST)
    assert codes(events) == ["events_garbled"]
    assert "line 1" in events.problems[0].text
    assert events.window is not None


def test_a_cut_last_line_is_told() -> None:
    data = lines(BEGIN, END, *METRICS)
    whole = parse_events(data[:-1], MANIFEST)  # only the line end is missing
    assert whole.problems == ()
    cut = parse_events(data[:-9], MANIFEST)
    assert codes(cut) == ["metric_missing", "events_garbled"]


def test_lone_surrogates_do_not_reach_the_store() -> None:
    events = parse_events(b'{"event": "note", "text": "a\\ud800b"}\n', PLAIN)
    assert events.notes == ("a?b",)


def test_a_flood_is_bounded() -> None:
    note = b'{"event": "note", "text": "n"}\n'
    metric = b"".join(
        b'{"event": "metric", "name": "m%d", "value": 1}\n' % number for number in range(3000)
    )
    events = parse_events(note * 5000 + metric, PLAIN)
    assert len(events.notes) == 100
    assert len(events.metrics) == 1000


@given(st.binary(max_size=500))
def test_any_bytes(data: bytes) -> None:
    parse_events(data, MANIFEST)


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=5,
)
KINDS = ("window_begin", "window_end", "metric", "note", "unsupported", "progress", "x")
EVENT = st.fixed_dictionaries(
    {"event": st.sampled_from(KINDS)},
    optional={
        "name": st.sampled_from(["measured", "throughput", "done"]) | JSON,
        "t": JSON,
        "value": JSON,
        "unit": st.sampled_from(["images/s", "s"]) | JSON,
        "text": JSON,
        "reason": JSON,
    },
)


@given(st.lists(EVENT, max_size=8))
def test_any_events_give_finite_numbers_only(told: list[dict[str, object]]) -> None:
    events = parse_events(lines(*told), MANIFEST)
    assert all(abs(metric.value) < float("inf") for metric in events.metrics.values())
    if events.window is not None:
        assert events.window.end_s > events.window.begin_s
    promised = set(MANIFEST.metrics) - set(events.metrics)
    assert sum(code in ("metric_missing", "metric_unit") for code in codes(events)) == len(
        promised
    )
