"""Whether a power mode is in force: what the board reads back against what its conf wants. Pure.

REAL and CONF of ``nvpmodel -q --verbose`` often differ with nothing wrong: clocks snap to the
kernel's table, -1 is no cap, minima follow jetson_clocks, the GPU's power control reads
auto. Masks and cores must agree: a mask that differs is a reboot pending or lost.
"""

from collections.abc import Collection, Mapping, Sequence

from farm.drivers.power_modes.nvpmodel_conf import is_no_cap
from farm.drivers.power_modes.nvpmodel_output import ParamValue
from farm.model.power_mode import PowerMode

SNAP_SHARE = 0.05
"""Measured on captures: caps snap to the table by up to 4 % (Nano GPU 640 -> 614.4 MHz). Coarse
tables snap further (TX2 CPU 1200 -> 1267.2 MHz is 5.6 %): then the table itself decides."""

_CLOCKS = ("CPU", "GPU", "EMC")


def stuck_mask(masks: Mapping[str, int], values: Sequence[ParamValue]) -> str:
    """The first mask of the GPU that is not as the mode wants it, for people; "" if all are.

    `masks` are the mode's own by the conf. What the tool prints as wanted stands in for a mask
    that they lack. Masks that could not be read are not held against the mode.
    """
    for value in values:
        if not value.arg.endswith("_PG_MASK"):
            continue
        wanted = str(masks.get(value.arg, value.conf))
        if value.real != wanted:
            return f"{value.arg} is {value.real or 'empty'}, not {wanted}"
    return ""


def difference(
    mode: PowerMode,
    values: Sequence[ParamValue],
    online: Collection[int],
    tables: Mapping[str, Sequence[int]],
) -> str:
    """The first thing that is not as `mode` wants it, for people; "" when all agrees.

    Values that could not be read (no root) are not held against the mode. `online` is the
    kernel's list of CPUs, empty if unknown. `tables`: param -> the frequencies it can have,
    for the params of `unexplained_caps`.
    """
    for value in values:
        must_agree = value.arg.startswith("CORE_") or value.arg.endswith("_PG_MASK")
        if must_agree and value.real != value.conf:
            return f"{value.arg} is {value.real or 'empty'}, not {value.conf}"
    for value in unexplained_caps(values):
        if not _is_neighbour(value, tables.get(value.param, ())):
            return f"{value.param} may reach {value.real}, not {value.conf}"
    if online and mode.online_cores is not None and len(online) != mode.online_cores:
        return f"{len(online)} cores are online, not {mode.online_cores}"
    return ""


def unexplained_caps(values: Sequence[ParamValue]) -> list[ParamValue]:
    """Caps of CPU, GPU and EMC that are further from the conf than `SNAP_SHARE`."""
    return [
        value
        for value in values
        if value.arg == "MAX_FREQ" and value.param.startswith(_CLOCKS) and not _is_near(value)
    ]


def _is_near(value: ParamValue) -> bool:
    if is_no_cap(value.conf):
        return True
    real, conf = _numbers(value)
    return abs(real - conf) <= SNAP_SHARE * conf


def _is_neighbour(value: ParamValue, table: Sequence[int]) -> bool:
    """Whether the cap is the table's entry just below or just above what the conf wants."""
    real, conf = _numbers(value)
    below = max((entry for entry in table if entry <= conf), default=None)
    above = min((entry for entry in table if entry >= conf), default=None)
    return real in (below, above)


def _numbers(value: ParamValue) -> tuple[int, int]:
    try:
        return int(value.real), int(value.conf)
    except ValueError:
        return -1, 0
