"""What went wrong in the database, as StoreError with what the user can do."""

import errno
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy.exc import DBAPIError, OperationalError, SQLAlchemyError

from farm.errors import StoreAwayError, StoreError, StoreFullError, StoreVersionError

_LOCKED = ("SQLITE_BUSY", "SQLITE_LOCKED")
_DAMAGED = ("SQLITE_CORRUPT", "SQLITE_NOTADB")
_FORBIDDEN = "42501"
_FULL_BELOW = 1024 * 1024
"""Bytes free under which an I/O error is told as a full disk: SQLite reports a file that it
could not extend (the WAL's index) as an I/O error, not as SQLITE_FULL. Assumed."""


_AWAY = ("08", "53", "57", "40001", "40P01", "55P03", "25P03", "25P04", "25006")
"""SQLSTATEs that pass: no connection, no resources, an administrator or a crash, a conflict, a
lock, a time limit of a session, a server that is read-only since another one took over.
https://www.postgresql.org/docs/current/errcodes-appendix.html"""


class NoResultsYetError(StoreError):
    """There is no store yet, and none was to be made."""


def damaged(path: Path | str, what: str) -> StoreVersionError:
    """The error for a file that farm will not touch."""
    return StoreVersionError(
        f"{path}: {what}. The file was left as it is. Put back a copy of it (farm.db.bak-*, or "
        f"your own), or move it away together with {Path(path).name}-wal to begin anew"
    )


def is_full(path: Path) -> bool:
    """True if the file system that holds `path` has no room."""
    folder = path if path.is_dir() else path.parent
    try:
        return shutil.disk_usage(folder).free < _FULL_BELOW
    except OSError:
        return False


def disk_full(path: Path | str) -> StoreFullError:
    """The error for a full disk."""
    return StoreFullError(
        f"{path}: the disk is full. Make room; what is committed is safe, and `farm resume` "
        "continues from it"
    )


def translated(error: SQLAlchemyError, where: Path | str) -> StoreError:
    """The StoreError for a database's error; `where` is the file, or a URL without password."""
    original = error.orig if isinstance(error, DBAPIError) else None
    if not isinstance(original, sqlite3.Error):
        return _of_server(error, where)
    name = getattr(original, "sqlite_errorname", "") or ""
    path = Path(where)
    if name.startswith(_LOCKED):
        return StoreAwayError(
            f"{where}: another process keeps the database locked. Close what holds it "
            "(a database browser, a backup) and run the command again"
        )
    if name.startswith(_DAMAGED):
        return damaged(path, f"the database is damaged ({original})")
    if name == "SQLITE_FULL" or (name.startswith("SQLITE_IOERR") and is_full(path)):
        return disk_full(path)
    if name.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN")):
        return StoreError(
            f"{where}: {original}. Check the owner and mode of the file and its folder"
        )
    return StoreError(f"{where}: {original} ({name or type(original).__name__})")


def _of_server(error: SQLAlchemyError, where: Path | str) -> StoreError:
    """PostgreSQL's. What never came to a connection has no SQLSTATE."""
    original = error.orig if isinstance(error, DBAPIError) else None
    detail = (str(original or error).strip() or type(original or error).__name__).splitlines()[0]
    state = getattr(original, "sqlstate", None)
    is_cut = isinstance(error, DBAPIError) and error.connection_invalidated
    is_unmade = isinstance(error, OperationalError) and state is None
    if is_cut or is_unmade or (state or "").startswith(_AWAY):
        return StoreAwayError(f"{where}: {detail}. Is the database up, and may this user write?")
    if state == _FORBIDDEN:
        return StoreError(f"{where}: {detail}. This user may not do that (docs/store.md: roles)")
    return StoreError(f"{where}: {detail}")


@contextmanager
def store_errors(where: Path | str) -> Iterator[None]:
    """Raise what the database raises as StoreError."""
    try:
        yield
    except SQLAlchemyError as error:
        raise translated(error, where) from error


@contextmanager
def file_errors(path: Path) -> Iterator[None]:
    """Raise what the file system raises as StoreError."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise disk_full(path) from error
        raise StoreError(f"{path}: {error.strerror or error}") from error
