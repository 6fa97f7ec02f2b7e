"""The faults that a simulated lab is told to have: on what, when, how long. Pure.

A fault acts on one simulated board; the kinds ``meter_...`` act on the board's meter. A
scenario is a list of faults with their times, some drawn by a seed, so that a night with them
can be had again.
"""

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from random import Random
from typing import Self

from pydantic import Field, model_validator

from farm.errors import ConfigError
from farm.model.board import Inventory
from farm.model.record import Record
from farm.simulation.fault_kinds import ENDS_ITSELF, PARAMETERS, FaultKind

MOST_FAULTS = 10_000
"""In one scenario."""


class Fault(Record):
    """One fault. Times in seconds; without `for_s` it lasts until it is healed.

    `after_s` counts from now, or, with `in_payload`, from when the board runs a payload.
    """

    board: str
    kind: FaultKind
    after_s: float = Field(default=0.0, ge=0, le=7 * 86400)
    for_s: float | None = Field(default=None, gt=0, le=7 * 86400)
    in_payload: bool = False
    parameters: dict[str, float] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check(self) -> Self:
        known = PARAMETERS.get(self.kind, {})
        for name, value in self.parameters.items():
            limits = known.get(name)
            if limits is None:
                raise ValueError(_unknown_parameter(self.kind, name))
            if not limits.least <= value <= limits.most:
                msg = f"{name} should be {limits.least:g} to {limits.most:g}"
                raise ValueError(msg)
        if self.for_s is not None and self.kind in ENDS_ITSELF:
            msg = f"{self.kind} happens once; leave out for_s"
            raise ValueError(msg)
        return self

    @property
    def on_meter(self) -> bool:
        """Whether it acts on the board's meter."""
        return self.kind.value.startswith("meter_")

    def number(self, name: str) -> float:
        """A parameter's value. Raises KeyError where the kind has no such parameter."""
        return self.parameters.get(name, PARAMETERS[self.kind][name].default)


class RandomFaults(Record):
    """Faults drawn by a seed: the same numbers over the same boards give the same faults.

    Each begins within `over_s` and lasts `least_s` to `most_s`. Without `kinds` there are all
    but those that end no sooner than somebody comes (`wrong_host_key`, `full_disk`).
    """

    seed: int
    count: int = Field(ge=1, le=MOST_FAULTS)
    over_s: float = Field(gt=0, le=7 * 86400)
    kinds: tuple[FaultKind, ...] = ()
    boards: tuple[str, ...] = ("all",)
    least_s: float = Field(default=2.0, gt=0)
    most_s: float = Field(default=15.0, gt=0)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.least_s > self.most_s:
            msg = "least_s is above most_s"
            raise ValueError(msg)
        return self


class Scenario(Record):
    """A file of faults; times count from the moment the lab is told of it.

    A fault's `board` may be any selector (``tag:gpu``, ``all``): it then hits each of them.
    """

    name: str = ""
    faults: tuple[Fault, ...] = Field(default=(), max_length=MOST_FAULTS)
    random: RandomFaults | None = None


_NOT_DRAWN = (FaultKind.WRONG_HOST_KEY, FaultKind.FULL_DISK)


def draw_faults(wish: RandomFaults, inventory: Inventory, boards: Sequence[str]) -> list[Fault]:
    """The faults that the seed gives, by their beginning. Raises ConfigError without choice."""
    source = Random(wish.seed)  # noqa: S311 -- to be had again, no secret
    kinds = wish.kinds or tuple(kind for kind in FaultKind if kind not in _NOT_DRAWN)
    probes = [Fault(board=board, kind=kind) for board in boards for kind in kinds]
    possible = [fault for fault in probes if not why_not(fault, inventory)]
    if not possible:
        msg = "none of these boards can have any of these faults"
        raise ConfigError(msg)
    drawn = []
    for _ in range(wish.count):
        fault = source.choice(possible)
        begin_s, length_s = (
            source.uniform(0, wish.over_s),
            source.uniform(wish.least_s, wish.most_s),
        )
        for_s = None if fault.kind in ENDS_ITSELF else round(length_s, 1)
        drawn.append(fault.model_copy(update={"after_s": round(begin_s, 1), "for_s": for_s}))
    return sorted(drawn, key=lambda fault: fault.after_s)


def why_not(fault: Fault, inventory: Inventory) -> str:
    """Why the inventory's lab cannot have that fault; "" if it can."""
    board = next((one for one in inventory.boards if one.name == fault.board), None)
    if board is None:
        return _no_board(fault.board, [one.name for one in inventory.boards])
    if board.simulation is None:
        return f"{board.name} is a real board: only simulated ones have faults on demand"
    if fault.on_meter:
        meter = next((one for one in inventory.meters if one.name == board.meter), None)
        if meter is None:
            return f"{board.name} has no meter that could have {fault.kind}"
        if meter.simulation is None:
            return f"the meter {meter.name} of {board.name} is not a simulated one"
    return ""


def kind_named(word: str) -> FaultKind:
    """The kind that a user means; ``-`` and ``_`` are the same. Raises ConfigError."""
    plain = word.strip().lower().replace("-", "_")
    try:
        return FaultKind(plain)
    except ValueError:
        names = [str(kind) for kind in FaultKind]
        hint = _nearest(plain, names)
        msg = f'no fault "{word}"{hint} There are {", ".join(names)}'
        raise ConfigError(msg) from None


def parameters_of(kind: FaultKind, words: Sequence[str]) -> dict[str, float]:
    """``NAME=VALUE`` words as a kind's parameters. Raises ConfigError."""
    return dict(_parameter(kind, word) for word in words)


def _parameter(kind: FaultKind, word: str) -> tuple[str, float]:
    name, _, text = word.partition("=")
    name = name.strip().replace("-", "_")
    if name not in PARAMETERS.get(kind, {}):
        raise ConfigError(_unknown_parameter(kind, name))
    try:
        return name, float(text)
    except ValueError:
        msg = f"{word!r}: {name}=NUMBER is needed"
        raise ConfigError(msg) from None


def settings_of(fault: Fault) -> Iterator[str]:
    """The fault's parameters in words, those too that were not given."""
    if fault.in_payload:
        yield f"{fault.after_s:g} s into a payload" if fault.after_s else "in a payload"
    for name in PARAMETERS.get(fault.kind, {}):
        yield f"{name}={fault.number(name):g}"


def _unknown_parameter(kind: FaultKind, name: str) -> str:
    known = list(PARAMETERS.get(kind, {}))
    if not known:
        return f"{kind} has no parameters"
    return f'{kind} has no parameter "{name}"{_nearest(name, known)} It has {", ".join(known)}'


def _no_board(name: str, known: Sequence[str]) -> str:
    return f'no board "{name}"{_nearest(name, known)}'


def _nearest(word: str, known: Sequence[str]) -> str:
    close = get_close_matches(word, known, n=1)
    return f'; did you mean "{close[0]}"?' if close else "."
