"""How long things took in earlier runs of this lab, for the estimates of the next one."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from farm.model.sweep import MeasureRules


class PastAttempt(NamedTuple):
    """One finished attempt. Times are seconds of UTC; `run` tells runs apart.

    `is_ok`: it ran to its end; others are kept because the next one waited for them.
    """

    run: int
    board: str
    profile: str
    meter: str | None
    cell_id: str
    payload: str
    power_mode: str
    is_simulated: bool
    is_ok: bool
    begin_s: float
    end_s: float


class PastReboot(NamedTuple):
    """One reboot into another power mode, until the board was proven to be in it."""

    run: int
    board: str
    end_s: float
    seconds: float


@dataclass(frozen=True, slots=True)
class History:
    """What is known of earlier runs; `rules` are each run's rules of measuring."""

    attempts: tuple[PastAttempt, ...] = ()
    reboots: tuple[PastReboot, ...] = ()
    rules: Mapping[int, MeasureRules] = field(default_factory=dict)
