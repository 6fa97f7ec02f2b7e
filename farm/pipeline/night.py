"""A run by the clock: when it begins, by when it is over, and what is left out for that.

Both times are kept as an event of the run, so that whoever goes on with it keeps to them.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, tzinfo

from farm.errors import ConfigError
from farm.execution.equipment import RunServices
from farm.interfaces.clock import Clock
from farm.interfaces.sinks import RunEvent
from farm.model.history import History
from farm.model.plan import Lane, Plan, Trial
from farm.pipeline.lab import Lab
from farm.planning.fit import fit_plan, without
from farm.planning.outlook import Forecast, forecast
from farm.planning.pace import Pace
from farm.planning.plan import pace_of
from farm.planning.wall_clock import local_text, parse_instant
from farm.store.database import Store

NONE = "none"
SLICE_S = 1.0
"""So long at a time is slept: a clock that is set meanwhile counts after that."""
SHOW_EVERY_S = 600.0


@dataclass(frozen=True, slots=True)
class Night:
    """When a run begins and by when it is over, in UTC; None: at once, whenever.

    `notes` tell where a wall time left a choice.
    """

    start_at: datetime | None = None
    finish_by: datetime | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NightPlan:
    """A plan, what of it is done by the time, and how long that takes from `begin` (UTC)."""

    whole: Plan
    kept: Plan
    left_out: tuple[Trial, ...]
    pace: Pace
    night: Night
    begin: datetime
    forecast: Forecast

    @property
    def reason(self) -> str:
        """Why trials are left out."""
        by = self.night.finish_by
        return "" if by is None else f"left out to finish by {local_text(by, near=self.begin)}"


def parse_night(
    at: str | None, finish_by: str | None, now: datetime, zone: tzinfo | None = None
) -> Night:
    """What ``--at`` and ``--finish-by`` mean at `now`. The end is counted from the start.

    Raises ConfigError: no such time, or the end is not after the start.
    """
    start = None if at is None else parse_instant(at, now, zone)
    begin = now if start is None else start.utc
    end = None if finish_by is None else parse_instant(finish_by, begin, zone)
    notes = tuple(one.note for one in (start, end) if one is not None and one.note)
    return Night(start.utc if start else None, end.utc if end else None, notes)


def plan_night(
    lab: Lab, plan: Plan, history: History, night: Night, now: datetime, *, is_safe: bool = False
) -> NightPlan:
    """Leave out what does not fit. `is_safe`: even the upper end of the estimate must fit.

    Raises ConfigError when nothing fits.
    """
    pace = pace_of(plan.sweep, lab.inventory.boards, history)
    begin, left_out, kept = night.start_at or now, tuple[Trial, ...](), plan
    if night.finish_by is not None:
        limit_s = (night.finish_by - begin).total_seconds()
        left_out = fit_plan(plan, pace, lab.profiles, limit_s, is_safe=is_safe)
        if left_out:
            kept = without(plan, {one.trial_id for one in left_out}, pace, lab.profiles)
        if not kept.lanes:
            raise ConfigError(
                f"nothing of it would be over by {local_text(night.finish_by, near=begin)}"
            )
    return NightPlan(plan, kept, left_out, pace, night, begin, forecast(kept, pace))


def keep_night(store: Store, run_id: str, night: Night) -> None:
    """Note a run's times for whoever works on it; they replace those noted before."""
    data = {
        "start_at": night.start_at.isoformat() if night.start_at else None,
        "finish_by": night.finish_by.isoformat() if night.finish_by else None,
    }
    store.add_event(
        run_id, RunEvent(datetime.now(UTC), "night", text=_night_text(night), data=data)
    )


