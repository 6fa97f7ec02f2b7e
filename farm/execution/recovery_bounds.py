"""Whether a board may be rebooted or power-cycled; each answer is the reason why not, or ""."""

from farm.execution.equipment import BoardEquipment
from farm.execution.recovery_counts import Spent
from farm.execution.session import BoardSession
from farm.model.sweep import Limits, RecoveryLimits


def no_reboot(session: BoardSession, limits: Limits, spent: int) -> str:
    """`spent`: so often it was rebooted for recovery's sake in this run."""
    if not limits.reboot:
        return "the sweep does not allow it (limits: {reboot: true})"
    if spent >= limits.recovery.reboots_per_board:
        return f"done {_times(spent)} in this run, which is the limit"
    return "" if session.is_open else "the link is down"


def no_power_cycle(equipment: BoardEquipment, bounds: RecoveryLimits, spent: Spent) -> str:
    """An outlet is switched only for the one board that it feeds."""
    mine = spent.power_cycles[equipment.board.name]
    if equipment.outlet is None:
        return "the inventory gives it no outlet"
    if equipment.outlet_shared:
        return f"its outlet also feeds {', '.join(equipment.outlet_shared)}"
    if mine >= bounds.power_cycles_per_board:
        return f"done {_times(mine)} in this run, which is the limit"
    if spent.power_cycles.total() >= bounds.power_cycles_per_night:
        return f"the run has had its {bounds.power_cycles_per_night}"
    return ""


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
