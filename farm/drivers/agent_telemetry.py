"""The agent's telemetry events as values; what a hostile board sends is checked here.

A start is posted, not waited for: the stream begins while the trial does.
"""

import asyncio
import contextlib
import math
import re
from collections.abc import Callable, Mapping, Sequence

from farm.drivers.agent_answers import Answer
from farm.drivers.agent_channel import AgentChannel
from farm.errors import BoardError
from farm.interfaces.telemetry import TelemetryBatch, TelemetryLine, TelemetryReading
from farm.model.telemetry import MOST_CHANNELS, ForeignLoad

MOST_ITEMS = 5000
LONGEST_LINE = 8192
LONGEST_NAME = 64
_CHANNEL = re.compile(r"[a-z][a-z0-9_]{0,31}(?::[\w.+-][\w .+-]{0,47})?", re.ASCII)
_UNPRINTABLE = re.compile(r"[^\x20-\x7e]")

OnBatch = Callable[[TelemetryBatch], None]


class AgentTelemetry:
    """The stream of one agent: at most one, told to one."""

    def __init__(self, channel: AgentChannel) -> None:
        self._channel = channel
        self._on_batch: OnBatch | None = None

    def start(self, argv: Sequence[str], rate_hz: float, on_batch: OnBatch) -> None:
        """Begin, or begin anew. Raises LinkLostError."""
        self._on_batch = on_batch
        self._post("telemetry_start", argv=list(argv), rate_hz=rate_hz)

    def stop(self) -> None:
        """End it; a link that is gone has ended it already."""
        with contextlib.suppress(BoardError):
            self._post("telemetry_stop")

    def take(self, event: Mapping[str, object]) -> None:
        """An event came; what makes no sense in it is passed over."""
        if self._on_batch is not None:
            self._on_batch(batch_of(event))

    def _post(self, op: str, **fields: object) -> None:
        self._channel.post(op, **fields)[1].add_done_callback(_swallow)


def batch_of(event: Mapping[str, object]) -> TelemetryBatch:
    """The event's items that are well formed, in their order."""
    items = event.get("items")
    listed = items[:MOST_ITEMS] if isinstance(items, list) else []
    found = [_item(item) for item in listed]
    dropped = event.get("dropped")
    return TelemetryBatch(
        "tool" if event.get("source") == "tool" else "files",
        tuple(item for item in found if item is not None),
        dropped if isinstance(dropped, int) and 0 <= dropped < 2**31 else 0,
    )


def _item(item: object) -> TelemetryReading | TelemetryLine | ForeignLoad | None:
    if not isinstance(item, list) or len(item) < 3:  # noqa: PLR2004 - kind, time, content
        return None
    kind, t_s, rest = item[0], _number(item[1]), item[2:]
    if t_s is None or t_s < 0:
        return None
    if kind == "v" and isinstance(rest[0], dict):
        return TelemetryReading(t_s, _values(rest[0]))
    if kind == "l" and isinstance(rest[0], str):
        return TelemetryLine(t_s, rest[0][:LONGEST_LINE])
    if kind == "p" and len(rest) == 3:  # noqa: PLR2004 - since, name, percent
        since_s, percent = _number(rest[0]), _number(rest[2])
        if since_s is not None and percent is not None and since_s <= t_s:
            return ForeignLoad(since_s, t_s, _name(rest[1]), percent)
    return None


def _values(told: Mapping[str, object]) -> dict[str, float]:
    values = {}
    for name, given in list(told.items())[:MOST_CHANNELS]:
        value = _number(given)
        if value is not None and _CHANNEL.fullmatch(name):
            values[name] = value
    return values


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) and abs(value) < 2**63 else None


def _name(value: object) -> str:
    return _UNPRINTABLE.sub("?", str(value))[:LONGEST_NAME] or "?"


def _swallow(future: "asyncio.Future[Answer]") -> None:
    """Nobody waits for it: without a stream there is no telemetry, and no more."""
    if not future.cancelled():
        future.exception()
