"""What can go wrong in a simulated lab: the kinds of faults, and what each can be told."""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import NamedTuple


class FaultKind(StrEnum):
    """What can go wrong; `WHAT_HAPPENS` says what each is."""

    LINK_DROP = "link_drop"
    HALF_OPEN = "half_open"
    LATENCY = "latency"
    PACKET_LOSS = "packet_loss"
    SLOW_BOARD = "slow_board"
    HANG = "hang"
    REBOOT = "reboot"
    REBOOT_LOOP = "reboot_loop"
    POWER_LOSS = "power_loss"
    WRONG_HOST_KEY = "wrong_host_key"
    FULL_DISK = "full_disk"
    CLOCK_JUMP = "clock_jump"
    THROTTLE = "throttle"
    SUDO_GONE = "sudo_gone"
    PAYLOAD_OOM = "payload_oom"
    METER_FROZEN = "meter_frozen"
    METER_ZERO = "meter_zero"
    METER_GONE = "meter_gone"
    METER_SLOW = "meter_slow"


WHAT_HAPPENS: Mapping[FaultKind, str] = {
    FaultKind.LINK_DROP: "Every connection is reset; while it lasts, new ones are reset too",
    FaultKind.HALF_OPEN: (
        "The link is dead and nobody is told: connections stay open, nothing passes"
    ),
    FaultKind.LATENCY: "Each way takes longer",
    FaultKind.PACKET_LOSS: (
        "As TCP makes it felt: some of what is sent waits for being sent again"
    ),
    FaultKind.SLOW_BOARD: "The board's processes run only a share of the time",
    FaultKind.HANG: (
        "Nothing runs and nothing answers, until it ends, or the board is switched off and on"
    ),
    FaultKind.REBOOT: "The board restarts, once",
    FaultKind.REBOOT_LOOP: "The board restarts again and again",
    FaultKind.POWER_LOSS: (
        "The power goes for a while, and with it what was last written, whatever was promised"
    ),
    FaultKind.WRONG_HOST_KEY: "Something else answers at the board's address",
    FaultKind.FULL_DISK: "No room is left in the user's home",
    FaultKind.CLOCK_JUMP: (
        "The board's date is another; what date says, not what a program's library says"
    ),
    FaultKind.THROTTLE: (
        "The board is too hot: its clocks are halved and its cooling device tells it"
    ),
    FaultKind.SUDO_GONE: "sudo wants a password",
    FaultKind.PAYLOAD_OOM: (
        "The kernel kills the payload that runs, or the next one, and says that memory ran out"
    ),
    FaultKind.METER_FROZEN: "The meter repeats its last value",
    FaultKind.METER_ZERO: "The meter reads 0 W",
    FaultKind.METER_GONE: "Nobody answers at the meter's address",
    FaultKind.METER_SLOW: "The meter answers late",
}
"""Each in a line for people."""


class Parameter(NamedTuple):
    """A number that a kind takes: what it is when not given, and its bounds."""

    default: float
    least: float
    most: float


PARAMETERS: Mapping[FaultKind, Mapping[str, Parameter]] = {
    FaultKind.LATENCY: {
        "delay_ms": Parameter(100.0, 0.0, 60_000.0),
        "jitter_ms": Parameter(0.0, 0.0, 60_000.0),
    },
    FaultKind.PACKET_LOSS: {"loss_pct": Parameter(10.0, 0.0, 90.0)},
    FaultKind.SLOW_BOARD: {"share": Parameter(0.25, 0.05, 1.0)},
    FaultKind.REBOOT_LOOP: {"every_s": Parameter(5.0, 0.5, 3600.0)},
    FaultKind.POWER_LOSS: {"lost_s": Parameter(5.0, 0.0, 3600.0)},
    FaultKind.CLOCK_JUMP: {"jump_s": Parameter(3600.0, -1e9, 1e9)},
    FaultKind.METER_SLOW: {"delay_s": Parameter(3.0, 0.0, 600.0)},
}
"""What can be set, by kind; units are in the names, ``share`` is of the time."""

ENDS_ITSELF = frozenset({FaultKind.REBOOT, FaultKind.PAYLOAD_OOM})
"""Kinds that happen once; `for_s` means nothing to them."""

BLIP_S = 1.0
"""How long the power is away where a power loss does not say: a flicker of the mains."""


class FaultWords(NamedTuple):
    """A kind for people: its name, what happens, and what can be set."""

    kind: str
    what: str
    settings: str


def fault_words() -> Iterator[FaultWords]:
    """All kinds."""
    for kind in FaultKind:
        known = PARAMETERS.get(kind, {})
        settings = " ".join(f"{name}={one.default:g}" for name, one in known.items())
        yield FaultWords(str(kind), WHAT_HAPPENS[kind], settings)
