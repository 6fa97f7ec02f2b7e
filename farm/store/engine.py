"""Connections to the database: SQLite in a results folder, or PostgreSQL by URL."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError, DBAPIError, OperationalError, SQLAlchemyError
from sqlalchemy.pool import ConnectionPoolEntry

from farm.errors import StoreAwayError, StoreError, StoreVersionError
from farm.store.failures import damaged, store_errors, translated

_MAGIC = b"SQLite format 3\0"  # documented: https://sqlite.org/fileformat2.html section 1.2
_QUICK_CHECK_LIMIT = 64 * 1024 * 1024
"""Above this size the file is not read whole at opening. Measured: 0.4 s of CPU for 460 MB, which
a resume would spend before it looks at the first board."""
_WRITES = "farm_writes"
_RESTART_S = 2.0
_UNKNOWN = "22023"  # invalid_parameter_value: what pg_xact_status says of a transaction to come
_LINK = {
    "connect_timeout": "10",
    "keepalives_idle": "10",
    "keepalives_interval": "3",
    "keepalives_count": "3",
    "tcp_user_timeout": "20000",
    "application_name": "farm",
    "options": "-c statement_timeout=120s -c lock_timeout=20s "
    "-c idle_in_transaction_session_timeout=120s",
}
"""libpq's settings, where the URL has none: a half-open link is noticed within 20 s, a lock that
somebody forgot within 20 s, and the server ends within two minutes what we left open.
https://www.postgresql.org/docs/current/libpq-connect.html"""


@dataclass(frozen=True, slots=True)
class Database:
    """An engine and what to call it in messages; `path` is the SQLite file, or None."""

    engine: Engine
    where: str
    path: Path | None

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection that sees one state of the database throughout. Raises StoreError."""
        with store_errors(self.where), self._connected() as connection:
            if self.path is None:
                connection.execution_options(isolation_level="REPEATABLE READ")
            with connection.begin():
                yield connection

    def _connected(self) -> Connection:
        """A server that restarts is given a moment; what it said then is told."""
        try:
            return self.engine.connect()
        except OperationalError as error:
            if not isinstance(translated(error, self.where), StoreAwayError):
                raise
        time.sleep(_RESTART_S)
        return self.engine.connect()

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that holds the write lock from its start.

        Raises what the database raises: the writer decides what is tried again.
        """
        with self.writer() as connection, connection.begin():
            yield connection

    def writer(self) -> Connection:
        """A connection whose transactions hold the write lock from their start; close it."""
        return self.engine.connect().execution_options(**{_WRITES: True})

    def transaction_id(self, connection: Connection) -> str:
        """The name of a server's transaction, by which `has_committed` finds it; "" in a file.

        A file has no link that could be cut between a commit and its acknowledgement.
        """
        if self.path is not None:
            return ""
        asked = "SELECT pg_current_xact_id()::text"
        return str(connection.exec_driver_sql(asked).scalar_one())

    def has_committed(self, transaction_id: str) -> bool:
        """Whether a transaction whose connection was lost took hold.

        Raises what the database raises, StoreAwayError while the server does not know yet.
        """
        with self.engine.connect() as connection:
            try:
                asked = text("SELECT pg_xact_status(CAST(:name AS xid8))")
                fate = connection.execute(asked, {"name": transaction_id}).scalar()
            except DBAPIError as error:
                if getattr(error.orig, "sqlstate", "") == _UNKNOWN:  # of the future
                    return False  # a standby took over that never had it
                raise
        if fate == "in progress":  # the server has not noticed yet that we are gone
            raise StoreAwayError(f"{self.where}: a transaction that was cut off still goes on")
        return str(fate) == "committed"

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()


def sqlite_database(path: Path, *, busy_timeout_s: float) -> Database:
    """A database in a file that was checked before; the file is made if it is not there."""
    engine = create_engine(URL.create("sqlite", database=str(path)))

    def on_connect(connection: DBAPIConnection, _: ConnectionPoolEntry) -> None:
        # Python's module would begin transactions only before INSERT and the like, so that a
        # read of several tables saw several states, and DDL were not in a transaction at all.
        connection.isolation_level = None
        cursor = connection.cursor()
        cursor.execute(f"PRAGMA busy_timeout = {int(busy_timeout_s * 1000)}")
        cursor.execute("PRAGMA journal_mode = WAL")
        cursor.execute("PRAGMA synchronous = FULL")
        cursor.execute("PRAGMA foreign_keys = ON")
        cursor.close()

    def on_begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get(_WRITES, False)
        # A transaction that begins as a reader and then writes can fail with SQLITE_BUSY at
        # once, whatever the timeout: https://sqlite.org/lang_transaction.html section 2.2
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    event.listen(engine, "connect", on_connect)
    event.listen(engine, "begin", on_begin)
    return Database(engine, str(path), path)


def url_database(url: str) -> Database:
    """PostgreSQL by URL, through psycopg 3. Raises StoreError."""
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        # Not quoted: what does not parse may still hold a password.
        raise StoreError("the database URL does not parse; postgresql://USER@HOST/NAME") from error
    if parsed.get_backend_name() != "postgresql":
        raise StoreError(
            f"{parsed.drivername}: no such kind of store. Leave the URL out for SQLite in the "
            "results folder, or give postgresql://USER@HOST/NAME"
        )
    where = parsed.render_as_string(hide_password=True)
    try:
        engine = create_engine(
            parsed.set(drivername="postgresql+psycopg"),
            pool_pre_ping=True,
            connect_args={key: word for key, word in _LINK.items() if key not in parsed.query},
        )
    except ModuleNotFoundError as error:
        raise StoreError(f"{where}: needs psycopg; pip install 'jetfarm[postgres]'") from error
    except SQLAlchemyError as error:
        raise StoreError(f"{where}: {error}") from error
    return Database(engine, where, None)


def check_sqlite_file(path: Path) -> None:
    """Look at an existing file without changing a byte. Raises StoreVersionError, StoreError."""
    try:
        with path.open("rb") as file:
            head = file.read(100)
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror or error}") from error
    if not head:
        _check_empty(path)
        return
    if head[:16] != _MAGIC:
        raise damaged(path, "not an SQLite database")
    is_idle = not _wal(path).exists()
    try:
        _check_content(path)
    except StoreVersionError:
        if not is_idle or not _wal(path).exists():
            raise
        _check_content(path)  # somebody began to write while we read without locks


def read_only(path: Path) -> sqlite3.Connection:
    """A plain connection that cannot write to the file, nor leave files beside an idle one."""
    # SQLite makes a -wal and a -shm even to read; "immutable" means that nobody has it open.
    idle = "" if _wal(path).exists() else "&immutable=1"
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro{idle}", uri=True, timeout=5.0)


def _wal(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def _check_content(path: Path) -> None:
    try:
        with closing(read_only(path)) as connection:
            _check_pages(connection, path)
    except sqlite3.DatabaseError as error:
        if (error.sqlite_errorname or "").startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
            raise damaged(path, f"the database is damaged ({error})") from error
        raise StoreError(f"{path}: {error}") from error


def _check_empty(path: Path) -> None:
    """A file of no bytes is a new database, unless runs were kept beside it."""
    runs = path.parent / "runs"
    if runs.is_dir() and any(runs.iterdir()):
        raise damaged(path, f"the file is empty, but {runs} holds runs: it was cut off")


def _check_pages(connection: sqlite3.Connection, path: Path) -> None:
    if path.stat().st_size <= _QUICK_CHECK_LIMIT:
        found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if found != "ok":
            raise damaged(path, f"the database is damaged ({found.splitlines()[-1]})")
    else:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
