"""The inventory: boards, how to reach them, and what measures them."""

from enum import StrEnum
from pathlib import Path

from pydantic import Field, JsonValue

from farm.model.notify import NotifySpec
from farm.model.record import Record


class Quirk(StrEnum):
    """Bad manners of real Jetsons that a simulated one can have."""

    STICKY_MASK = "sticky_mask"
    """A boot leaves the GPU's masks at 0, so that nvpmodel asks at every call, until it is
    nvpmodel itself that reboots."""
    PROMPT_FOR_CURRENT = "prompt_for_current"
    """nvpmodel asks for a reboot even for the mode that is set."""
    REFUSE_MODE = "refuse_mode"
    """No other mode is accepted: error 19 on the first file."""
    REFUSE_RETURN = "refuse_return"
    """Other modes are accepted, and the way back to the default is refused (error 19)."""
    STATUS_LOST_AT_REBOOT = "status_lost_at_reboot"
    """A volatile root: each boot is in the default mode."""
    BOOT_SERVICE_FAILED = "boot_service_failed"
    """The boot does not put the stored mode into force, though the query names it."""
    GPU_UNUSED = "gpu_unused"
    """Headless: nothing uses the GPU at boot, so that its masks change live."""
    SLOW_QUERY = "slow_query"
    """A query hangs for seconds while the GPU is full."""
    FAN_WARNING = "fan_warning"
    """nvpmodel prints a warning before the mode."""
    EXIT_ZERO_WITH_ERRORS = "exit_zero_with_errors"
    """nvpmodel ends with 0 whatever went wrong."""
    LOCK_WITHOUT_EFFECT = "lock_without_effect"
    """jetson_clocks says nothing and locks nothing, as in the first minute after a boot."""
    NO_SUDO = "no_sudo"
    """sudo wants a password."""
    THROTTLES = "throttles"
    """Under load its clocks fall to half of their caps, and a cooling device tells it."""


class BoardSimulation(Record):
    """Settings of a board that `farm sim up` serves. Absent for real boards."""

    seed: int = 1
    ambient_c: float = 25.0
    quirks: tuple[Quirk, ...] = ()


class Board(Record):
    """One physical machine.

    `meter` and `outlet` name entries of the inventory. `root_prefix` is put before
    the absolute paths that farm reads on the board (a containerised board).
    """

    name: str
    profile: str
    host: str
    port: int = Field(default=22, ge=1, le=65535)
    user: str
    transport: str = "asyncssh"
    identity_file: Path | None = None
    known_hosts: Path | None = None
    password: str | None = Field(
        default=None, description="a secret reference: env:, file:, keyring:"
    )
    tags: tuple[str, ...] = ()
    telemetry: str | None = Field(
        default=None, description="a driver; by default tegrastats on Jetsons, files elsewhere"
    )
    meter: str | None = None
    outlet: str | None = None
    work_dir: str = "~/.farm"
    python: str = "python3"
    root_prefix: str = ""
    host_key_algorithms: tuple[str, ...] = ()
    is_maintenance: bool = False
    simulation: BoardSimulation | None = None


class MeterAccuracy(Record):
    """What the maker promises. `gain_pct` of reading, the others in watts."""

    gain_pct: float = Field(default=0.0, ge=0)
    floor_w: float = Field(default=0.0, ge=0)
    resolution_w: float = Field(default=0.0, ge=0)


class MeterSimulation(Record):
    """Settings of a meter that `farm sim up` serves. Absent for real meters."""

    refresh_s: float = Field(default=1.0, gt=0)
    noise_w: float = Field(default=0.02, ge=0)
    seed: int = 1


class MeterSpec(Record):
    """One meter of the inventory; `kind` names its driver, `options` are the driver's.

    Times in seconds. `update_s` is how often the meter's value refreshes, `averaging_s`
    over what it averages, `lag_s` how late a value shows. Readings outside
    `min_w`..`max_w` are rejected.
    """

    name: str
    kind: str
    host: str | None = None
    port: int | None = Field(default=None, ge=1, le=65535)
    poll_hz: float = Field(default=2.0, gt=0, le=50)
    deadline_s: float = Field(default=1.0, gt=0)
    secret: str | None = None
    update_s: float = Field(default=1.0, gt=0)
    averaging_s: float = Field(default=0.0, ge=0)
    lag_s: float = Field(default=0.0, ge=0)
    lag_uncertainty_s: float = Field(default=0.0, ge=0)
    min_w: float = 0.0
    max_w: float = 3700.0
    accuracy: MeterAccuracy = MeterAccuracy()
    options: dict[str, JsonValue] = Field(default_factory=dict)
    simulation: MeterSimulation | None = None


class ConnectionLimits(Record):
    """Bounds on what the host does at once; see docs/architecture.md for the reasons."""

    connecting: int = Field(default=32, ge=1)
    starts_per_s: float = Field(default=20.0, gt=0)
    keepalive_s: float = Field(default=5.0, gt=0)
    keepalive_count: int = Field(default=3, ge=1)
    login_timeout_s: float = Field(default=60.0, gt=0)


class Inventory(Record):
    """All boards and meters of one lab, in the order of the file."""

    boards: tuple[Board, ...]
    meters: tuple[MeterSpec, ...] = ()
    limits: ConnectionLimits = ConnectionLimits()
    notify: tuple[NotifySpec, ...] = ()

    def board(self, name: str) -> Board:
        """The board of that name. Raises KeyError."""
        for board in self.boards:
            if board.name == name:
                return board
        raise KeyError(name)

    def meter(self, name: str) -> MeterSpec:
        """The meter of that name. Raises KeyError."""
        for meter in self.meters:
            if meter.name == name:
                return meter
        raise KeyError(name)
