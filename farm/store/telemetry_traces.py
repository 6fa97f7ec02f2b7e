"""Telemetry on disk: ``telemetry.parquet``, a file of its own that no reader of power takes.

Times are ms of the board's boot-time clock. A channel is a column with its unit in its name;
null is unknown. Gaps and processes of others lie in the file's metadata.

pyarrow is loaded when a file is written or read: it costs a quarter of a second.
"""

import json
import math
from array import array
from pathlib import Path
from typing import TYPE_CHECKING, Any

from farm.errors import StoreError
from farm.model.telemetry import ForeignLoad, TelemetryGap, TelemetryGapKind, TelemetryTrace
from farm.store.durable import write_whole
from farm.store.failures import damaged, file_errors

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA = 1
TELEMETRY = "telemetry.parquet"
_KEY = b"farm.telemetry"  # not the key of a power trace: neither reader takes the other's file


def write_telemetry(folder: Path, trace: TelemetryTrace) -> None:
    """Write it into an attempt's folder, whole or not at all. Raises StoreError."""
    import pyarrow.parquet as pq  # noqa: PLC0415  (a quarter of a second: see above)

    table = _table(trace)
    path = folder / TELEMETRY
    with file_errors(path):
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(path, lambda target: pq.write_table(table, target, compression="zstd"))


def read_telemetry(path: Path) -> TelemetryTrace:
    """What `write_telemetry` wrote. Raises StoreVersionError, StoreError."""
    import pyarrow as pa  # noqa: PLC0415  (as above)
    import pyarrow.parquet as pq  # noqa: PLC0415

    with file_errors(path):
        try:
            table = pq.read_table(path)
            head = json.loads(table.schema.metadata[_KEY])
            if head["schema"] > SCHEMA:
                raise StoreError(f"{path}: written by a newer farm (schema {head['schema']})")
            return _trace(table, head)
        except (pa.ArrowException, KeyError, TypeError, ValueError) as error:
            raise damaged(path, f"no telemetry of farm ({error})") from error


def _table(trace: TelemetryTrace) -> "pa.Table":
    import pyarrow as pa  # noqa: PLC0415  (as above)

    columns: dict[str, pa.Array[Any]] = {
        "t_ms": pa.array([round(t_s * 1000) for t_s in trace.t_s], pa.int64())
    }
    for name in sorted(trace.channels):
        values = [None if math.isnan(value) else value for value in trace.channels[name]]
        columns[name] = pa.array(values, pa.float64())
    head = {
        "schema": SCHEMA,
        "source": trace.source,
        "boot_id": trace.boot_id,
        "gaps": [[gap.begin_s, gap.end_s, gap.kind.value, gap.count] for gap in trace.gaps],
        "foreign": [[one.begin_s, one.end_s, one.name, one.percent] for one in trace.foreign],
    }
    return pa.table(columns, metadata={_KEY: json.dumps(head).encode()})


def _trace(table: "pa.Table", head: dict[str, object]) -> TelemetryTrace:
    gaps, foreign = head["gaps"], head["foreign"]
    if not isinstance(gaps, list) or not isinstance(foreign, list):
        raise TypeError("gaps and foreign are lists")
    return TelemetryTrace(
        source=str(head["source"]),
        boot_id=str(head["boot_id"]),
        t_s=array("d", [(t_ms or 0) / 1000 for t_ms in table.column("t_ms").to_pylist()]),
        channels={
            name: array(
                "d",
                [math.nan if each is None else each for each in table.column(name).to_pylist()],
            )
            for name in table.column_names
            if name != "t_ms"
        },
        gaps=[TelemetryGap(a, b, TelemetryGapKind(kind), count) for a, b, kind, count in gaps],
        foreign=[ForeignLoad(*one) for one in foreign],
    )
