"""Traces: nothing lost but half a millisecond and half a milliwatt."""

import logging
import math
import os
import subprocess
import sys
from array import array
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from farm.errors import StoreError, StoreVersionError
from farm.model.trace import MeterMiss, MeterReading, MissKind, PowerTrace
from farm.store.traces import (
    TraceAnchor,
    TraceLog,
    read_log,
    read_parquet,
    read_trace_log,
    write_parquet,
)

ANCHOR = TraceAnchor("boot-1", 1234.5, datetime(2026, 11, 30, 22, 15, tzinfo=UTC))
HALF = 0.000501  # half of a thousandth, and a float's own error
COLUMNS = ("t_s", "rtt_s", "power_w", "energy_wh", "voltage_v", "current_a")


def trace_of(*samples: MeterReading | MeterMiss) -> PowerTrace:
    trace = PowerTrace("meter-1")
    for sample in samples:
        if isinstance(sample, MeterMiss):
            trace.misses.append(sample)
        else:
            trace.append(sample)
    return trace


def assert_close(found: PowerTrace, wanted: PowerTrace, bound: float) -> None:
    assert found.meter == wanted.meter
    assert found.output_on == wanted.output_on
    for name in COLUMNS:
        pairs = zip(getattr(found, name), getattr(wanted, name), strict=True)
        for have, want in pairs:
            assert abs(have - want) <= bound or (math.isnan(have) and not abs(want) < 1e15)
    assert [(m.kind, m.text) for m in found.misses] == [(m.kind, m.text) for m in wanted.misses]
    for miss, original in zip(found.misses, wanted.misses, strict=True):
        assert abs(miss.sent_s - original.sent_s) <= bound


NUMBERS = st.floats(-4000, 4000) | st.just(math.nan) | st.sampled_from([math.inf, 1e300])
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=9)


@st.composite
def traces(draw: st.DrawFn) -> PowerTrace:
    samples: list[MeterReading | MeterMiss] = []
    at = draw(st.floats(0, 1e7))
    for _ in range(draw(st.integers(0, 12))):
        at += draw(st.floats(0, 10))
        if draw(st.integers(0, 3)) == 0:
            samples.append(MeterMiss(at, draw(st.sampled_from(MissKind)), draw(TEXT)))
            continue
        watts, wh, volts, amperes = (draw(NUMBERS) for _ in range(4))
        is_on = draw(st.sampled_from([True, False, None]))
        received = at + draw(st.floats(0, 5))
        samples.append(MeterReading(at, received, watts, wh, volts, amperes, is_on))
    return trace_of(*samples)


@given(trace=traces())
@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_parquet_round_trip(tmp_path: Path, trace: PowerTrace) -> None:
    path = tmp_path / "power.parquet"
    # Columns are by time; a reading's time is the middle of its exchange.
    order = sorted(range(len(trace)), key=lambda n: round(trace.t_s[n] * 1000))
    for name in (*COLUMNS, "output_on"):
        column = getattr(trace, name)
        setattr(trace, name, array(column.typecode, [column[n] for n in order]))
    write_parquet(path, trace, ANCHOR)
    found, anchor = read_parquet(path)
    assert anchor == ANCHOR
    assert_close(found, trace, HALF)


def test_parquet_is_integers_with_gaps_to_be_seen(tmp_path: Path) -> None:
    path = tmp_path / "power.parquet"
    trace = trace_of(
        MeterReading(10.0, 10.02, 5.0426, 1.5, 230.1, 0.0219, True),
        MeterReading(12.0, 12.02, math.nan),
        MeterMiss(11.0, MissKind.TIMEOUT, "no answer in 1 s"),
    )
    write_parquet(path, trace, ANCHOR)
    with pq.ParquetFile(path) as file:
        assert file.metadata.row_group(0).column(0).compression == "ZSTD"
        rows = file.read().to_pylist()
    assert rows[0] == {
        "t_ms": 10010,
        "rtt_ms": 20,
        "power_mw": 5043,
        "energy_mwh": 1500,
        "voltage_mv": 230100,
        "current_ma": 22,
        "is_output_on": True,
        "miss": None,
        "miss_text": None,
    }
    assert (rows[1]["t_ms"], rows[1]["miss"], rows[1]["power_mw"]) == (11000, "timeout", None)
    assert (rows[2]["t_ms"], rows[2]["power_mw"], rows[2]["is_output_on"]) == (12010, None, None)


