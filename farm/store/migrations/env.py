"""Run by Alembic: migrate over the connection that farm.store.migrate hands in."""

from alembic import context
from sqlalchemy import Connection

from farm.store.schema import METADATA


def run() -> None:
    """All steps in the transaction that the caller began: all of them take hold, or none."""
    connection = context.config.attributes["connection"]
    if not isinstance(connection, Connection):
        raise TypeError("migrations run from farm.store.migrate only")
    context.configure(
        connection=connection,
        target_metadata=METADATA,
        transactional_ddl=True,
        render_as_batch=True,
    )
    with context.begin_transaction():
        context.run_migrations()


run()
