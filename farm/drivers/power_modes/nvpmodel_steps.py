"""How a Jetson puts itself back without a host, as commands. Pure."""

from farm.model.power_mode import PowerModeState, RestoreStep

LIMIT_S = 60.0


def restore_steps(original: PowerModeState, store: str) -> tuple[RestoreStep, ...]:
    """Free the clocks, set the mode, lock the clocks again if they were.

    Exit codes of nvpmodel prove nothing, so its query is the proof. A mode that needs a reboot
    stays as it is: the tool finds its stdin closed. Where the clocks were never locked in this
    boot, `store` is not there, and that command fails without harm.
    """
    free = RestoreStep(
        argv=("jetson_clocks", "--restore", store),
        needs_root=True,
        timeout_s=LIMIT_S,
        may_fail=True,
    )
    lock = RestoreStep(argv=("jetson_clocks",), needs_root=True, timeout_s=LIMIT_S)
    set_mode = RestoreStep(
        argv=("nvpmodel", "-m", str(original.id)),
        needs_root=True,
        timeout_s=LIMIT_S,
        may_fail=True,
    )
    proof = RestoreStep(
        argv=("nvpmodel", "-q"),
        timeout_s=LIMIT_S,
        expects=f"NV Power Mode: {original.name}\n{original.id}",
    )
    steps = (free, set_mode, proof) if original.id is not None else (free,)
    return (*steps, lock) if original.is_locked else steps
