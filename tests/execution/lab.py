"""A lab in memory: fake boards, a journal that keeps everything, a link that is just there."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Self

from farm.errors import BoardError, ConnectError, LinkLostError
from farm.execution.equipment import BoardEquipment, RunServices
from farm.execution.sampling import MeterFeed
from farm.interfaces.agent import AttemptStatus, BoardAgent, BoardCommands
from farm.interfaces.clock import Clock
from farm.interfaces.meter import Meter
from farm.interfaces.outlet import Outlet
from farm.interfaces.power_controller import PowerController
from farm.interfaces.sinks import Journal, OpenAttempt, Progress, RunEvent, TrialProgress
from farm.interfaces.transport import CommandResult, Stream, Transport
from farm.model.attempt import AttemptRecord, TrialState
from farm.model.board import Board, MeterSpec
from farm.model.payload import Metric, Payload, PayloadManifest
from farm.model.plan import Cell, Lane, Plan, Trial
from farm.model.power_mode import FanPolicy
from farm.model.profile import BoardProfile
from farm.model.sweep import Limits, MeasureRules, PayloadAxes, Sweep
from farm.model.trace import MeterMiss, MeterReading, PowerTrace
from farm.testing.fakes import FakeBoardAgent, FakeClock, FakePowerController

RULES = MeasureRules(window_s=60, warmup_s=1, idle_s=10)
LIMITS = Limits(retries=2, connect_retries=3, time_s=900)


class MemoryJournal(Journal):
    """Keeps everything in lists, and refuses what a store must refuse."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.states: dict[str, TrialState] = {}
        self.open: dict[str, OpenAttempt] = {}
        self.records: list[AttemptRecord] = []
        self.traces: list[PowerTrace | None] = []
        self.events: list[RunEvent] = []
        self.reasons: dict[str, str] = {}
        self.moved: dict[str, str] = {}

    async def begin_attempt(
        self, attempt_id: str, trial_id: str, board: str, number: int, started: datetime
    ) -> Path:
        assert all(record.attempt_id != attempt_id for record in self.records)
        self.open[attempt_id] = OpenAttempt(attempt_id, trial_id, board, number, started)
        self.states[trial_id] = TrialState.RUNNING
        return self.folder / attempt_id

    async def finish_attempt(
        self, record: AttemptRecord, state: TrialState, trace: PowerTrace | None
    ) -> None:
        del self.open[record.attempt_id]
        self.records.append(record)
        self.traces.append(trace)
        self.states[record.trial_id] = state

    async def set_trial_state(self, trial_id: str, state: TrialState, reason: str) -> None:
        self.states[trial_id] = state
        self.reasons[trial_id] = reason

    def record(self, event: RunEvent) -> None:
        self.events.append(event)

    async def flush(self) -> None:
        pass

    async def open_attempts(self) -> Sequence[OpenAttempt]:
        return list(self.open.values())

    async def move_trial(self, trial_id: str, board: str, reason: str) -> None:
        self.states[trial_id] = TrialState.PENDING
        self.reasons[trial_id] = reason
        self.moved[trial_id] = board

    async def events_of(self, kinds: Sequence[str]) -> Sequence[RunEvent]:
        return [event for event in self.events if event.kind in kinds]

    def kinds(self, board: str = "") -> list[str]:
        return [event.kind for event in self.events if board in ("", event.board)]

    def texts(self, kind: str) -> list[str]:
        return [event.text for event in self.events if event.kind == kind]


class NoView(Progress):
    def event(self, event: RunEvent) -> None:
        pass

    def watts(self, board: str, power_w: float) -> None:
        pass


class OpenTransport(Transport):
    """A link that is up; `faults` are raised by the next connects.

    While `is_cut` the board answers to nothing; `tries` counts the connects.
    """

    def __init__(self, faults: list[BoardError]) -> None:
        self.faults, self.is_up, self.is_cut, self.tries = faults, False, False, 0

    async def connect(self) -> Self:
        self.tries += 1
        if self.is_cut:
            raise ConnectError("connect", "no answer")
        if self.faults:
            raise self.faults.pop(0)
        self.is_up = True
        return self

    async def run(
        self, argv: Sequence[str], *, timeout_s: float, stdin: bytes = b""
    ) -> CommandResult:
        raise AssertionError("not used")

    async def stream(
        self,
        argv: Sequence[str],
        on_stdout: Callable[[bytes], None],
        on_stderr: Callable[[bytes], None] | None = None,
        on_lost: Callable[[], None] | None = None,
    ) -> Stream:
        raise AssertionError("not used")

    async def put(
        self, files: Mapping[str, Path | bytes], folder: str, *, timeout_s: float
    ) -> None:
        raise AssertionError("not used")

    async def get(self, path: str, target: Path, *, timeout_s: float) -> None:
        raise AssertionError("not used")

    async def close(self) -> None:
        self.is_up = False

    @property
    def is_connected(self) -> bool:
        return self.is_up and not self.is_cut


