"""What every model of farm is: frozen, with unknown keys refused."""

from enum import StrEnum

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """A frozen pydantic model that refuses unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Source(StrEnum):
    """Where a figure comes from. Never mixed in one aggregate, always shown."""

    MEASURED = "measured"
    SIMULATED = "simulated"
    RECORDED = "recorded"


Scalar = str | int | float | bool
"""A parameter's value. A mapping of these is a payload's parameters."""
