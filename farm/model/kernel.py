"""What a board's kernel log tells about an attempt."""

from pydantic import Field

from farm.model.record import Record


class KernelCause(Record):
    """A known cause found in kernel messages.

    `at_s` is the board's boot time of its first line, in seconds; None where the line has none.
    `line` is that line, bounded and without control characters, `count` how many lines say so.
    """

    code: str
    text: str
    line: str
    at_s: float | None = None
    count: int = Field(default=1, ge=1)
    process: str = ""
    pid: int | None = None
    is_payload: bool | None = Field(
        default=None, description="whether it hit the payload; None is unknown"
    )


class KernelReport(Record):
    """What was asked of a board's kernel log for one attempt, the likeliest cause first.

    `source` is the command that told, "" when none did: `because` says why then.
    """

    source: str = ""
    because: str = ""
    causes: tuple[KernelCause, ...] = ()