class LinkedAgent(FakeBoardAgent):
    """An agent whose waits end, as a real one's, soon after its link was cut."""

    link: OpenTransport

    async def wait(self, attempt_id: str) -> AttemptStatus:
        if self.fail["wait"] or self._attempts[attempt_id].run.is_lost:
            return await super().wait(attempt_id)
        self._begin("wait", attempt_id)
        while (status := self._status(attempt_id)).phase == "running":
            await self._clock.sleep(1.0)
            if self.link.is_cut:
                raise LinkLostError("wait", "no keepalive was answered")
        return status


class ListSink:
    def __init__(self) -> None:
        self.samples: list[MeterReading | MeterMiss] = []

    def append(self, sample: MeterReading | MeterMiss) -> None:
        self.samples.append(sample)

    def close(self) -> None:
        pass


@dataclass
class LabBoard:
    """One fake board with the parts a test wants to reach."""

    name: str
    agent: FakeBoardAgent
    controller: FakePowerController
    transport: OpenTransport
    feed: MeterFeed | None = None
    outlet: Outlet | None = None
    outlet_shared: tuple[str, ...] = ()

    def equipment(self) -> BoardEquipment:
        board = Board(name=self.name, profile="fake", host="127.0.0.1", user="u")

        async def agent(_: Transport) -> BoardAgent:
            return self.agent

        def controller(_: BoardCommands) -> PowerController:
            return self.controller

        profile = BoardProfile(name="fake", summary="a fake", cores=6)
        return BoardEquipment(
            board,
            profile,
            lambda: self.transport,
            agent,
            controller,
            self.feed,
            outlet=self.outlet,
            outlet_shared=self.outlet_shared,
        )


def _payload() -> Payload:
    return a_payload()


@dataclass
class Lab:
    """Fake boards, one journal, one clock in virtual time."""

    folder: Path
    clock: FakeClock = field(default_factory=FakeClock)
    boards: dict[str, LabBoard] = field(default_factory=dict)
    rules: MeasureRules = RULES
    limits: Limits = LIMITS
    payload: Payload = field(default_factory=_payload)
    fan: FanPolicy = "default"

    def __post_init__(self) -> None:
        self.journal = MemoryJournal(self.folder)

    def add(
        self,
        name: str,
        script: Callable[..., object] | None = None,
        *,
        meter: Meter | None = None,
        spec: MeterSpec | None = None,
    ) -> LabBoard:
        agent = LinkedAgent(self.clock, script)  # type: ignore[arg-type]  # tests hand in lambdas
        agent.link = OpenTransport([])
        board = LabBoard(name, agent, FakePowerController(), agent.link)
        if meter is not None:
            board.feed = MeterFeed(
                spec or MeterSpec(name=f"m-{name}", kind="fake"), meter, self.clock
            )
        self.boards[name] = board
        return board

    def services(self) -> RunServices:
        clock: Clock = self.clock
        return RunServices(
            run_id="run-1",
            holder="test",
            tool_version="0",
            rules=self.rules,
            limits=self.limits,
            payloads={self.payload.manifest.name: self.payload},
            journal=self.journal,
            progress=NoView(),
            clock=clock,
            originals={},
            open_trace=lambda _folder, _meter: ListSink(),
            read_trace=lambda _: None,
            fan=self.fan,
        )

    def equipment(self) -> dict[str, BoardEquipment]:
        return {name: board.equipment() for name, board in self.boards.items()}

    def plan(self, modes: Sequence[str] = ("MAXN",), repeats: int = 2) -> Plan:
        lanes = []
        for name in self.boards:
            trials = [
                a_trial(name, mode, repeat + 1) for mode in modes for repeat in range(repeats)
            ]
            lanes.append(Lane(name, "fake", None, tuple(trials), len(modes), 0, 60.0))
        sweep = Sweep(name="s", payloads=(PayloadAxes(payload="work"),), measure=self.rules)
        return Plan(sweep, "digest", tuple(lanes), 60.0)

    def progress(self) -> dict[str, TrialProgress]:
        attempts: dict[str, int] = {}
        for record in self.journal.records:
            attempts[record.trial_id] = attempts.get(record.trial_id, 0) + 1
        for attempt in self.journal.open.values():
            attempts[attempt.trial_id] = attempt.number
        return {
            trial: TrialProgress(trial, state, attempts.get(trial, 0))
            for trial, state in self.journal.states.items()
        }


def a_payload() -> Payload:
    manifest = PayloadManifest(
        name="work",
        level=1,
        summary="work",
        command=("./run",),
        metrics={"throughput": Metric(unit="images/s")},
    )
    return Payload(manifest=manifest, folder=Path("/nowhere"), files=(), digest="d" * 64)


def a_trial(board: str, mode: str = "MAXN", repeat: int = 1) -> Trial:
    cell = Cell(
        cell_id=f"c{board}{mode}".lower(),
        target=board,
        is_any=False,
        profile="fake",
        payload="work",
        payload_digest="d" * 64,
        level=1,
        power_mode=mode,
        clocks="default",
        parameters={"batch": 1},
    )
    return Trial(f"{cell.cell_id}-r{repeat:02d}", cell, repeat, board)
