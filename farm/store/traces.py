"""Power traces on disk: a line file while an attempt runs, Parquet once it has ended.

A Parquet file that is being written is unreadable until its end, so a killed host would lose
the night's samples; a line file loses at most its last second. Times in both are the host's
monotonic clock, which begins anew at each boot: an anchor beside them says when that was.

pyarrow is loaded when a Parquet file is written or read: it costs a quarter of a second.
"""

import json
import logging
import math
import os
import time
from array import array
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from farm.errors import StoreError
from farm.interfaces.sinks import TraceSink
from farm.model.trace import MeterMiss, MeterReading, MissKind, PowerTrace
from farm.store.documents import plain
from farm.store.durable import write_whole
from farm.store.failures import damaged, file_errors

if TYPE_CHECKING:
    import pyarrow as pa

_log = logging.getLogger(__name__)

SCHEMA = 1
_PENDING_LIMIT = 4 * 1024 * 1024  # some 40,000 samples; a full disk must not fill the memory
_FLUSH_S = 1.0
_MISS_TEXT = 300  # characters: a meter that answers nonsense must not fill the disk
_COLUMNS = ("power_mw", "energy_mwh", "voltage_mv", "current_ma")
_THOUSANDTHS = 1000  # all columns are thousandths of the trace's units
_INT_LIMIT = 2.0**62  # what is beyond is no measurement; it would overflow 64 bits


@dataclass(frozen=True, slots=True)
class TraceAnchor:
    """One moment on both clocks: UTC = `utc` + (t - `monotonic_s`), within boot `boot_id`."""

    boot_id: str
    monotonic_s: float
    utc: datetime

    @classmethod
    def now(cls) -> Self:
        """This host, this moment."""
        return cls(host_boot_id(), time.monotonic(), datetime.now(UTC))


