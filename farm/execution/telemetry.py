"""One board's telemetry while a run works on it: what the agent tells becomes a trace."""

from collections.abc import Callable
from pathlib import Path

from farm.interfaces.agent import BoardAgent
from farm.interfaces.telemetry import Telemetry, TelemetryBatch, TelemetryLine, TelemetryReading
from farm.model.telemetry import ForeignLoad, TelemetryGap, TelemetryGapKind, TelemetryTrace

BEFORE_S, AFTER_S = 15.0, 1.0
"""How far an attempt's trace reaches beyond it: a rest before, a reading after."""
MOST_FOREIGN = 10_000
MOST_KEPT = 500
"""Rows of earlier attempts: forgotten now and then, not after each."""


class TelemetryFeed:
    """Kept over links: the trace goes on in a new one, with a gap.

    `driver` makes a parser for each stream, `save` writes a trace into an attempt's folder.
    """

    def __init__(
        self,
        name: str,
        driver: Callable[[], Telemetry],
        rate_hz: float,
        save: Callable[[Path, TelemetryTrace], None],
    ) -> None:
        self.save = save
        self.trace = TelemetryTrace()
        self._name, self._driver, self._rate_hz = name, driver, rate_hz
        self._agent: BoardAgent | None = None
        self._gap_from_s: float | None = None

    def begin(self, agent: BoardAgent) -> None:
        """Have the agent tell, unless it does. Returns at once. Raises LinkLostError."""
        if self._agent is agent:
            return
        boot_id = agent.fingerprint.boot_id
        if boot_id != self.trace.boot_id:
            self.trace = TelemetryTrace("files", boot_id)
            self._gap_from_s = None
        elif self._agent is not None and len(self.trace):  # its link was lost
            self._gap_from_s = self.trace.t_s[-1]
        driver = self._driver()
        trace = self.trace
        agent.start_telemetry(
            driver.command(1.0 / self._rate_hz),
            self._rate_hz,
            lambda batch: self._take(batch, driver, trace),
        )
        self._agent = agent

    def rest(self) -> None:
        """Have it tell nothing, so that no tool runs while the power mode changes."""
        if self._agent is not None:
            self._agent.stop_telemetry()
            self._agent = None

    def of_attempt(self, begin_s: float, end_s: float, boot_id: str) -> TelemetryTrace | None:
        """What was told from before an attempt to after it (board time); earlier is forgotten.

        None for an attempt so short that nothing was told meanwhile: it costs nothing.
        """
        trace = self.trace
        if boot_id != trace.boot_id or not trace.has_rows(begin_s, end_s):
            return None
        found = trace.between(begin_s - BEFORE_S, end_s + AFTER_S)
        if len(trace) > MOST_KEPT:
            trace.drop_before(end_s - BEFORE_S)
        return found

    def _take(self, batch: TelemetryBatch, driver: Telemetry, trace: TelemetryTrace) -> None:
        if trace is not self.trace:  # of an earlier boot
            return
        if batch.source == "tool":
            trace.source = self._name
        times = [item.t_s for item in batch.items if not isinstance(item, ForeignLoad)]
        if times:
            self._note_gaps(batch.dropped, times[0])
        for item in batch.items:
            if isinstance(item, TelemetryReading):
                trace.append(item.t_s, item.values)
            elif isinstance(item, TelemetryLine):
                trace.append(item.t_s, driver.parse(item.text))
            elif len(trace.foreign) < MOST_FOREIGN:
                trace.foreign.append(item)

    def _note_gaps(self, dropped: int, next_s: float) -> None:
        trace = self.trace
        if self._gap_from_s is not None:
            gap = TelemetryGap(self._gap_from_s, next_s, TelemetryGapKind.LINK)
            trace.gaps.append(gap)
            self._gap_from_s = None
        if dropped:
            last_s = trace.t_s[-1] if len(trace) else next_s
            gap = TelemetryGap(last_s, next_s, TelemetryGapKind.OVERFLOW, dropped)
            trace.gaps.append(gap)
