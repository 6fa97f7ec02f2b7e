"""Who is told of what a run does: one entry of the inventory's ``notify:`` list."""

from enum import StrEnum

from pydantic import Field, JsonValue

from farm.model.record import Record


class NotifyOn(StrEnum):
    """What a message is sent for."""

    END = "end"
    """The run ended, whatever came of it; not when its user stopped it."""
    FIRST_FAILURE = "first_failure"
    """The first trial failed for good."""
    QUARANTINED = "quarantined"
    """A board was taken out of the run."""


class NotifySpec(Record):
    """One way to send messages; `kind` names its driver, `options` are the driver's.

    `url` is a reference to a secret: whoever knows a webhook's address may write to it.
    `command` is an argv list. `timeout_s` bounds one message with all its tries, in seconds.
    """

    kind: str
    on: tuple[NotifyOn, ...] = Field(default=(NotifyOn.END,), min_length=1)
    url: str | None = Field(default=None, description="a secret reference: env:, file:, keyring:")
    command: tuple[str, ...] = ()
    timeout_s: float = Field(default=10.0, gt=0, le=120)
    options: dict[str, JsonValue] = Field(default_factory=dict)
