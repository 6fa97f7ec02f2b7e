"""Measurements, windows, verdicts, clock maps, power results."""

from enum import StrEnum
from typing import Literal

from farm.model.record import Record


class Window(Record):
    """A span that the payload marked as measured, in board boot-time seconds."""

    name: str = "measured"
    begin_s: float
    end_s: float


class Measurement(Record):
    """A number with its unit, what it covers, and the window it comes from (None: the attempt)."""

    value: float
    unit: str
    scope: str = "window"
    window: str | None = None


class VerdictStatus(StrEnum):
    """`suspect` results are shown, never ranked; `invalid` ones are no results."""

    VALID = "valid"
    SUSPECT = "suspect"
    INVALID = "invalid"


class Reason(Record):
    """Why a verdict is not `valid`: a code from docs/results-format.md and the numbers."""

    code: str
    text: str


class Verdict(Record):
    """The judgement of one attempt."""

    status: VerdictStatus
    reasons: tuple[Reason, ...] = ()


class ClockExchange(Record):
    """One question for the board's boot-time clock; host times are monotonic. Seconds."""

    host_sent_s: float
    board_s: float
    host_received_s: float


class ClockMap(Record):
    """Host monotonic = board boot time - `offset_s` - `drift` * (board - `board_ref_s`).

    `bound_s` is the largest error the exchanges allow. Seconds.
    """

    offset_s: float
    drift: float = 0.0
    board_ref_s: float = 0.0
    bound_s: float

    def to_host_s(self, board_s: float) -> float:
        """Board boot time to host monotonic time, both in seconds."""
        return board_s - self.offset_s - self.drift * (board_s - self.board_ref_s)


class IdlePower(Record):
    """Mean socket power of the board at rest in one power mode, before and after. Watts."""

    before_w: float | None = None
    after_w: float | None = None

    @property
    def mean_w(self) -> float | None:
        """Mean of what is known of the two, or None."""
        known = [w for w in (self.before_w, self.after_w) if w is not None]
        return sum(known) / len(known) if known else None


class PowerResult(Record):
    """Electricity over the window, at the socket. docs/energy.md has the formulas."""

    meter: str
    mean_w: float | None
    idle_w: float | None = None
    window_s: float
    energy_j: float | None = None
    integral_j: float | None = None
    counter_j: float | None = None
    energy_per_inference_j: float | None = None
    net_energy_per_inference_j: float | None = None
    uncertainty_w: float | None = None
    fresh_updates: int
    coverage: float


SettleStatus = Literal["settled", "gave_up", "unknown"]