def host_boot_id() -> str:
    """The host's boot id, "" where the kernel tells none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        return ""


class TraceLog(TraceSink):
    """Appends readings and misses to a line file, whose folder must be there.

    Lines go to the kernel once a second of readings' time: they outlive this process, and
    at a power cut the last seconds are lost. A full disk never stops the sampling: lines wait
    in memory for room, up to a bound; `lost` counts what did not fit.

    Raises:
        StoreError: the file cannot be opened.
    """

    def __init__(self, path: Path, meter: str = "", anchor: TraceAnchor | None = None) -> None:
        self._path = path
        self._flushed_s = -math.inf
        self._pending = bytearray()
        self.lost = 0
        with file_errors(path):
            self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        when = anchor or TraceAnchor.now()
        head = [SCHEMA, meter, when.boot_id, when.monotonic_s, when.utc.isoformat()]
        # It begins with a line end: what a killed process left cut stays a line of its own.
        self._pending += b"\n" + json.dumps(["trace", *head]).encode() + b"\n"
        self._flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def append(self, sample: MeterReading | MeterMiss) -> None:
        """Add one reading or miss; readings come in the order of time. Never raises."""
        if len(self._pending) > _PENDING_LIMIT:
            self.lost += 1
        else:
            self._pending += _line(sample).encode() + b"\n"
        if sample.sent_s - self._flushed_s >= _FLUSH_S:
            self._flushed_s = sample.sent_s
            self._flush()

    def close(self) -> None:
        """Write what waits and close; never raises, closing twice is no error."""
        if self._descriptor < 0:
            return
        self._flush()
        os.close(self._descriptor)
        self._descriptor = -1
        if self._pending or self.lost:
            _log.warning("%s: the disk is full; samples are missing in it", self._path)

    def _flush(self) -> None:
        try:
            while self._pending:
                del self._pending[: os.write(self._descriptor, self._pending)]
        except OSError as error:
            _log.debug("%s: %s; tried again in a second", self._path, error)


def read_log(path: Path) -> tuple[PowerTrace, TraceAnchor] | None:
    """What the line file holds of its last boot; None if there is no file or no header in it.

    Lines that do not parse (the last one of a killed host) are left out. Raises StoreError.
    """
    trace: PowerTrace | None = None
    anchor: TraceAnchor | None = None
    with file_errors(path):
        if not path.exists():
            return None
        with path.open("rb") as file:
            for line in file:
                sample = _parsed(line)
                if isinstance(sample, tuple):
                    if anchor is None or anchor.boot_id != sample[1].boot_id:
                        trace, anchor = sample
                elif trace is not None and sample is not None:
                    _add(trace, sample)
    return None if trace is None or anchor is None else (trace, anchor)


def read_trace_log(path: Path) -> PowerTrace | None:
    """The samples of a line file if this boot of the host wrote them, else None.

    Another boot's monotonic times do not compare with ours. Raises StoreError.
    """
    found = read_log(path)
    return found[0] if found is not None and found[1].boot_id == host_boot_id() else None


def write_parquet(path: Path, trace: PowerTrace, anchor: TraceAnchor) -> None:
    """Write a trace, whole or not at all. Rounds to ms, mW, mWh, mV, mA. Raises StoreError.

    The trace must not be changed meanwhile.
    """
    import pyarrow.parquet as pq  # noqa: PLC0415  (a quarter of a second: see above)

    table = _table(trace, anchor)

    def write(target: Path) -> None:
        pq.write_table(
            table,
            target,
            compression="zstd",
            use_dictionary=False,  # a column with its own encoding refuses a dictionary
            column_encoding={"t_ms": "DELTA_BINARY_PACKED", "rtt_ms": "DELTA_BINARY_PACKED"},
        )

    with file_errors(path):
        write_whole(path, write)


def read_parquet(path: Path) -> tuple[PowerTrace, TraceAnchor]:
    """The trace that `write_parquet` wrote. Raises StoreVersionError if it is damaged."""
    import pyarrow as pa  # noqa: PLC0415  (a quarter of a second: see above)

    try:
        table = _read_table(path)
        head = json.loads(table.schema.metadata[b"farm.trace"])
        if head["schema"] > SCHEMA:
            raise StoreError(f"{path}: written by a newer farm (trace schema {head['schema']})")
        anchor = TraceAnchor(
            head["boot_id"], head["anchor_monotonic_s"], datetime.fromisoformat(head["anchor_utc"])
        )
        return _trace(table, head["meter"]), anchor
    except (pa.ArrowException, KeyError, TypeError, ValueError) as error:
        raise damaged(path, f"not a trace of farm ({error})") from error


def _line(sample: MeterReading | MeterMiss) -> str:
    if isinstance(sample, MeterMiss):
        return json.dumps(["m", sample.sent_s, sample.kind.value, plain(sample.text, _MISS_TEXT)])
    values = (sample.power_w, sample.energy_wh, sample.voltage_v, sample.current_a)
    known = [value if math.isfinite(value) else None for value in values]
    return json.dumps(["r", sample.sent_s, sample.received_s, *known, sample.is_output_on])


def _parsed(line: bytes) -> MeterReading | MeterMiss | tuple[PowerTrace, TraceAnchor] | None:
    try:
        kind, *rest = json.loads(line)
        if kind == "r":
            sent_s, received_s, power_w, energy_wh, voltage_v, current_a, is_on = rest
            return MeterReading(
                float(sent_s),
                float(received_s),
                _number(power_w),
                _number(energy_wh),
                _number(voltage_v),
                _number(current_a),
                None if is_on is None else bool(is_on),
            )
        if kind == "m":
            return MeterMiss(float(rest[0]), MissKind(rest[1]), str(rest[2]))
        if kind == "trace":
            _, meter, boot_id, monotonic_s, utc = rest
            anchor = TraceAnchor(boot_id, float(monotonic_s), datetime.fromisoformat(utc))
            return PowerTrace(str(meter)), anchor
    except (ValueError, TypeError, IndexError, RecursionError):
        return None
    return None


def _number(value: str | float | None) -> float:
    return math.nan if value is None else float(value)


def _add(trace: PowerTrace, sample: MeterReading | MeterMiss) -> None:
    if isinstance(sample, MeterMiss):
        trace.misses.append(sample)
    else:
        trace.append(sample)


def _read_table(path: Path) -> "pa.Table":
    import pyarrow.parquet as pq  # noqa: PLC0415  (a quarter of a second: see above)

    with file_errors(path):
        try:
            with pq.ParquetFile(path) as file:
                return file.read()
        except OSError as error:
            if error.errno is None:  # Arrow's word for bytes that it cannot decode
                raise damaged(path, f"not a trace of farm ({error})") from error
            raise


def _table(trace: PowerTrace, anchor: TraceAnchor) -> "pa.Table":
    import pyarrow as pa  # noqa: PLC0415  (a quarter of a second: see above)

    misses = trace.misses
    gaps = array("d", [math.nan]) * len(misses)
    outputs = [None if on < 0 else bool(on) for on in trace.output_on]
    sent = array("d", [miss.sent_s for miss in misses])
    columns: dict[str, pa.Array[Any]] = {
        "t_ms": _integers(trace.t_s + sent),
        "rtt_ms": _integers(trace.rtt_s + gaps),
        "power_mw": _integers(trace.power_w + gaps),
        "energy_mwh": _integers(trace.energy_wh + gaps),
        "voltage_mv": _integers(trace.voltage_v + gaps),
        "current_ma": _integers(trace.current_a + gaps),
        "is_output_on": pa.array([*outputs, *[None] * len(misses)], pa.bool_()),
        "miss": pa.array([*[None] * len(trace), *[m.kind.value for m in misses]], pa.string()),
        "miss_text": pa.array(
            [*[None] * len(trace), *[plain(m.text, _MISS_TEXT) for m in misses]], pa.string()
        ),
    }
    head = {
        "schema": SCHEMA,
        "meter": trace.meter,
        "boot_id": anchor.boot_id,
        "anchor_monotonic_s": anchor.monotonic_s,
        "anchor_utc": anchor.utc.isoformat(),
    }
    table = pa.table(columns, metadata={"farm.trace": json.dumps(head)})
    # Arrow's sort is not stable: readings of one millisecond keep their order by their number.
    ranked = table.append_column("_row", pa.array(range(len(table)), pa.int64()))
    return ranked.sort_by([("t_ms", "ascending"), ("_row", "ascending")]).drop_columns("_row")


def _integers(values: "array[float]") -> "pa.Int64Array":
    """Thousandths, rounded; what is no finite number is null."""
    import numpy as np  # noqa: PLC0415  (comes with pyarrow)
    import pyarrow as pa  # noqa: PLC0415

    scaled = np.rint(np.array(values, dtype=np.float64) * _THOUSANDTHS)
    unknown = ~(np.abs(scaled) < _INT_LIMIT)
    return pa.array(np.where(unknown, 0, scaled).astype(np.int64), pa.int64(), mask=unknown)


def _trace(table: "pa.Table", meter: str) -> PowerTrace:
    read: Callable[[str], list[float | None]] = lambda name: table.column(name).to_pylist()  # noqa: E731
    trace = PowerTrace(meter)
    outputs, kinds, texts = (
        table.column(name).to_pylist() for name in ("is_output_on", "miss", "miss_text")
    )
    values = zip(*(read(name) for name in _COLUMNS), strict=True)
    for t_ms, rtt_ms, numbers, on, kind, text in zip(
        read("t_ms"), read("rtt_ms"), values, outputs, kinds, texts, strict=True
    ):
        t_s = _seconds(t_ms)
        if kind is not None:
            trace.misses.append(MeterMiss(t_s, MissKind(kind), text or ""))
            continue
        trace.t_s.append(t_s)
        trace.rtt_s.append(_seconds(rtt_ms))
        for column, number in zip(
            (trace.power_w, trace.energy_wh, trace.voltage_v, trace.current_a),
            numbers,
            strict=True,
        ):
            column.append(_seconds(number))
        trace.output_on.append(-1 if on is None else int(on))
    return trace


def _seconds(thousandths: float | None) -> float:
    return math.nan if thousandths is None else thousandths / _THOUSANDTHS
