"""The tables. One schema for SQLite and PostgreSQL; migrations/ makes it step by step.

What is searched by is a typed column; the whole records lie beside it as JSON text, so that
a record's new field needs no migration. Text holds JSON rather than a JSON type: the stored
bytes are compared when an attempt is finished twice, and PostgreSQL would reorder keys.
"""

from datetime import UTC, datetime

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    DateTime,
    Dialect,
    Double,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)
from sqlalchemy.types import TypeDecorator

HEAD = "0002"
"""The newest migration. A test holds it equal to the newest file in migrations/versions."""


class UtcDateTime(TypeDecorator[datetime]):
    """An aware time, kept in UTC. SQLite has no zones, so none is stored there."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """To UTC; a time without a zone is a bug of the caller. Raises ValueError."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"a stored time needs a zone: {value!r}")
        return value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Back as an aware time in UTC."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


BigKey = BigInteger().with_variant(Integer, "sqlite")
"""SQLite numbers rows by itself only for a column declared exactly INTEGER."""

METADATA = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

RUNS = Table(
    "runs",
    METADATA,
    Column("key", Integer, primary_key=True),
    Column("run_id", String, nullable=False, unique=True),
    Column("sweep", String, nullable=False),
    Column("state", String, nullable=False),
    Column("created", UtcDateTime, nullable=False),
    Column("heartbeat", UtcDateTime),
    Column("tool_version", String, nullable=False),
    Column("inventory_digest", String, nullable=False),
    Column("plan_digest", String, nullable=False),
    Column("estimate_s", Double, nullable=False),
    Column("sweep_document", Text, nullable=False),
    Column("skipped_document", Text, nullable=False),
    Column("claim_document", Text),
)

LANES = Table(
    "run_lanes",
    METADATA,
    Column("run_key", ForeignKey("runs.key"), primary_key=True),
    Column("lane", Integer, primary_key=True, autoincrement=False),
    Column("board", String, nullable=False),
    Column("profile", String, nullable=False),
    Column("meter", String),
    Column("mode_changes", Integer, nullable=False),
    Column("reboots", Integer, nullable=False),
    Column("estimate_s", Double, nullable=False),
)

CELLS = Table(
    "cells",
    METADATA,
    Column("run_key", ForeignKey("runs.key"), primary_key=True),
    Column("cell_id", String, primary_key=True),
    Column("target", String, nullable=False),
    Column("is_any", Boolean, nullable=False),
    Column("profile", String, nullable=False),
    Column("payload", String, nullable=False),
    Column("payload_digest", String, nullable=False),
    Column("level", Integer, nullable=False),
    Column("power_mode", String, nullable=False),
    Column("clocks", String, nullable=False),
    Column("priority", BigInteger, nullable=False),
    Column("parameters_document", Text, nullable=False),
)

TRIALS = Table(
    "trials",
    METADATA,
    Column("run_key", ForeignKey("runs.key"), primary_key=True),
    Column("trial_id", String, primary_key=True),
    Column("lane", Integer, nullable=False),
    Column("position", Integer, nullable=False),
    Column("cell_id", String, nullable=False),
    Column("repeat", Integer, nullable=False),
    Column("board", String, nullable=False),
    Column("state", String, nullable=False),
    Column("reason", Text, nullable=False),
    Column("attempts", Integer, nullable=False),
    ForeignKeyConstraint(["run_key", "lane"], ["run_lanes.run_key", "run_lanes.lane"]),
    ForeignKeyConstraint(["run_key", "cell_id"], ["cells.run_key", "cells.cell_id"]),
    UniqueConstraint("run_key", "position"),
    Index(None, "run_key", "state"),
)

ATTEMPTS = Table(
    "attempts",
    METADATA,
    Column("run_key", Integer, primary_key=True, autoincrement=False),
    Column("attempt_id", String, primary_key=True),
    Column("trial_id", String, nullable=False),
    Column("number", Integer, nullable=False),
    Column("board", String, nullable=False),
    Column("is_open", Boolean, nullable=False),
    Column("started", UtcDateTime, nullable=False),
    Column("ended", UtcDateTime),
    Column("outcome", String),
    Column("verdict", String),
    Column("source", String),
    Column("record_document", Text),
    ForeignKeyConstraint(["run_key", "trial_id"], ["trials.run_key", "trials.trial_id"]),
    UniqueConstraint("run_key", "trial_id", "number"),
    Index(None, "run_key", "is_open"),
)

MEASUREMENTS = Table(
    "measurements",
    METADATA,
    Column("run_key", Integer, primary_key=True, autoincrement=False),
    Column("attempt_id", String, primary_key=True),
    Column("name", String, primary_key=True),
    Column("value", Double),  # null: not a finite number
    Column("unit", String, nullable=False),
    Column("scope", String, nullable=False),
    Column("window_name", String),
    ForeignKeyConstraint(["run_key", "attempt_id"], ["attempts.run_key", "attempts.attempt_id"]),
)

EVENTS = Table(
    "events",
    METADATA,
    Column("key", BigKey, primary_key=True),
    Column("run_key", ForeignKey("runs.key"), nullable=False),
    Column("time", UtcDateTime, nullable=False),
    Column("kind", String, nullable=False),
    Column("board", String, nullable=False),
    Column("trial_id", String, nullable=False),
    Column("attempt_id", String, nullable=False),
    Column("text", Text, nullable=False),
    Column("data_document", Text, nullable=False),
    Index(None, "run_key", "key"),
)
