"""The published figures that come along: QuTiBench tables 14 and 15.

farm/data/published/README.md tells source and meaning of the columns.
"""

import csv
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from farm.model.published import PublishedCell
from farm.model.record import Scalar

PUBLICATION = "QuTiBench"
PAYLOAD = "replay-cnn"

_FOLDER = Path(__file__).resolve().parent.parent / "data" / "published"

_TABLES = (("14", "level3_resnet50.csv"), ("15", "level3_googlenet.csv"))

_PROFILES = {"TX2": "jetson-tx2", "ZCU104": "zcu104"}

GOP_PER_IMAGE = {"ResNet50": 7.72, "GoogleNetV1": 3.13}
"""10^9 operations for one image, a multiply-accumulate counted as two. QuTiBench, table 10."""


@cache
def load_published() -> tuple[PublishedCell, ...]:
    """All published rows, in the order of the tables."""
    return tuple(cell for table, file in _TABLES for cell in _rows(table, _FOLDER / file))


def _rows(table: str, path: Path) -> Iterator[PublishedCell]:
    with path.open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            parameters: dict[str, Scalar] = {"model": row["model"], "precision": row["precision"]}
            for name in ("batch", "threads"):
                if row[name]:
                    parameters[name] = int(row[name])
            gops = float(row["throughput_system_gops"])
            yield PublishedCell(
                publication=PUBLICATION,
                table=table,
                profile=_PROFILES[row["platform"]],
                payload=PAYLOAD,
                power_mode=row["power_mode"] or None,
                parameters=parameters,
                images_per_s=gops / GOP_PER_IMAGE[row["model"]],
                throughput_gops=gops,
                latency_ms=float(row["latency_system_ms"]),
                power_w=float(row["power_w"]),
            )
