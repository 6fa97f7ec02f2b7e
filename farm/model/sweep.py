"""A sweep: the axes, the rules, the repeats, and how to measure."""

from typing import Literal

from pydantic import Field

from farm.model.power_mode import ClockPolicy, FanPolicy
from farm.model.record import Record, Scalar

Rule = dict[str, Scalar | tuple[Scalar, ...]]
"""A partial description of cells: a key is a parameter, or one of board, profile, power_mode,
payload; a tuple of values means any of them."""


class PayloadAxes(Record):
    """One payload of a sweep with the parameter values to combine.

    `exclude` drops combinations that match a rule in all its keys; `include` adds
    combinations that the axes do not give. `boards` narrows the sweep's selection;
    `power_modes`, where given, stands for the sweep's: a board with one fixed mode has no
    use for the names of another type's.
    `priority`: higher runs first where the order leaves a choice.
    """

    payload: str
    boards: tuple[str, ...] = ()
    power_modes: tuple[str, ...] | None = Field(default=None, min_length=1)
    axes: dict[str, tuple[Scalar, ...]] = Field(default_factory=dict)
    include: tuple[dict[str, Scalar], ...] = ()
    exclude: tuple[Rule, ...] = ()
    repeats: int | None = Field(default=None, ge=1)
    priority: int = 0


class SettleRule(Record):
    """Before each trial wait for `max_temperature_c`; give up after `max_wait_s`.

    Before a trial is tried again because it ran too hot, throttled or beside another process,
    wait `cool_down_s` first; twice as long before each further try, at most `max_wait_s`.
    """

    max_temperature_c: float | None = None
    max_wait_s: float = Field(default=300.0, ge=0)
    pause_s: float = Field(default=0.0, ge=0)
    cool_down_s: float = Field(default=60.0, ge=0)


class TelemetryRule(Record):
    """How often a board tells of itself during attempts."""

    rate_hz: float = Field(default=1.0, ge=0.1, le=10.0)


class MeasureRules(Record):
    """How to measure. `window_s` is the least length of the measured window."""

    window_s: float = Field(default=60.0, gt=0)
    warmup_s: float = Field(default=5.0, ge=0)
    idle_s: float = Field(default=60.0, ge=0)
    settle: SettleRule = SettleRule()
    power: Literal["required", "optional", "off"] = "optional"
    telemetry: TelemetryRule | Literal["off"] = TelemetryRule()


class RecoveryLimits(Record):
    """How far a run goes for a board that does not answer, or answers with faults.

    A board is rebooted only where `Limits.reboot` allows it, and power-cycled only where the
    inventory gives it an outlet of its own; counts are per run and go on when it is resumed.
    `patience_s`: a board must be silent so long before its power is cut, for a cable that is out
    for a moment is no reason to. `off_s`: so long the power stays away; 10 s empty the capacitors
    of common supplies. `rest_s`: so long a quarantined board rests before it is tried, twice as
    long each time it is still away, `longest_rest_s` at most; `last_chance_s`: so long it is tried
    when all others are done. Boards or meters that vanish within `together_s` are the lab's fault
    (a dead link is noticed within 20 s by default), which is waited out for `lab_wait_s`.
    """

    reboots_per_board: int = Field(default=2, ge=0)
    power_cycles_per_board: int = Field(default=2, ge=0)
    power_cycles_per_night: int = Field(default=10, ge=0)
    quarantines_per_board: int = Field(default=5, ge=1)
    patience_s: float = Field(default=60.0, ge=0)
    off_s: float = Field(default=10.0, gt=0, le=600)
    rest_s: float = Field(default=600.0, gt=0)
    longest_rest_s: float = Field(default=3600.0, gt=0)
    last_chance_s: float = Field(default=60.0, ge=0)
    together_s: float = Field(default=30.0, gt=0)
    lab_wait_s: float = Field(default=3600.0, ge=0)


class Limits(Record):
    """Bounds: `time_s` an attempt may take, `retries` of a trial after its first attempt.

    `requeues`: a trial whose measurement held but was disturbed (heat, throttling, another
    process) is tried again while it has had no more attempts than that.

    `reboot` lets a board be rebooted where a power mode needs it, at most `max_reboots` times
    in a run; going back to the mode in which it was found comes on top. `reboot_s`: so long a
    board may stay away, twice what users report (one to three minutes). `lease_s`: so long
    after a host vanished a board stays its run's, then it puts itself back; 15 minutes are
    longer than a host's reboot (assumed). `store_wait_s`: so long a database that is away, or a
    full disk of the host, is waited for.
    """

    time_s: float = Field(default=900.0, gt=0)
    retries: int = Field(default=2, ge=0)
    requeues: int = Field(default=2, ge=0)
    connect_retries: int = Field(default=5, ge=0)
    output_mb: float = Field(default=16.0, gt=0)
    reboot: bool = False
    max_reboots: int = Field(default=20, ge=1)
    reboot_s: float = Field(default=300.0, gt=0, le=3600)
    lease_s: float = Field(default=900.0, ge=1, le=24 * 3600)
    store_wait_s: float = Field(default=3600.0, ge=0, le=24 * 3600)
    recovery: RecoveryLimits = RecoveryLimits()


class Sweep(Record):
    """The whole sweep file."""

    name: str
    boards: tuple[str, ...] = ("all",)
    spread: Literal["every", "any"] = "every"
    power_modes: tuple[str, ...] = ("current",)
    clocks: ClockPolicy = "default"
    fan: FanPolicy = "default"
    payloads: tuple[PayloadAxes, ...] = Field(min_length=1)
    repeats: int = Field(default=10, ge=1)
    order: Literal["grouped", "shuffled"] = "grouped"
    seed: int = 1
    measure: MeasureRules = MeasureRules()
    limits: Limits = Limits()