def change_night(
    store: Store, run_id: str, at: str | None, finish_by: str | None, zone: tzinfo | None = None
) -> tuple[str, ...]:
    """Replace a run's times by those given, ``none`` for neither; notes on what was taken.

    Raises ConfigError.
    """
    if at is None and finish_by is None:
        return ()
    asked = [None if text == NONE else text for text in (at, finish_by)]
    new, known = (
        parse_night(asked[0], asked[1], datetime.now(UTC), zone),
        read_night(store, run_id),
    )
    night = Night(
        known.start_at if at is None else new.start_at,
        known.finish_by if finish_by is None else new.finish_by,
        new.notes,
    )
    keep_night(store, run_id, night)
    return new.notes


def read_night(store: Store, run_id: str) -> Night:
    """The times of a run, as they were noted last."""
    events = store.events(run_id, kinds=("night",))
    if not events:
        return Night()
    return Night(_time(events[-1].data, "start_at"), _time(events[-1].data, "finish_by"))


async def hold_to(
    night: Night, services: RunServices, lab: Lab, store: Store, plan: Plan
) -> RunServices:
    """The services with the time by which the run is over, if there is one. Raises StoreError."""
    if night.finish_by is None:
        return services
    history = await asyncio.to_thread(store.history)
    pace = pace_of(plan.sweep, lab.inventory.boards, history)
    too_late = lateness(plan, pace, night, services.clock)
    return services if too_late is None else replace(services, too_late=too_late)


def lateness(plan: Plan, pace: Pace, night: Night, clock: Clock) -> Callable[[Trial], str] | None:
    """Tells of a trial why it is not to be begun any more; None where no time is set or ahead.

    A trial must have ended, and its board be put back, by the time. A run that somebody goes on
    with after that time is not held by it.
    """
    by = night.finish_by
    if by is None or by <= clock.now():
        return None
    text = f"not begun: would end after {local_text(by, near=clock.now())}"
    after_s = {lane.board: _after_s(lane, plan, pace) for lane in plan.lanes}

    def too_late(trial: Trial) -> str:
        needed_s = pace.trial(trial.cell, trial.board).mid_s + after_s.get(trial.board, 0.0)
        return text if clock.now() + timedelta(seconds=needed_s) > by else ""

    return too_late


async def wait_for_start(night: Night, clock: Clock, tell: Callable[[RunEvent], None]) -> None:
    """Return when it is time by the wall clock, also if that is set meanwhile."""
    when = night.start_at
    if when is None or clock.now() >= when:
        return
    shown_s = float("-inf")
    while (left_s := (when - clock.now()).total_seconds()) > 0:
        if clock.monotonic() - shown_s >= SHOW_EVERY_S:
            shown_s = clock.monotonic()
            begins = local_text(when, near=clock.now())
            text = f"begins at {begins}, in {timedelta(seconds=round(left_s))}"
            tell(RunEvent(clock.now(), "waiting", text=text, data={"begin": when.isoformat()}))
        await clock.sleep(min(left_s, SLICE_S))
    tell(RunEvent(clock.now(), "begins"))


def _after_s(lane: Lane, plan: Plan, pace: Pace) -> float:
    """What follows a lane's last trial: an idle baseline, the way back to the mode it was in."""
    measure = plan.sweep.measure
    is_metered = lane.meter is not None and measure.power != "off"
    idle_s = measure.idle_s / 2 if is_metered else 0.0
    modes = {trial.cell.power_mode.lower() for trial in lane.trials}
    change_s = pace.change(lane.board, lane.profile).mid_s if modes != {"current"} else 0.0
    reboot_s = pace.reboot(lane.board, lane.profile).mid_s if lane.reboots else 0.0
    return idle_s + change_s + reboot_s


def _night_text(night: Night) -> str:
    start, end = night.start_at, night.finish_by
    parts = [f"begins at {local_text(start, is_dated=True)}"] if start else []
    parts += [f"over by {local_text(end, is_dated=True)}"] if end else []
    return ", ".join([*parts, *night.notes]) or "no times are set"


def _time(data: Mapping[str, object], name: str) -> datetime | None:
    value = data.get(name)
    return datetime.fromisoformat(value) if isinstance(value, str) else None
