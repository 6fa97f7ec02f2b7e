"""Shows a plan."""

from collections import Counter
from collections.abc import Collection, Mapping
from datetime import timedelta

from farm.cli.output import print_table
from farm.model.parameters import parameters_text
from farm.model.plan import Lane, Trial
from farm.model.profile import BoardProfile
from farm.pipeline.night import NightPlan
from farm.planning.order import CURRENT
from farm.planning.outlook import Forecast
from farm.planning.picks import ModePick, pick_modes
from farm.planning.wall_clock import local_text


def plan_json(made: NightPlan, profiles: Mapping[str, BoardProfile]) -> dict[str, object]:
    """The plan as `farm plan --json` prints it."""
    plan, night, cast = made.kept, made.night, made.forecast
    return {
        "sweep": plan.sweep.name,
        "digest": plan.digest,
        "estimate_s": round(plan.estimate_s, 1),
        "estimate": {
            "low_s": round(cast.low_s, 1),
            "mid_s": round(cast.mid_s, 1),
            "high_s": round(cast.high_s, 1),
            "trials_by_origin": dict(cast.origins),
            "samples": list(cast.samples),
        },
        "start_at": night.start_at.isoformat() if night.start_at else None,
        "finish_by": night.finish_by.isoformat() if night.finish_by else None,
        "left_out": [trial.trial_id for trial in made.left_out],
        "skipped": list(plan.skipped),
        "power_modes": [_pick_json(pick) for pick in pick_modes(plan, profiles)],
        "lanes": [_lane_json(lane) for lane in plan.lanes],
    }


def _lane_json(lane: Lane) -> dict[str, object]:
    return {
        "board": lane.board,
        "profile": lane.profile,
        "meter": lane.meter,
        "mode_changes": lane.mode_changes,
        "reboots": lane.reboots,
        "estimate_s": round(lane.estimate_s, 1),
        "trials": [
            {
                "trial": trial.trial_id,
                "payload": trial.cell.payload,
                "power_mode": trial.cell.power_mode,
                "parameters": dict(trial.cell.parameters),
                "repeat": trial.repeat,
            }
            for trial in lane.trials
        ],
    }


def _pick_json(pick: ModePick) -> dict[str, object]:
    return {
        "profile": pick.profile,
        "asked": pick.asked,
        "name": pick.mode.name if pick.mode else None,
        "id": pick.mode.id if pick.mode else None,
        "budget_w": pick.mode.budget_w if pick.mode else None,
        "offered": list(pick.offered),
    }


def print_plan(made: NightPlan, profiles: Mapping[str, BoardProfile]) -> None:
    """Totals, a row a lane, what the power modes mean there, the cells, and what is left out."""
    plan = made.kept
    trials, cells = plan.trials, {trial.cell.cell_id for trial in plan.trials}
    rows = [_lane_row(lane) for lane in plan.lanes]
    reboots = sum(lane.reboots for lane in plan.lanes)
    title = (
        f"{plan.sweep.name}: {len(trials)} trials of {len(cells)} cells on {len(plan.lanes)} "
        f"boards, about {duration(plan.estimate_s)}"
    )
    title += f", {reboots} reboots" if reboots else ""
    columns = ["board", "profile", "meter", "trials", "mode changes", "reboots", "about", "order"]
    print_table(title, columns, rows)
    _print_picks(pick_modes(plan, profiles))
    counts = Counter(
        (t.cell.profile, t.cell.payload, t.cell.power_mode, parameters_text(t.cell.parameters))
        for t in trials
    )
    rows = [[*cell, count] for cell, count in counts.items()]
    print_table("cells", ["profile", "payload", "power mode", "parameters", "trials"], rows[:60])
    if len(rows) > 60:  # noqa: PLR2004 - a screenful
        print(f"... and {len(rows) - 60} more cells; --json has all")
    for line in plan.skipped:
        print(f"skipped: {line}")
    print_times(made)
    if reboots and not plan.sweep.limits.reboot:
        print("The sweep allows no reboot: trials in modes that need one will fail there.")
        print("Allow it with `limits: {reboot: true}` in the sweep.")


