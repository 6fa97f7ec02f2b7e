"""What a report is made of."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from farm.analysis.cells import CellSummary
from farm.analysis.compare import Comparison
from farm.interfaces.sinks import RunEvent
from farm.model.attempt import AttemptRecord
from farm.model.result import TrialResult
from farm.model.trace import PowerTrace


@dataclass(frozen=True, slots=True)
class TraceExample:
    """One attempt's power trace with its window; host monotonic seconds."""

    record: AttemptRecord
    trace: PowerTrace
    begin_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class ReportData:
    """Everything the report shows; nothing is looked up while it is rendered."""

    run_id: str
    sweep: str
    created: datetime
    state: str
    tool_version: str
    results: Sequence[TrialResult]
    cells: Sequence[CellSummary]
    comparisons: Sequence[Comparison]
    events: Sequence[RunEvent]
    trace: TraceExample | None
