"""Shows a plan."""

from collections import Counter

from farm.cli.output import print_table
from farm.model.parameters import parameters_text
from farm.model.plan import Lane, Plan


def plan_json(plan: Plan) -> dict[str, object]:
    """The plan as `farm plan --json` prints it."""
    return {
        "sweep": plan.sweep.name,
        "digest": plan.digest,
        "estimate_s": round(plan.estimate_s, 1),
        "skipped": list(plan.skipped),
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


def print_plan(plan: Plan) -> None:
    """Totals, a row a lane, and the cells."""
    trials, cells = plan.trials, {trial.cell.cell_id for trial in plan.trials}
    rows = [_lane_row(lane) for lane in plan.lanes]
    title = (
        f"{plan.sweep.name}: {len(trials)} trials of {len(cells)} cells on {len(plan.lanes)} "
        f"boards, about {duration(plan.estimate_s)}"
    )
    columns = ["board", "profile", "meter", "trials", "mode changes", "reboots", "about", "order"]
    print_table(title, columns, rows)
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
