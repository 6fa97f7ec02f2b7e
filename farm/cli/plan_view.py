"""Shows a plan."""

from collections import Counter
from collections.abc import Mapping

from farm.cli.output import print_table
from farm.model.parameters import parameters_text
from farm.model.plan import Lane, Plan
from farm.model.profile import BoardProfile
from farm.planning.order import CURRENT
from farm.planning.picks import ModePick, pick_modes


def plan_json(plan: Plan, profiles: Mapping[str, BoardProfile]) -> dict[str, object]:
    """The plan as `farm plan --json` prints it."""
    return {
        "sweep": plan.sweep.name,
        "digest": plan.digest,
        "estimate_s": round(plan.estimate_s, 1),
        "skipped": list(plan.skipped),
        "power_modes": [_pick_json(pick) for pick in pick_modes(plan, profiles)],
        "lanes": [
            {
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
            for lane in plan.lanes
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


def print_plan(plan: Plan, profiles: Mapping[str, BoardProfile]) -> None:
    """Totals, a row a lane, what the power modes mean there, and the cells."""
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
    if reboots and not plan.sweep.limits.reboot:
        print("The sweep allows no reboot: trials in modes that need one will fail there.")
        print("Allow it with `limits: {reboot: true}` in the sweep.")


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


def duration(seconds: float) -> str:
    """Seconds for people: ``48 s``, ``12 min``, ``7 h 05 min``."""
    if seconds < 120:  # noqa: PLR2004 - below two minutes seconds say more
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 120:  # noqa: PLR2004
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60:02d} min"
