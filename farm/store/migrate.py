"""Making and migrating the schema. Loads Alembic, so only what has to migrate imports it."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import text

from farm.errors import StoreVersionError
from farm.store.engine import Database, read_only
from farm.store.failures import store_errors
from farm.store.schema import HEAD

MIGRATIONS = Path(__file__).parent / "migrations"
_UPGRADE_LOCK = 0x6661726D  # "farm": any number that nobody else uses for an advisory lock


def refuse_unknown(revision: str, where: str) -> None:
    """Raises StoreVersionError for a revision that this farm has no migration of."""
    known = {script.revision for script in ScriptDirectory(str(MIGRATIONS)).walk_revisions()}
    if revision not in known:
        raise StoreVersionError(
            f"{where}: written by another farm (schema {revision}; this one knows up to {HEAD}). "
            "Use that farm, or another results folder; nothing was changed"
        )


def migrate(database: Database) -> None:
    """Bring the schema to the newest revision, all or nothing. Raises StoreError."""
    with store_errors(database.where), database.writing() as connection:
        if database.path is None:
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _UPGRADE_LOCK})
        config = Config()
        # ConfigParser reads a percent sign in a path as its own.
        config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def back_up(path: Path, revision: str) -> Path:
    """Copy a SQLite database, also what is still in its WAL, to ``farm.db.bak-<revision>``.

    An earlier copy is kept; the new one then gets a number. Returns the copy's path.
    """
    target = path.with_name(f"{path.name}.bak-{revision}")
    number = 2
    while target.exists():
        target = path.with_name(f"{path.name}.bak-{revision}-{number}")
        number += 1
    unfinished = target.with_name(f"{target.name}.part")
    unfinished.unlink(missing_ok=True)
    with closing(read_only(path)) as source, closing(sqlite3.connect(unfinished)) as copy:
        source.backup(copy)
    descriptor = os.open(unfinished, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    unfinished.rename(target)
    return target
