"""What the view is told of a board's temperature: at a trial's start and end, never kept."""

from dataclasses import replace
from pathlib import Path

from farm.execution.fleet import run_fleet
from farm.interfaces.sinks import Progress, RunEvent
from farm.testing.fakes import FakeRun
from tests.execution.lab import Lab

GOOD = FakeRun(metrics={"throughput": (50.0, "images/s")})


class KeptView(Progress):
    def __init__(self) -> None:
        self.events: list[RunEvent] = []

    def event(self, event: RunEvent) -> None:
        self.events.append(event)

    def watts(self, board: str, power_w: float) -> None:
        pass


async def temperatures(lab: Lab) -> list[RunEvent]:
    view = KeptView()
    services = replace(lab.services(), progress=view)
    await run_fleet(lab.plan(repeats=2), lab.equipment(), services, {}, [])
    return [event for event in view.events if event.kind == "temperature"]


async def test_trials_show_the_temperature_now_and_then_and_the_journal_never(
    tmp_path: Path,
) -> None:
    lab = Lab(tmp_path)
    lab.add("a", lambda _: GOOD).agent.temperature = 47.25
    shown = await temperatures(lab)  # begin, end; the next begin comes within five seconds; end
    assert [(event.board, event.data["celsius"]) for event in shown] == [("a", 47.2)] * 3
    assert "temperature" not in lab.journal.kinds()
    assert len(lab.journal.records) == 2


async def test_a_board_without_a_sensor_shows_nothing(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    lab.add("a", lambda _: GOOD).agent.temperature = None
    assert await temperatures(lab) == []
    assert len(lab.journal.records) == 2
