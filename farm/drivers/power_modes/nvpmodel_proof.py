"""Whether a power mode is in force: what the board reads back against what its conf wants. Pure.

REAL and CONF of ``nvpmodel -q --verbose`` often differ with nothing wrong: clocks snap to the
kernel's table, -1 is no cap, minima follow jetson_clocks, the GPU's power control reads
auto. Masks and cores must agree: a mask that differs is a reboot pending or lost.
"""

from collections.abc import Collection, Sequence

from farm.drivers.power_modes.nvpmodel_parse import ParamValue, is_no_cap
from farm.interfaces.transport import CommandResult
from farm.model.power_mode import PowerMode

SNAP_SHARE = 0.05
"""Measured on captures: caps snap to the table by up to 4 % (Nano GPU 640 -> 614.4 MHz)."""

_CLOCKS = ("CPU", "GPU", "EMC")
_REFUSALS = (
    "a password is required",
    "a terminal is required",
    "no tty present",
    "must have a tty",
    "not in the sudoers file",
    "is not allowed to execute",
    "may not run sudo",
    "as a root user",
    "sudo: not found",
)


def difference(mode: PowerMode, values: Sequence[ParamValue], online: Collection[int]) -> str:
    """The first thing that is not as `mode` wants it, for people; "" when all agrees.

    Values that could not be read (no root) are not held against the mode. `online` is the
    kernel's list of CPUs, empty if unknown.
    """
    for value in values:
        must_agree = value.arg.startswith("CORE_") or value.arg.endswith("_PG_MASK")
        if must_agree and value.real != value.conf:
            return f"{value.arg} is {value.real or 'empty'}, not {value.conf}"
        is_cap = value.arg == "MAX_FREQ" and value.param.startswith(_CLOCKS)
        if is_cap and not _is_cap_kept(value):
            return f"{value.param} may reach {value.real}, not {value.conf}"
    if online and mode.online_cores is not None and len(online) != mode.online_cores:
        return f"{len(online)} cores are online, not {mode.online_cores}"
    return ""


def is_refused_root(result: CommandResult) -> bool:
    """Whether sudo, or the tool itself, refused for want of root."""
    if result.exit_status == 0:
        return False
    text = f"{result.error_text}\n{result.text}"
    return any(refusal in text for refusal in _REFUSALS)


def _is_cap_kept(value: ParamValue) -> bool:
    if is_no_cap(value.conf):
        return True
    try:
        real, conf = int(value.real), int(value.conf)
    except ValueError:
        return False
    return abs(real - conf) <= SNAP_SHARE * conf
