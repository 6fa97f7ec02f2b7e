"""Runs tell who works on them. Boards' leases lie on the boards: the table was never used."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add the column, drop the table."""
    op.add_column("runs", sa.Column("claim_document", sa.Text(), nullable=True))
    op.drop_table("board_leases")
