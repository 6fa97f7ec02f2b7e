"""Runs by the clock: what is kept of their times, the wait for the start, the end of the night."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from farm.errors import ConfigError
from farm.interfaces.sinks import RunEvent
from farm.model.attempt import TrialState
from farm.pipeline.lab import Lab, open_lab
from farm.pipeline.night import (
    Night,
    change_night,
    keep_night,
    lateness,
    parse_night,
    plan_night,
    read_night,
    wait_for_start,
)
from farm.pipeline.runs import create_run, lab_history, open_lab_store, plan_sweep
from farm.planning.pace import NO_HISTORY, Pace
from farm.store.database import Store
from farm.testing.fake_clock import FakeClock
from tests.cli.lab_files import make_workspace, store_run

BERLIN = ZoneInfo("Europe/Berlin")
EVENING = datetime(2026, 11, 30, 20, 0, tzinfo=UTC)
TRIAL_S = 60 + 5 + 2 + 1.0
"""A bit more than one trial of the sweep `small` by the defaults."""


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    monkeypatch.delenv("FARM_DATABASE_URL", raising=False)
    return open_lab(make_workspace(tmp_path))


@pytest.fixture
def store(lab: Lab) -> Iterator[Store]:
    with open_lab_store(lab) as opened:
        yield opened


class SteppedClock(FakeClock):
    """Somebody sets the wall clock while it is slept; the monotonic one goes on."""

    def __init__(self, step: timedelta, at_s: float) -> None:
        super().__init__(utc=EVENING)
        self.step, self.at_s = step, self.monotonic() + at_s

    def now(self) -> datetime:
        return super().now() + (self.step if self.monotonic() >= self.at_s else timedelta())


def test_the_end_is_the_next_one_after_the_start() -> None:
    night = parse_night("22:30", "07:00", EVENING, BERLIN)
    assert night.start_at == datetime(2026, 11, 30, 21, 30, tzinfo=UTC)
    assert night.finish_by == datetime(2026, 12, 1, 6, 0, tzinfo=UTC)
    after = parse_night("07:00", "+8h", EVENING, BERLIN)
    assert after.finish_by == datetime(2026, 12, 1, 14, 0, tzinfo=UTC)
    assert parse_night(None, None, EVENING) == Night()


@pytest.mark.parametrize(
    ("evening", "hours"),
    [("2027-03-27T22:00", 8), ("2026-10-24T22:00", 10), ("2026-11-30T22:00", 9)],
)
def test_a_night_is_as_long_as_it_is(evening: str, hours: int) -> None:
    now = datetime.fromisoformat(evening).replace(tzinfo=BERLIN)
    night = parse_night(None, "07:00", now, BERLIN)
    assert night.finish_by is not None
    assert night.finish_by - now.astimezone(UTC) == timedelta(hours=hours)
    wall = parse_night("02:30", "02:30", now, BERLIN)
    assert bool(wall.notes) is (hours != 9)


def test_times_stay_with_the_run_and_can_be_replaced(lab: Lab, store: Store) -> None:
    run_id = create_run(lab, store, plan_sweep(lab, "small"))
    assert read_night(store, run_id) == Night()
    assert change_night(store, run_id, None, None) == ()
    night = Night(EVENING, EVENING + timedelta(hours=9))
    keep_night(store, run_id, night)
    assert read_night(store, run_id) == night
    change_night(store, run_id, "none", None)
    assert read_night(store, run_id) == Night(None, night.finish_by)
    change_night(store, run_id, "+1h", "none")
    changed = read_night(store, run_id)
    assert changed.finish_by is None
    assert changed.start_at is not None
    with pytest.raises(ConfigError, match="no time"):
        change_night(store, run_id, "soon", None)
    assert read_night(store, run_id) == changed


async def test_the_start_is_waited_for_and_told_of() -> None:
    clock, told = FakeClock(utc=EVENING), list[RunEvent]()
    begin = EVENING + timedelta(minutes=25)
    await wait_for_start(Night(begin), clock, told.append)
    assert clock.now() == begin
    assert [event.kind for event in told] == ["waiting", "waiting", "waiting", "begins"]
    assert told[0].data == {"begin": begin.isoformat()}
    assert told[0].text.endswith("in 0:25:00")
    assert told[2].text.endswith("in 0:05:00")


@pytest.mark.parametrize("night", [Night(), Night(EVENING), Night(EVENING - timedelta(hours=1))])
async def test_nothing_is_waited_for_when_it_is_time(night: Night) -> None:
    clock, told = FakeClock(utc=EVENING), list[RunEvent]()
    await wait_for_start(night, clock, told.append)
    assert (clock.now(), told) == (EVENING, [])


@pytest.mark.parametrize(("minutes", "waited_s"), [(10, 60), (-10, 1260)])
async def test_a_clock_that_is_set_meanwhile_counts(minutes: int, waited_s: float) -> None:
    clock = SteppedClock(timedelta(minutes=minutes), at_s=60)
    begin_s = clock.monotonic()
    when = EVENING + timedelta(minutes=11)
    await wait_for_start(Night(when), clock, lambda _: None)
    assert clock.monotonic() - begin_s == pytest.approx(waited_s, abs=2)
    assert clock.now() >= when


async def test_what_would_end_too_late_is_not_begun(lab: Lab) -> None:
    plan = plan_sweep(lab, "small")
    clock = FakeClock(utc=datetime(2026, 10, 25, 0, 30, tzinfo=UTC))  # 02:30, the first time
    by = clock.now() + timedelta(hours=1)  # 02:30, the second time
    pace = Pace(plan.sweep)
    too_late = lateness(plan, pace, Night(None, by), clock)
    assert too_late is not None
    trial = plan.trials[0]
    assert too_late(trial) == ""
    needed_s = pace.trial(trial.cell, trial.board).mid_s
    needed_s += pace.change(trial.board, "jetson-tx2").mid_s + plan.sweep.measure.idle_s / 2
    await clock.sleep(3600 - needed_s - 1)
    assert too_late(trial) == ""
    await clock.sleep(2)
    assert too_late(trial).startswith("not begun: would end after ")


def test_a_run_that_goes_on_after_the_night_is_not_held(lab: Lab) -> None:
    plan, clock = plan_sweep(lab, "small"), FakeClock(utc=EVENING)
    assert lateness(plan, Pace(plan.sweep), Night(), clock) is None
    assert lateness(plan, Pace(plan.sweep), Night(None, EVENING), clock) is None


def test_what_does_not_fit_is_left_out_and_can_be_run_later(lab: Lab, store: Store) -> None:
    plan = plan_sweep(lab, "small")
    by = EVENING + timedelta(seconds=plan.estimate_s - TRIAL_S)
    made = plan_night(lab, plan, NO_HISTORY, Night(None, by), EVENING)
    assert {trial.repeat for trial in made.left_out} == {2}
    assert made.forecast.mid_s <= plan.estimate_s - TRIAL_S
    assert len(made.kept.trials) + len(made.left_out) == len(plan.trials)
    left_out = {trial.trial_id: made.reason for trial in made.left_out}
    run_id = create_run(lab, store, made.whole, left_out=left_out)
    skipped = [one for one in store.results(run_id) if one.state is TrialState.SKIPPED]
    assert {one.trial for one in skipped} == set(left_out)
    assert all(one.reason.startswith("left out to finish by ") for one in skipped)
    assert store.load_plan(run_id) == plan
    assert store.reopen_skipped(run_id) == len(left_out)
    assert set(store.run(run_id).counts) == {TrialState.PENDING}


def test_a_night_too_short_for_anything_is_refused(lab: Lab) -> None:
    night = Night(None, EVENING + timedelta(seconds=3))
    with pytest.raises(ConfigError, match="nothing of it would be over"):
        plan_night(lab, plan_sweep(lab, "small"), NO_HISTORY, night, EVENING)


def test_the_next_plan_is_estimated_from_what_was_stored(lab: Lab) -> None:
    assert lab_history(lab) is NO_HISTORY
    assert not lab.workspace.results_dir.exists()
    store_run(lab.workspace.root)
    known = lab_history(lab)
    made = plan_night(lab, plan_sweep(lab, "small", known), known, Night(), EVENING)
    assert made.forecast.origins["cell"] > 0
    assert made.forecast.samples[1] >= 1
