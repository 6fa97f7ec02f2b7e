"""The agent's answers as values. Whatever a board sends is checked here, and nowhere else."""

import base64
import binascii
import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from farm.errors import AgentError
from farm.interfaces.agent import AttemptExit, AttemptPhase, AttemptStatus, Lease
from farm.model.attempt import BoardFingerprint


class Hello(BaseModel):
    """The agent's first line."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, strict=True)

    version: int
    boot_id: str
    machine: str
    kernel: str
    model: str
    l4t: str
    python: str
    cpu_count: int
    memory_mb: int
    free_mb: int
    uid: int
    is_simulated: bool
    work_dir: str
    path: str

    @functools.cached_property
    def fingerprint(self) -> BoardFingerprint:
        """What of it belongs to every record: asked for several times a trial."""
        return BoardFingerprint(
            boot_id=self.boot_id,
            machine=self.machine,
            kernel=self.kernel,
            model=self.model,
            l4t=self.l4t,
            python=self.python,
            cpu_count=self.cpu_count,
            memory_mb=self.memory_mb,
            is_simulated=self.is_simulated,
        )


@dataclass(frozen=True, slots=True)
class Answer:
    """The fields of one answer and when it came, in host monotonic seconds."""

    op: str
    fields: Mapping[str, object]
    received_s: float

    def text(self, name: str) -> str:
        """A text field. Raises AgentError."""
        value = self.fields.get(name)
        if not isinstance(value, str):
            raise not_understood(self.op, f"{name} is {value!r}")
        return value

    def number(self, name: str) -> float:
        """A number. Raises AgentError."""
        value = self.fields.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise not_understood(self.op, f"{name} is {value!r}")
        return value

    def data(self, name: str) -> bytes:
        """Bytes that came as base64. Raises AgentError."""
        return unpacked(self.op, self.fields.get(name))

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of texts. Raises AgentError."""
        value = self.fields.get(name)
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise not_understood(self.op, f"{name} is no list of texts")
        return tuple(value)


_HELLO = TypeAdapter(Hello)
_EXIT = TypeAdapter(AttemptExit)
_LEASE = TypeAdapter(Lease)
_PHASES: Mapping[object, AttemptPhase] = {
    "absent": "absent",
    "running": "running",
    "finished": "finished",
    "lost": "lost",
}


def not_understood(op: str, what: str) -> AgentError:
    """The error for an answer that is none."""
    return AgentError(
        op,
        f"the agent's answer makes no sense: {what[:200]}",
        remedy="Does something else write to the board's stdout, or answer at its address?",
    )


def unpacked(op: str, value: object) -> bytes:
    """Base64 text as bytes. Raises AgentError."""
    if not isinstance(value, str):
        raise not_understood(op, "data is absent")
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError) as error:
        raise not_understood(op, f"data is no base64: {error}") from error


def hello(fields: Mapping[str, object]) -> Hello:
    """The hello. Raises AgentError."""
    try:
        return _HELLO.validate_python(dict(fields))
    except ValidationError as error:
        raise not_understood("hello", _first(error)) from error


def lease(value: object) -> Lease:
    """A lease. Raises AgentError."""
    try:
        return _LEASE.validate_python(value)
    except ValidationError as error:
        raise not_understood("lease", _first(error)) from error


def status(value: object) -> tuple[AttemptStatus, dict[str, bytes]]:
    """A status and the contents of small files that came with it. Raises AgentError."""
    if not isinstance(value, dict):
        raise not_understood("status", "no object")
    phase, attempt_id = _PHASES.get(value.get("phase")), value.get("attempt_id")
    boot_id = value.get("boot_id")
    if phase is None or not isinstance(attempt_id, str) or not isinstance(boot_id, str):
        raise not_understood("status", f"phase {value.get('phase')!r} of {attempt_id!r}")
    if phase != "finished":
        return AttemptStatus(attempt_id, phase, boot_id), {}
    try:
        exited = _EXIT.validate_python(value.get("exit"))
    except ValidationError as error:
        raise not_understood("status", _first(error)) from error
    if exited.attempt_id != attempt_id:
        raise not_understood("status", f"{attempt_id} has the exit record of another attempt")
    inline = value.get("inline", {})
    if not isinstance(inline, dict):
        raise not_understood("status", "inline is no object")
    contents = {str(path): unpacked("status", data) for path, data in inline.items()}
    return AttemptStatus(attempt_id, phase, boot_id, exited), contents


def _first(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    return f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}"