def print_times(made: NightPlan) -> None:
    """How long, until when, how that is known, and what is left out for it."""
    cast, night = made.forecast, made.night
    for note in night.notes:
        print(note)
    begin = "begun now" if night.start_at is None else f"begun at {local_text(night.start_at)}"
    ends = [
        local_text(made.begin + timedelta(seconds=one), near=made.begin)
        for one in (cast.low_s, cast.high_s)
    ]
    print(
        f"takes {duration(cast.low_s)} to {duration(cast.high_s)}: {begin}, "
        f"it ends {span_text(*ends)}"
    )
    print(f"estimated from {_origins_text(cast)}")
    if made.left_out:
        _print_left_out(made)


def _origins_text(cast: Forecast) -> str:
    """``this lab's history for 120 trials (same cells, n=3 to 10), defaults for 4``."""
    low, high = cast.samples
    n = f"n={low}" if low == high else f"n={low} to {high}"
    words = {
        "cell": f"this lab's history of the same cells ({n})",
        "payload": f"its history of the payload on other cells ({n})",
        "default": "defaults",
    }
    parts = [f"{words[origin]}: {count} trials" for origin, count in cast.origins.items()]
    return "; ".join(sorted(parts, reverse=True))


def _print_left_out(made: NightPlan) -> None:
    """Which trials: a row for each board, payload and repeat, those that go first first."""
    kept = {trial.cell.cell_id for trial in made.kept.trials}
    groups: dict[tuple[str, str, int, int], list[Trial]] = {}
    for trial in made.left_out:
        key = (trial.board, trial.cell.payload, trial.cell.priority, trial.repeat)
        groups.setdefault(key, []).append(trial)
    rows = [
        [board, payload, priority, repeat, len(trials), sum(_is_lost(one, kept) for one in trials)]
        for (board, payload, priority, repeat), trials in groups.items()
    ]
    print_table(
        f"{len(made.left_out)} trials {made.reason}",
        ["board", "payload", "priority", "repeat", "trials", "cells with no trial left"],
        rows[:60],
    )
    if len(rows) > 60:  # noqa: PLR2004 - a screenful
        print(f"... and {len(rows) - 60} more rows; `farm plan --json` has all")


def _is_lost(trial: Trial, kept: Collection[str]) -> bool:
    return trial.repeat == 1 and trial.cell.cell_id not in kept


def _print_picks(picks: tuple[ModePick, ...]) -> None:
    """A row a profile and word, unless all that is asked for is what the boards are in."""
    if all(pick.asked == CURRENT for pick in picks):
        return
    rows = [
        [pick.profile, pick.asked, pick.text, _watts(pick.mode.budget_w if pick.mode else None)]
        for pick in picks
    ]
    title = "power modes by the profiles; each board's own table decides"
    print_table(title, ["profile", "asked", "mode (id)", "budget W"], rows)


def _watts(budget_w: float | None) -> str:
    return "" if budget_w is None else f"{budget_w:g}"


def _lane_row(lane: Lane) -> list[object]:
    modes: list[str] = []
    for trial in lane.trials:
        if not modes or modes[-1] != trial.cell.power_mode:
            modes.append(trial.cell.power_mode)
    order = " > ".join(modes[:6]) + (" ..." if len(modes) > 6 else "")  # noqa: PLR2004
    return [
        lane.board,
        lane.profile,
        lane.meter or "-",
        len(lane.trials),
        lane.mode_changes,
        lane.reboots,
        duration(lane.estimate_s),
        order,
    ]


def span_text(first: str, last: str) -> str:
    """A span of two times with the offset once; one time where both are alike."""
    if first == last:
        return first
    if first[-6:] == last[-6:]:  # the offset, which changes when clocks do
        first = first[:-6]
    return f"{first}–{last}"  # noqa: RUF001 - a span


def duration(seconds: float) -> str:
    """Seconds for people: ``48 s``, ``12 min``, ``7 h 05 min``."""
    if seconds < 120:  # noqa: PLR2004 - below two minutes seconds say more
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 120:  # noqa: PLR2004
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60:02d} min"
