"""Alembic migrations, run by farm.store.migrate without an ini file."""
