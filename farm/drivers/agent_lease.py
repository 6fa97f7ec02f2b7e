"""The agent's lease, and what the board does by itself when it runs out."""

from base64 import b64encode
from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from farm.drivers import agent_answers
from farm.drivers.agent_channel import AgentChannel
from farm.interfaces.agent import (
    KeptRestore,
    Lease,
    LeaseHolder,
    RestoreKeeper,
    SelfRestore,
    StepResult,
)
from farm.model.power_mode import RestoreStep

SHOWN = 2000
"""Of what a step said: the board keeps less."""


class LeaseRequests(LeaseHolder, RestoreKeeper):
    """The part of the agent that asks for leases. `_channel` is the agent's."""

    _channel: AgentChannel

    async def take_lease(self, run_id: str, holder: str, ttl_s: float) -> Lease:
        """Take or renew it for this run. Raises LeaseHeldError while another run holds it."""
        answer = await self._channel.request("lease_take", run=run_id, holder=holder, ttl_s=ttl_s)
        return agent_answers.lease(answer.fields.get("lease"))

    async def release_lease(self, run_id: str) -> None:
        """Give it back; not ours is no error."""
        await self._channel.request("lease_release", run=run_id)

    async def show_lease(self) -> Lease | None:
        """The lease that holds now, or None."""
        answer = await self._channel.request("lease_show")
        value = answer.fields.get("lease")
        return None if value is None else agent_answers.lease(value)

    async def keep_restore(self, run_id: str, steps: Sequence[RestoreStep]) -> None:
        """Lay the list on the board, durably, in place of any other; the run has the lease."""
        await self._channel.request(
            "restore_keep", run=run_id, steps=[_step_fields(each) for each in steps]
        )

    async def kept_restore(self) -> KeptRestore | None:
        """The list that lies there, also a done one."""
        answer = await self._channel.request("restore_show")
        value = answer.fields.get("restore")
        return None if value is None else _kept_restore(value)

    async def drop_restore(self, run_id: str) -> None:
        """The board is as it was: remove the run's list; not of this run is no error."""
        await self._channel.request("restore_drop", run=run_id)


class _Step(BaseModel):
    """A step as it lies on the board."""

    model_config = ConfigDict(frozen=True)

    argv: tuple[str, ...] = Field(min_length=1)
    needs_root: bool
    stdin: str
    timeout_s: float = Field(gt=0)
    expects: str
    may_fail: bool

    def read(self) -> RestoreStep:
        text = agent_answers.unpacked("restore_show", self.stdin).decode("utf-8", "replace")
        return RestoreStep.model_validate({**self.model_dump(), "stdin": text})


class _Result(BaseModel):
    argv: tuple[str, ...]
    exit_status: int | None
    said: str
    is_good: bool

    def read(self) -> StepResult:
        said = agent_answers.unpacked("restore_show", self.said).decode("utf-8", "replace")
        return StepResult(self.argv, self.exit_status, said[:SHOWN], self.is_good)


class _Done(BaseModel):
    time: float = Field(allow_inf_nan=False)
    results: tuple[_Result, ...]
    is_complete: bool

    def read(self) -> SelfRestore:
        results = tuple(one.read() for one in self.results)
        return SelfRestore(self.time, self.is_complete, results)


class _Kept(BaseModel):
    run_id: str
    holder: str
    boot_id: str
    steps: tuple[_Step, ...]
    is_watched: bool
    done: _Done | None


_KEPT = TypeAdapter(_Kept)


def _kept_restore(value: object) -> KeptRestore:
    """The list as a value. Raises AgentError."""
    try:
        kept = _KEPT.validate_python(value)
        steps = tuple(step.read() for step in kept.steps)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise agent_answers.not_understood("restore_show", first["msg"]) from error
    done = kept.done.read() if kept.done is not None else None
    return KeptRestore(kept.run_id, kept.holder, kept.boot_id, steps, kept.is_watched, done)


def _step_fields(step: RestoreStep) -> dict[str, object]:
    stdin = b64encode(step.stdin.encode()).decode()
    return {**step.model_dump(mode="json"), "stdin": stdin}
