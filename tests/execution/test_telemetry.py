"""Telemetry through a run: kept over links, judged, saved, and a disturbed trial tried again."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from farm.execution.equipment import BoardEquipment
from farm.execution.fleet import run_fleet
from farm.execution.telemetry import TelemetryFeed
from farm.interfaces.agent import AttemptStatus, Job
from farm.interfaces.sinks import RunEvent
from farm.interfaces.telemetry import Telemetry, TelemetryBatch, TelemetryLine, TelemetryReading
from farm.model.attempt import TrialState
from farm.model.sweep import Limits, SettleRule
from farm.model.telemetry import TelemetryGapKind, TelemetryTrace
from farm.testing.fakes import FakeBoardAgent, FakeClock, FakeRun
from tests.execution.lab import LIMITS, RULES, Lab

GOOD = FakeRun(metrics={"throughput": (50.0, "images/s")})
COOL = {"cooling_state:cpu": 0.0}
HOT = {"cooling_state:cpu": 2.0}


class Words(Telemetry):
    """A tool whose lines are ``NAME=NUMBER``."""

    def command(self, interval_s: float) -> tuple[str, ...]:
        return ("words", f"{interval_s:g}")

    def parse(self, line: str) -> Mapping[str, float]:
        name, _, value = line.partition("=")
        return {name: float(value)}


class TellingAgent(FakeBoardAgent):
    """Tells, at each start, what a board told during the 62 s of the attempt."""

    def __init__(self, clock: FakeClock, telling: Callable[[int], Mapping[str, float]]) -> None:
        super().__init__(clock, lambda _: GOOD)
        self._telling, self._started = telling, 0
        self.listeners: list[Callable[[TelemetryBatch], None]] = []
        self.words: list[str] = []

    def start_telemetry(
        self, argv: Sequence[str], rate_hz: float, on_batch: Callable[[TelemetryBatch], None]
    ) -> None:
        self.words.append(f"start {' '.join(argv)} at {rate_hz:g} Hz")
        self.listeners.append(on_batch)

    def stop_telemetry(self) -> None:
        self.words.append("stop")

    async def start(self, job: Job) -> AttemptStatus:
        status = await super().start(job)
        self._started += 1
        values, begin_s = self._telling(self._started), self._board_s()
        items = [TelemetryReading(begin_s + second, values) for second in range(62)]
        self.listeners[-1](TelemetryBatch("files", tuple(items)))
        return status


class Rig:
    def __init__(self, folder: Path, telling: Callable[[int], Mapping[str, float]]) -> None:
        self.lab = Lab(folder)
        self.board = self.lab.add("a")
        self.agent = self.board.agent = TellingAgent(self.lab.clock, telling)
        self.saved: dict[str, TelemetryTrace] = {}
        self.feed = TelemetryFeed("words", Words, 2.0, self.save)

    def save(self, folder: Path, trace: TelemetryTrace) -> None:
        self.saved[folder.name] = trace

    def equipment(self) -> dict[str, BoardEquipment]:
        return {"a": replace(self.board.equipment(), telemetry=self.feed)}

    async def run(self, modes: Sequence[str] = ("MAXN",), repeats: int = 1) -> None:
        plan = self.lab.plan(modes, repeats)
        await run_fleet(plan, self.equipment(), self.lab.services(), {}, [])


async def test_a_quiet_board_costs_no_second_try_and_its_trace_is_saved(tmp_path: Path) -> None:
    rig = Rig(tmp_path, lambda _: COOL)
    await rig.run(repeats=2)
    assert [one.verdict.status.value for one in rig.lab.journal.records] == ["valid", "valid"]
    assert rig.agent.words == ["start words 0.5 at 2 Hz"]  # one stream for the whole session
    assert set(rig.saved) == {one.attempt_id for one in rig.lab.journal.records}
    traces = [trace.named("cooling_state") for trace in rig.saved.values()]
    assert traces == [["cpu"], ["cpu"]]
    assert all(trace is None for trace in rig.lab.journal.traces)  # no watts came of it


async def test_a_throttled_trial_is_tried_again_after_a_longer_rest_each_time(
    tmp_path: Path,
) -> None:
    rig = Rig(tmp_path, lambda number: HOT if number < 3 else COOL)
    rig.lab.rules = RULES.model_copy(update={"settle": SettleRule(cool_down_s=100.0)})
    await rig.run()
    records = rig.lab.journal.records
    assert [one.verdict.status.value for one in records] == ["suspect", "suspect", "valid"]
    assert [reason.code for reason in records[0].verdict.reasons] == ["throttled"]
    assert [event.data["seconds"] for event in told(rig, "cool_down")] == [100.0, 200.0]
    assert set(rig.lab.journal.states.values()) == {TrialState.DONE}
    gaps = [
        (later.started - earlier.ended).total_seconds() for earlier, later in pairwise(records)
    ]
    assert gaps[0] >= 100
    assert gaps[1] >= 200


async def test_after_the_last_requeue_the_suspect_result_stays(tmp_path: Path) -> None:
    rig = Rig(tmp_path, lambda _: HOT)
    rig.lab.limits = Limits(retries=0, requeues=1)
    await rig.run()
    records = rig.lab.journal.records
    assert [one.verdict.status.value for one in records] == ["suspect", "suspect"]
    assert set(rig.lab.journal.states.values()) == {TrialState.DONE}
    assert LIMITS.requeues == 2


async def test_no_tool_runs_while_the_power_mode_changes(tmp_path: Path) -> None:
    rig = Rig(tmp_path, lambda _: COOL)
    await rig.run(modes=("MAXN", "MAXQ"))
    start = "start words 0.5 at 2 Hz"
    assert rig.agent.words == [start, "stop", start]


def told(rig: Rig, kind: str) -> list[RunEvent]:
    return [event for event in rig.lab.journal.events if event.kind == kind]


def feed_on(agent: TellingAgent) -> TelemetryFeed:
    feed = TelemetryFeed("words", Words, 1.0, lambda _folder, _trace: None)
    feed.begin(agent)
    return feed


def test_gaps_of_links_and_of_a_full_buffer_have_their_kinds() -> None:
    clock = FakeClock()
    first, second = (TellingAgent(clock, lambda _: COOL) for _ in range(2))
    feed = feed_on(first)
    first.listeners[0](TelemetryBatch("tool", (TelemetryLine(10.0, "load_pct:GPU=5"),)))
    feed.begin(second)
    second.listeners[0](TelemetryBatch("files", (TelemetryReading(30.0, COOL),)))
    second.listeners[0](TelemetryBatch("files", (TelemetryReading(60.0, COOL),), dropped=9))
    kinds = [(gap.begin_s, gap.end_s, gap.kind, gap.count) for gap in feed.trace.gaps]
    assert kinds == [
        (10.0, 30.0, TelemetryGapKind.LINK, 0),
        (30.0, 60.0, TelemetryGapKind.OVERFLOW, 9),
    ]
    assert feed.trace.source == "words"
    assert list(feed.trace.known("load_pct:GPU")) == [(10.0, 5.0)]


def test_another_boot_begins_another_trace() -> None:
    agent, rebooted = (TellingAgent(FakeClock(), lambda _: COOL) for _ in range(2))
    feed = feed_on(agent)
    agent.listeners[0](TelemetryBatch("files", (TelemetryReading(10.0, COOL),)))
    rebooted.reboot()
    feed.begin(rebooted)
    agent.listeners[0](TelemetryBatch("files", (TelemetryReading(20.0, COOL),)))  # late
    assert len(feed.trace) == 0
    assert feed.trace.boot_id == rebooted.boot_id
    assert feed.of_attempt(0.0, 100.0, agent.boot_id) is None


def test_an_attempt_between_two_readings_has_no_trace() -> None:
    agent = TellingAgent(FakeClock(), lambda _: COOL)
    feed = feed_on(agent)
    items = tuple(TelemetryReading(float(t_s), COOL) for t_s in range(1000))
    agent.listeners[0](TelemetryBatch("files", items))
    assert feed.of_attempt(5.2, 5.4, agent.boot_id) is None
    found = feed.of_attempt(500.5, 502.5, agent.boot_id)
    assert found is not None
    assert list(found.t_s) == list(range(486, 504))
    assert len(feed.trace) == 512  # what lies before was forgotten
