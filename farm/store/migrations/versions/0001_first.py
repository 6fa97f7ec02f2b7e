"""The first schema: runs, lanes, cells, trials, attempts, measurements, events, leases."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make all tables."""
    op.create_table(
        "board_leases",
        sa.Column("board", sa.String(), nullable=False),
        sa.Column("run_id", sa.String(), nullable=False),
        sa.Column("holder_host", sa.String(), nullable=False),
        sa.Column("holder_pid", sa.Integer(), nullable=False),
        sa.Column("taken", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("board", name=op.f("pk_board_leases")),
    )
    op.create_table(
        "runs",
        sa.Column("key", sa.Integer(), nullable=False),
        sa.Column("run_id", sa.String(), nullable=False),
        sa.Column("sweep", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.Column("heartbeat", sa.DateTime(timezone=True), nullable=True),
        sa.Column("tool_version", sa.String(), nullable=False),
        sa.Column("inventory_digest", sa.String(), nullable=False),
        sa.Column("plan_digest", sa.String(), nullable=False),
        sa.Column("estimate_s", sa.Double(), nullable=False),
        sa.Column("sweep_document", sa.Text(), nullable=False),
        sa.Column("skipped_document", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_runs")),
        sa.UniqueConstraint("run_id", name=op.f("uq_runs_run_id")),
    )
    op.create_table(
        "cells",
        sa.Column("run_key", sa.Integer(), nullable=False),
        sa.Column("cell_id", sa.String(), nullable=False),
        sa.Column("target", sa.String(), nullable=False),
        sa.Column("is_any", sa.Boolean(), nullable=False),
        sa.Column("profile", sa.String(), nullable=False),
        sa.Column("payload", sa.String(), nullable=False),
        sa.Column("payload_digest", sa.String(), nullable=False),
        sa.Column("level", sa.Integer(), nullable=False),
        sa.Column("power_mode", sa.String(), nullable=False),
        sa.Column("clocks", sa.String(), nullable=False),
        sa.Column("priority", sa.BigInteger(), nullable=False),
        sa.Column("parameters_document", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["run_key"], ["runs.key"], name=op.f("fk_cells_run_key")),
        sa.PrimaryKeyConstraint("run_key", "cell_id", name=op.f("pk_cells")),
    )
    op.create_table(
        "events",
        sa.Column("key", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("run_key", sa.Integer(), nullable=False),
        sa.Column("time", sa.DateTime(timezone=True), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("board", sa.String(), nullable=False),
        sa.Column("trial_id", sa.String(), nullable=False),
        sa.Column("attempt_id", sa.String(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("data_document", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["run_key"], ["runs.key"], name=op.f("fk_events_run_key")),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_events")),
    )
    op.create_index(op.f("ix_events_run_key_key"), "events", ["run_key", "key"], unique=False)
    op.create_table(
        "run_lanes",
        sa.Column("run_key", sa.Integer(), nullable=False),
        sa.Column("lane", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("board", sa.String(), nullable=False),
        sa.Column("profile", sa.String(), nullable=False),
        sa.Column("meter", sa.String(), nullable=True),
        sa.Column("mode_changes", sa.Integer(), nullable=False),
        sa.Column("reboots", sa.Integer(), nullable=False),
        sa.Column("estimate_s", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["run_key"], ["runs.key"], name=op.f("fk_run_lanes_run_key")),
        sa.PrimaryKeyConstraint("run_key", "lane", name=op.f("pk_run_lanes")),
    )
    op.create_table(
        "trials",
        sa.Column("run_key", sa.Integer(), nullable=False),
        sa.Column("trial_id", sa.String(), nullable=False),
        sa.Column("lane", sa.Integer(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("cell_id", sa.String(), nullable=False),
        sa.Column("repeat", sa.Integer(), nullable=False),
        sa.Column("board", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["run_key", "cell_id"],
            ["cells.run_key", "cells.cell_id"],
            name=op.f("fk_trials_run_key_cell_id"),
        ),
        sa.ForeignKeyConstraint(
            ["run_key", "lane"],
            ["run_lanes.run_key", "run_lanes.lane"],
            name=op.f("fk_trials_run_key_lane"),
        ),
        sa.ForeignKeyConstraint(["run_key"], ["runs.key"], name=op.f("fk_trials_run_key")),
        sa.PrimaryKeyConstraint("run_key", "trial_id", name=op.f("pk_trials")),
        sa.UniqueConstraint("run_key", "position", name=op.f("uq_trials_run_key_position")),
    )
    op.create_index(op.f("ix_trials_run_key_state"), "trials", ["run_key", "state"], unique=False)
    op.create_table(
        "attempts",
        sa.Column("run_key", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("attempt_id", sa.String(), nullable=False),
        sa.Column("trial_id", sa.String(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("board", sa.String(), nullable=False),
        sa.Column("is_open", sa.Boolean(), nullable=False),
        sa.Column("started", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended", sa.DateTime(timezone=True), nullable=True),
        sa.Column("outcome", sa.String(), nullable=True),
        sa.Column("verdict", sa.String(), nullable=True),
        sa.Column("source", sa.String(), nullable=True),
        sa.Column("record_document", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["run_key", "trial_id"],
            ["trials.run_key", "trials.trial_id"],
            name=op.f("fk_attempts_run_key_trial_id"),
        ),
        sa.PrimaryKeyConstraint("run_key", "attempt_id", name=op.f("pk_attempts")),
        sa.UniqueConstraint(
            "run_key", "trial_id", "number", name=op.f("uq_attempts_run_key_trial_id_number")
        ),
    )
    op.create_index(
        op.f("ix_attempts_run_key_is_open"), "attempts", ["run_key", "is_open"], unique=False
    )
    op.create_table(
        "measurements",
        sa.Column("run_key", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("attempt_id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("value", sa.Double(), nullable=True),
        sa.Column("unit", sa.String(), nullable=False),
        sa.Column("scope", sa.String(), nullable=False),
        sa.Column("window_name", sa.String(), nullable=True),
        sa.ForeignKeyConstraint(
            ["run_key", "attempt_id"],
            ["attempts.run_key", "attempts.attempt_id"],
            name=op.f("fk_measurements_run_key_attempt_id"),
        ),
        sa.PrimaryKeyConstraint("run_key", "attempt_id", "name", name=op.f("pk_measurements")),
    )
