"""What the pipeline hands to the execution for each board: opened or openable drivers."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from farm.execution.sampling import MeterFeed
from farm.execution.telemetry import TelemetryFeed
from farm.interfaces.agent import BoardAgent, BoardCommands
from farm.interfaces.clock import Clock
from farm.interfaces.outlet import Outlet
from farm.interfaces.power_controller import PowerController
from farm.interfaces.sinks import Journal, Progress, RunEvent, TraceSink
from farm.interfaces.transport import Transport
from farm.model.board import Board
from farm.model.payload import Payload
from farm.model.plan import Trial
from farm.model.power_mode import FanPolicy, PowerModeState
from farm.model.profile import BoardProfile
from farm.model.sweep import Limits, MeasureRules
from farm.model.trace import PowerTrace


@dataclass(frozen=True, slots=True)
class BoardEquipment:
    """One board and how to open what belongs to it.

    `probe` raises ConnectError while the board does not answer; it costs little and holds no
    place among the connections that are being opened. `outlet_shared` names the other boards
    that lose their power with this one's outlet.
    """

    board: Board
    profile: BoardProfile
    transport: Callable[[], Transport]
    agent: Callable[[Transport], Awaitable[BoardAgent]]
    controller: Callable[[BoardCommands], PowerController]
    feed: MeterFeed | None
    telemetry: TelemetryFeed | None = None
    probe: Callable[[], Awaitable[None]] | None = None
    outlet: Outlet | None = None
    outlet_shared: tuple[str, ...] = ()


def _never_too_late(trial: Trial) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class RunServices:
    """What all lanes of one run share.

    `too_late` tells why a trial is not to be begun any more, "" while it may be.
    """

    run_id: str
    holder: str
    tool_version: str
    rules: MeasureRules
    limits: Limits
    payloads: Mapping[str, Payload]
    journal: Journal
    progress: Progress
    clock: Clock
    originals: Mapping[str, PowerModeState]
    open_trace: Callable[[Path, str], TraceSink]
    read_trace: Callable[[Path], PowerTrace | None]
    fan: FanPolicy = "default"
    too_late: Callable[[Trial], str] = _never_too_late

    def tell(
        self,
        kind: str,
        *,
        board: str = "",
        trial_id: str = "",
        attempt_id: str = "",
        text: str = "",
        **data: object,
    ) -> None:
        """Record an event in the journal and show it."""
        event = RunEvent(self.clock.now(), kind, board, trial_id, attempt_id, text, data)
        self.journal.record(event)
        self.progress.event(event)

    def show(
        self,
        kind: str,
        *,
        board: str,
        trial_id: str = "",
        attempt_id: str = "",
        text: str = "",
        **data: object,
    ) -> None:
        """Show an event without keeping it: a routine one, whose facts the records hold."""
        self.progress.event(
            RunEvent(self.clock.now(), kind, board, trial_id, attempt_id, text, data)
        )
