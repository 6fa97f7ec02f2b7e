"""Figures that a publication printed: the reference that runs are compared with."""

from collections.abc import Mapping

from farm.model.record import Record, Scalar


class PublishedCell(Record):
    """One row of a published table. `power_mode` is the paper's word; watts at the socket."""

    publication: str
    table: str
    profile: str
    payload: str
    power_mode: str | None
    parameters: Mapping[str, Scalar]
    images_per_s: float
    throughput_gops: float
    latency_ms: float
    power_w: float
