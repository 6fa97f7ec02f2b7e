"""What a board said of itself over a span: channels by time, never the watts of a socket.

Times are the board's boot-time clock, like a payload's windows: no map of clocks comes between.
Rails are milliwatts by the board's own monitors; they lie in a type of their own, which no
formula for energy takes.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from math import isnan, nan

MOST_CHANNELS = 256
MOST_ROWS = 200_000


class TelemetryGapKind(StrEnum):
    """Why samples are missing."""

    LINK = "link"
    OVERFLOW = "overflow"


@dataclass(frozen=True, slots=True)
class TelemetryGap:
    """A span without samples, in board boot-time seconds. `count` is 0 where it is unknown."""

    begin_s: float
    end_s: float
    kind: TelemetryGapKind
    count: int = 0


@dataclass(frozen=True, slots=True)
class ForeignLoad:
    """A process that is none of ours and what of one core it used, from one look to the next."""

    begin_s: float
    end_s: float
    name: str
    percent: float


@dataclass(slots=True)
class TelemetryTrace:
    """Samples of one board in one boot; a channel that a row does not tell is NaN there.

    `source` is the driver's name, or ``files`` where the board's files told all.
    """

    source: str = ""
    boot_id: str = ""
    t_s: "array[float]" = field(default_factory=lambda: array("d"))
    channels: "dict[str, array[float]]" = field(default_factory=dict)
    gaps: list[TelemetryGap] = field(default_factory=list)
    foreign: list[ForeignLoad] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.t_s)

    def append(self, t_s: float, values: Mapping[str, float]) -> None:
        """Add a row, in the order of time: one that goes back is dropped. Bounded."""
        count = len(self.t_s)
        if count >= MOST_ROWS or (count and t_s < self.t_s[-1]):
            return
        self.t_s.append(t_s)
        for name, value in values.items():
            column = self.channels.get(name)
            if column is None:
                if len(self.channels) >= MOST_CHANNELS:
                    continue
                column = self.channels[name] = array("d", [nan]) * count
            column.append(value)
        for column in self.channels.values():
            if len(column) <= count:
                column.append(nan)

    def known(self, name: str) -> Iterator[tuple[float, float]]:
        """(time, figure) of each row that tells the channel."""
        column = self.channels.get(name)
        if column is not None:
            for t_s, value in zip(self.t_s, column, strict=True):
                if not isnan(value):
                    yield t_s, value

    def named(self, kind: str) -> list[str]:
        """What the channels of a kind are of: ``named("rail_mw")`` gives the rails."""
        prefix = kind + ":"
        return sorted(name[len(prefix) :] for name in self.channels if name.startswith(prefix))

    def between(self, begin_s: float, end_s: float) -> "TelemetryTrace":
        """Rows with begin_s <= t <= end_s, and all that overlaps it; copied."""
        low, high = bisect_left(self.t_s, begin_s), bisect_right(self.t_s, end_s)
        columns = {name: column[low:high] for name, column in self.channels.items()}
        return TelemetryTrace(
            self.source,
            self.boot_id,
            self.t_s[low:high],
            {name: column for name, column in columns.items() if not all(map(isnan, column))},
            [gap for gap in self.gaps if gap.end_s >= begin_s and gap.begin_s <= end_s],
            [one for one in self.foreign if one.end_s >= begin_s and one.begin_s <= end_s],
        )

    def has_rows(self, begin_s: float, end_s: float) -> bool:
        """Whether anything was told from `begin_s` to `end_s`."""
        place = bisect_left(self.t_s, begin_s)
        return place < len(self.t_s) and self.t_s[place] <= end_s

    def drop_before(self, t_s: float) -> None:
        """Forget what lies before, so that memory stays flat over a night."""
        kept = self.between(t_s, float("inf"))
        self.t_s, self.channels = kept.t_s, kept.channels
        self.gaps, self.foreign = kept.gaps, kept.foreign
