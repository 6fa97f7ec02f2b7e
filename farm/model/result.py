"""One trial's answer as `farm results --json` prints it: a promise with a version.

docs/results-format.md describes each field; change `SCHEMA` when a field changes its meaning.
"""

from datetime import datetime

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from farm.model.attempt import Outcome, TrialState
from farm.model.measurement import Measurement, PowerResult, Verdict
from farm.model.record import Record, Scalar, Source

SCHEMA = 1


class PowerModeAnswer(Record):
    """Asked and read back; name and id are None while nothing was proven.

    `budget_w` is what the mode promises, in watts.
    """

    asked: str
    name: str | None = None
    id: int | None = None
    budget_w: float | None = None
    clocks: str = "default"


class TrialResult(Record):
    """One trial. None is unknown. `board` is where it ran or is planned to run.

    `moved_from`: the board that it was planned for and that was lost before it ran.
    """

    schema_version: int = Field(
        default=SCHEMA, validation_alias="schema", serialization_alias="schema"
    )
    run: str
    trial: str
    board: str
    profile: str
    level: int
    payload: str
    parameters: dict[str, Scalar]
    power_mode: PowerModeAnswer
    repeat: int
    state: TrialState
    attempts: int
    outcome: Outcome | None = None
    reason: str = ""
    source: Source | None = None
    metrics: dict[str, Measurement] = Field(default_factory=dict)
    power: PowerResult | None = None
    verdict: Verdict | None = None
    started: datetime | None = None
    ended: datetime | None = None
    moved_from: str | None = None

    @model_serializer(mode="wrap")
    def _leave_out_what_is_rare(
        self, serialize: SerializerFunctionWrapHandler
    ) -> dict[str, object]:
        """`moved_from` is there only where a trial was moved: readers of before know no such."""
        told: dict[str, object] = serialize(self)
        if self.moved_from is None:
            told.pop("moved_from", None)
        return told