def test_a_night_is_small(tmp_path: Path) -> None:
    trace = PowerTrace("meter-1")
    for number in range(50_000):
        at = number * 0.5 + number % 7 * 0.0013
        trace.append(MeterReading(at, at + 0.02, 5 + (number * 7919 % 1000) / 1000))
    path = tmp_path / "power.parquet"
    write_parquet(path, trace, ANCHOR)
    assert path.stat().st_size < 50_000 * 6
    assert len(read_parquet(path)[0]) == 50_000


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1" + bytes(100) + b"PAR1", b"x" * 999])
def test_a_damaged_parquet_is_told(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "power.parquet"
    path.write_bytes(content)
    with pytest.raises(StoreVersionError, match=r"power\.parquet: not a trace"):
        read_parquet(path)


def test_a_missing_parquet_is_a_store_error(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="No such file"):
        read_parquet(tmp_path / "power.parquet")


def test_log_round_trip_is_exact(tmp_path: Path) -> None:
    samples = (
        MeterReading(10.000123456, 10.02, 5.04261, 1.5, 230.1, 0.0219, True),
        MeterMiss(11.0, MissKind.PROTOCOL, "no JSON: \ud800\0 é\n{}"),
        MeterReading(12.0, 12.02, math.nan, math.inf, is_output_on=False),
    )
    with TraceLog(tmp_path / "power.jsonl", "meter-1", ANCHOR) as log:
        for sample in samples:
            log.append(sample)
    found = read_log(tmp_path / "power.jsonl")
    assert found is not None
    trace, anchor = found
    assert anchor == ANCHOR
    assert (trace.t_s[0], trace.power_w[0]) == ((10.000123456 + 10.02) / 2, 5.04261)
    assert math.isnan(trace.power_w[1])
    assert list(trace.output_on) == [1, 0]
    assert trace.misses == [
        MeterMiss(11.0, MissKind.PROTOCOL, "no JSON: ?\N{REPLACEMENT CHARACTER} é\n{}")
    ]


def test_lines_reach_the_file_once_a_second(tmp_path: Path) -> None:
    path = tmp_path / "power.jsonl"

    def readings() -> int:
        found = read_log(path)
        return len(found[0]) if found else 0

    with TraceLog(path) as log:
        log.append(MeterReading(100.0, 100.01, 1.0))
        assert readings() == 1
        log.append(MeterReading(100.9, 100.91, 2.0))
        assert readings() == 1
        log.append(MeterReading(101.0, 101.01, 3.0))
        assert readings() == 3
        log.append(MeterReading(101.1, 101.11, 4.0))
    log.close()
    assert readings() == 4


def test_every_cut_is_readable(tmp_path: Path) -> None:
    path = tmp_path / "power.jsonl"
    with TraceLog(path, "meter-1", ANCHOR) as log:
        for second in range(3):
            log.append(MeterReading(second, second + 0.01, 10.0 + second))
    data = path.read_bytes()
    seen = set()
    for length in range(len(data)):
        path.write_bytes(data[:length])
        found = read_log(path)
        watts = list(found[0].power_w) if found else []
        assert watts == [10.0, 11.0, 12.0][: len(watts)]
        seen.add(len(watts))
    assert seen == {0, 1, 2, 3}


def test_a_log_is_continued_after_a_cut(tmp_path: Path) -> None:
    path = tmp_path / "power.jsonl"
    with TraceLog(path, "m", ANCHOR) as log:
        log.append(MeterReading(1.0, 1.0, 10.0))
    with path.open("ab") as file:
        file.write(b'["r", 2.0, 2.0, 1' + bytes(64))
    with TraceLog(path, "m", ANCHOR) as log:
        log.append(MeterReading(3.0, 3.0, 30.0))
    found = read_log(path)
    assert found is not None
    assert list(found[0].power_w) == [10.0, 30.0]


def test_times_of_another_boot_are_not_mixed(tmp_path: Path) -> None:
    path = tmp_path / "power.jsonl"
    with TraceLog(path, "m", ANCHOR) as log:
        log.append(MeterReading(5000.0, 5000.0, 10.0))
    assert read_trace_log(path) is None
    with TraceLog(path, "m") as log:
        log.append(MeterReading(1.0, 1.0, 20.0))
    ours = read_trace_log(path)
    assert ours is not None
    assert list(ours.power_w) == [20.0]


@pytest.mark.parametrize(
    "line",
    [
        b"null",
        b"[]",
        b"7",
        b'["r"]',
        b'["m", 1, "nonsense", ""]',
        b'["trace", 1]',
        b'{"r": 1}',
        b"[" * 5000,
        b"\xff\xfe",
        b'["r", "a", 2, 3, 4, 5, 6, 7]',
    ],
)
def test_lines_that_are_none_are_left_out(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "power.jsonl"
    with TraceLog(path, "m", ANCHOR) as log:
        log.append(MeterReading(1.0, 1.0, 10.0))
    with path.open("ab") as file:
        file.write(line + b"\n")
    found = read_log(path)
    assert found is not None
    assert (list(found[0].power_w), found[0].misses) == ([10.0], [])


def test_no_log(tmp_path: Path) -> None:
    assert read_log(tmp_path / "none") is None
    (tmp_path / "empty").touch()
    assert read_log(tmp_path / "empty") is None
    assert read_trace_log(tmp_path / "none") is None
    with pytest.raises(StoreError, match="No such file"):
        TraceLog(tmp_path / "no" / "folder")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_does_not_stop_the_sampling(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("farm.store.traces._PENDING_LIMIT", 2000)
    with caplog.at_level(logging.WARNING), TraceLog(Path("/dev/full"), "m", ANCHOR) as log:
        for second in range(100):
            log.append(MeterReading(second, second, 1.0))
        assert log.lost > 10
        assert len(log._pending) < 3000
    assert "samples are missing" in caplog.text


def test_what_waited_for_room_is_written_whole(tmp_path: Path) -> None:
    path = tmp_path / "power.jsonl"
    log = TraceLog(path, "m", ANCHOR)
    real, full = log._descriptor, os.open("/dev/full", os.O_WRONLY)
    log._descriptor = full
    log.append(MeterReading(1.0, 1.0, 10.0))
    log._descriptor = real
    os.close(full)
    log.append(MeterReading(2.0, 2.0, 20.0))
    log.close()
    found = read_log(path)
    assert found is not None
    assert list(found[0].power_w) == [10.0, 20.0]


def test_an_anchor_is_now() -> None:
    anchor = TraceAnchor.now()
    assert abs(datetime.now(UTC) - anchor.utc) < timedelta(minutes=1)
    assert anchor.boot_id == Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def test_the_line_file_needs_no_pyarrow() -> None:
    code = (
        "import sys, farm.store.traces, farm.store.database, farm.store.export\n"
        "print([n for n in ('pyarrow', 'pandas', 'alembic', 'numpy') if n in sys.modules])"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"
