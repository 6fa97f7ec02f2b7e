"""Telemetry on disk comes back as it was, and is never taken for the watts of a socket."""

from array import array
from datetime import UTC, datetime
from math import isnan
from pathlib import Path

import pytest

from farm.errors import StoreError
from farm.model.telemetry import ForeignLoad, TelemetryGap, TelemetryGapKind, TelemetryTrace
from farm.model.trace import MeterReading, PowerTrace
from farm.store.telemetry_traces import TELEMETRY, read_telemetry, write_telemetry
from farm.store.traces import TraceAnchor, read_parquet, write_parquet


def a_trace() -> TelemetryTrace:
    trace = TelemetryTrace("tegrastats", "boot-1")
    trace.append(10.25, {"rail_mw:VDD_IN": 9000.0})
    trace.append(10.5, {"temperature_c:GPU": 41.5, "rail_mw:VDD_IN": 9100.0})
    trace.append(11.0, {})
    trace.gaps.append(TelemetryGap(10.5, 11.0, TelemetryGapKind.OVERFLOW, 7))
    trace.foreign.append(ForeignLoad(10.0, 15.0, "apt", 33.0))
    return trace


def test_what_is_written_is_read(tmp_path: Path) -> None:
    write_telemetry(tmp_path / "new", a_trace())
    read = read_telemetry(tmp_path / "new" / TELEMETRY)
    wanted = a_trace()
    assert (read.source, read.boot_id, read.t_s) == (wanted.source, "boot-1", wanted.t_s)
    assert (read.gaps, read.foreign) == (wanted.gaps, wanted.foreign)
    assert read.channels["rail_mw:VDD_IN"][:2] == array("d", [9000.0, 9100.0])
    assert list(map(isnan, read.channels["temperature_c:GPU"])) == [True, False, True]


def test_neither_reader_takes_the_others_file(tmp_path: Path) -> None:
    write_telemetry(tmp_path, a_trace())
    with pytest.raises(StoreError, match="not a trace of farm"):
        read_parquet(tmp_path / TELEMETRY)
    power = PowerTrace("plug")
    power.append(MeterReading(1.0, 1.1, 9.0))
    anchor = TraceAnchor("host-boot", 1.0, datetime(2026, 1, 1, tzinfo=UTC))
    write_parquet(tmp_path / "power.parquet", power, anchor)
    with pytest.raises(StoreError, match="no telemetry of farm"):
        read_telemetry(tmp_path / "power.parquet")


def test_a_damaged_file_is_told(tmp_path: Path) -> None:
    (tmp_path / TELEMETRY).write_bytes(b"PAR1 no PAR1")
    with pytest.raises(StoreError):
        read_telemetry(tmp_path / TELEMETRY)
