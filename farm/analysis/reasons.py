"""The codes of reasons, and how bad each is. docs/energy.md explains them one by one."""

from enum import StrEnum

from farm.model.measurement import Reason


class ReasonCode(StrEnum):
    """Why an attempt is not plainly valid. The values are a promise: they are stored."""

    EXIT_FAILED = "exit_failed"
    EVENTS_GARBLED = "events_garbled"
    WINDOW_MISSING = "window_missing"
    WINDOW_REPEATED = "window_repeated"
    WINDOW_INCOMPLETE = "window_incomplete"
    WINDOW_BACKWARDS = "window_backwards"
    WINDOW_SHORT = "window_short"
    METRIC_MISSING = "metric_missing"
    METRIC_UNIT = "metric_unit"
    METRIC_REPEATED = "metric_repeated"
    BOOT_CHANGED = "boot_changed"
    CLOCK_MISSING = "clock_missing"
    CLOCK_DRIFT = "clock_drift"
    CLOCK_BOUND = "clock_bound"
    CLOCK_WIDE = "clock_wide"
    MODE_UNPROVEN = "mode_unproven"
    MODE_NOT_REREAD = "mode_not_reread"
    MODE_CHANGED = "mode_changed"
    CLOCKS_UNLOCKED = "clocks_unlocked"
    POWER_MISSING = "power_missing"
    TRACE_SHORT = "trace_short"
    FEW_UPDATES = "few_updates"
    COVERAGE_LOW = "coverage_low"
    GAP = "gap"
    GAP_AT_EDGE = "gap_at_edge"
    STALE = "stale"
    CADENCE_SLOW = "cadence_slow"
    READING_LOW = "reading_low"
    OUTPUT_OFF = "output_off"
    SPIKES = "spikes"
    UNITS_WRONG = "units_wrong"
    METER_AUTH = "meter_auth"
    METER_SHARED = "meter_shared"
    COUNTER_FELL = "counter_fell"
    NEAR_FLOOR = "near_floor"
    INTEGRAL_DIFFERS = "integral_differs"
    POWER_DRIFT = "power_drift"
    IDLE_DRIFT = "idle_drift"
    CLOCK_BELOW_CAP = "clock_below_cap"
    OVER_TEMPERATURE = "over_temperature"
    OVER_CURRENT = "over_current"
    THROTTLED = "throttled"
    FOREIGN_LOAD = "foreign_load"


SUSPECT_PROBLEMS = frozenset({ReasonCode.EVENTS_GARBLED, ReasonCode.METRIC_REPEATED})
"""Problems of the event file that leave the numbers usable; all others make them invalid."""


DISTURBANCES = frozenset(
    {
        ReasonCode.CLOCK_BELOW_CAP,
        ReasonCode.OVER_TEMPERATURE,
        ReasonCode.OVER_CURRENT,
        ReasonCode.THROTTLED,
        ReasonCode.FOREIGN_LOAD,
    }
)
"""The board was not as it should be: the attempt is suspect, and tried again after a pause."""


def reason(code: ReasonCode, text: str) -> Reason:
    """A reason with that code; `text` holds the numbers."""
    return Reason(code=code.value, text=text)
