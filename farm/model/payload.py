"""A payload: something a board can run, with the numbers it promises."""

from pathlib import Path
from typing import Literal

from pydantic import Field, JsonValue

from farm.model.record import Record, Scalar


class Parameter(Record):
    """One parameter: its type, the values it may take, its default."""

    type: Literal["str", "int", "float", "bool"]
    summary: str = ""
    choices: tuple[Scalar, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    default: Scalar | None = None


class Metric(Record):
    """One number the payload reports. `scope` says what it covers."""

    unit: str
    summary: str = ""
    scope: Literal["window", "attempt", "system", "compute"] = "window"
    better: Literal["higher", "lower"] | None = None


class Requirements(Record):
    """What the board must offer; a board without it gives `unsupported`."""

    is_simulated: bool = Field(default=False, description="runs on simulated boards only")
    python: str | None = None
    memory_mb: int | None = None
    disk_mb: int | None = None


class PayloadManifest(Record):
    """`payload.yaml`. `inferences` names the metric that counts inferences in the window."""

    name: str
    level: int = Field(ge=0, le=3)
    summary: str
    command: tuple[str, ...] = Field(min_length=1)
    files: tuple[str, ...] = ("**",)
    requirements: Requirements = Requirements()
    parameters: dict[str, Parameter] = Field(default_factory=dict)
    metrics: dict[str, Metric] = Field(default_factory=dict)
    inferences: str | None = None
    artifacts: tuple[str, ...] = ()
    memory_limit_mb: int | None = Field(default=None, ge=1)
    environment: dict[str, str] = Field(default_factory=dict)
    notes: dict[str, JsonValue] = Field(default_factory=dict)


class PayloadFile(Record):
    """One file of a bundle: path inside the payload, content hash, whether it is executable."""

    path: str
    sha256: str
    size: int
    is_executable: bool = False


class Payload(Record):
    """A manifest with its files, named by content: `digest` is a SHA-256 over both."""

    manifest: PayloadManifest
    folder: Path
    files: tuple[PayloadFile, ...]
    digest: str
