"""Opening a database: looked at first, made when new, migrated when older, else refused."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from sqlalchemy import Connection, inspect, text

from farm.errors import StoreError
from farm.store.engine import (
    Database,
    check_sqlite_file,
    read_only,
    sqlite_database,
    url_database,
)
from farm.store.failures import NoResultsYetError, damaged, file_errors
from farm.store.schema import HEAD


def open_file(path: Path, *, create: bool, busy_timeout_s: float) -> Database:
    """A SQLite database. Raises StoreVersionError, StoreError; what is refused is not touched."""
    revision = None
    if path.exists():
        check_sqlite_file(path)
        revision = _file_revision(path)
    elif not create:
        raise NoResultsYetError(
            f"{path}: there are no results here yet; `farm run SWEEP` makes them"
        )
    if revision == HEAD:
        return sqlite_database(path, busy_timeout_s=busy_timeout_s)

    from farm.store import migrate  # noqa: PLC0415  (Alembic costs a quarter of a second)

    if revision is not None:
        migrate.refuse_unknown(revision, str(path))
        with file_errors(path):
            migrate.back_up(path, revision)
    database = sqlite_database(path, busy_timeout_s=busy_timeout_s)
    _migrate(database)
    return database


def open_url(url: str, *, create: bool) -> Database:
    """A PostgreSQL database. Raises StoreVersionError, StoreError."""
    database = url_database(url)
    try:
        with database.reading() as connection:
            revision = _revision(connection, database.where)
    except StoreError:
        database.close()
        raise
    if revision == HEAD:
        return database
    if revision is None and not create:
        database.close()
        raise NoResultsYetError(f"{database.where}: there are no results here yet")

    from farm.store import migrate  # noqa: PLC0415  (Alembic costs a quarter of a second)

    if revision is not None:
        try:
            migrate.refuse_unknown(revision, database.where)
        except StoreError:
            database.close()
            raise
    _migrate(database)
    return database


def _migrate(database: Database) -> None:
    from farm.store import migrate  # noqa: PLC0415  (Alembic costs a quarter of a second)

    try:
        migrate.migrate(database)
    except BaseException:
        database.close()
        raise


def _file_revision(path: Path) -> str | None:
    """The revision of a checked file, None if it is new. The file is not changed."""
    if path.stat().st_size == 0:
        return None
    try:
        with closing(read_only(path)) as connection:
            rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            tables = [str(row[0]) for row in rows]
            if "alembic_version" not in tables:
                _check_fresh(tables, path)
                return None
            row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    except sqlite3.Error as error:
        raise StoreError(f"{path}: {error}") from error
    return str(row[0]) if row else None


def _revision(connection: Connection, where: str) -> str | None:
    tables = inspect(connection).get_table_names()
    if "alembic_version" not in tables:
        _check_fresh(tables, where)
        return None
    found = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    return None if found is None else str(found)


def _check_fresh(tables: Sequence[str], where: Path | str) -> None:
    """A database with tables, and none of farm's, belongs to something else."""
    if tables:
        shown = ", ".join(sorted(tables)[:3])
        raise damaged(where, f"not a database of farm (it has the tables {shown})")
