"""What is opened, what is refused, and that what is refused stays as it is."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import text

from farm.errors import StoreError, StoreVersionError
from farm.store import migrate
from farm.store.database import Store, open_store
from farm.store.engine import Database, url_database
from farm.store.schema import HEAD, METADATA
from tests.servers.postgres import PostgresServer
from tests.store.builders import new_run


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A results folder with one run."""
    folder = tmp_path / "results"
    with open_store(folder) as store:
        new_run(store)
    return folder


@contextmanager
def unchanged(path: Path) -> Iterator[None]:
    before = path.read_bytes()
    names = sorted(entry.name for entry in path.parent.iterdir())
    yield
    assert path.read_bytes() == before
    assert sorted(entry.name for entry in path.parent.iterdir()) == names


def pragma(store: Store, name: str) -> object:
    with store._database.reading() as connection:
        return connection.exec_driver_sql(f"PRAGMA {name}").scalar()


def test_sqlite_is_opened_durable(tmp_path: Path) -> None:
    with open_store(tmp_path / "a" / "b") as store:
        assert pragma(store, "journal_mode") == "wal"
        assert pragma(store, "synchronous") == 2
        assert pragma(store, "foreign_keys") == 1
        assert pragma(store, "busy_timeout") == 5000


def test_a_folder_without_a_store(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no results here yet"):
        open_store(tmp_path / "results", create=False)
    assert list(tmp_path.iterdir()) == []


def test_names_with_odd_characters(tmp_path: Path) -> None:
    folder = tmp_path / "100% sure? #1 'é"
    with open_store(folder) as store:
        run_id = new_run(store)
    with open_store(folder, create=False) as store:
        assert store.find_run("last") == run_id
    assert (folder / "farm.db").is_file()


@pytest.mark.parametrize("content", [b"PK\3\4 a zip", b"SQLite format 2\0" + bytes(500), b"\0"])
def test_another_file_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "farm.db"
    path.write_bytes(content)
    with unchanged(path), pytest.raises(StoreVersionError, match="not an SQLite database") as told:
        open_store(tmp_path)
    assert str(path) in str(told.value)
    assert "left as it is" in str(told.value)


def test_a_damaged_page_is_refused(results: Path) -> None:
    path = results / "farm.db"
    data = bytearray(path.read_bytes())
    for page in range(1, len(data) // 4096):
        data[page * 4096 : page * 4096 + 200] = b"\xff" * 200
    path.write_bytes(data)
    with unchanged(path), pytest.raises(StoreVersionError, match="damaged"):
        open_store(results)


@pytest.mark.parametrize("left", [50, 100, 4096, 3 * 4096 + 17])
def test_a_cut_file_is_refused(results: Path, left: int) -> None:
    path = results / "farm.db"
    path.write_bytes(path.read_bytes()[:left])
    with unchanged(path), pytest.raises(StoreVersionError):
        open_store(results)


def test_an_empty_file_is_a_new_store_only_without_runs(tmp_path: Path) -> None:
    (tmp_path / "farm.db").touch()
    with open_store(tmp_path) as store:
        run_id = new_run(store)
        with store.lock_run(run_id):
            pass
    for name in ("farm.db", "farm.db-wal", "farm.db-shm"):
        (tmp_path / name).unlink(missing_ok=True)
    (tmp_path / "farm.db").touch()
    with unchanged(tmp_path / "farm.db"), pytest.raises(StoreVersionError, match="cut off"):
        open_store(tmp_path)


def test_another_programs_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "farm.db"
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE photos (name TEXT)")
    with (
        unchanged(path),
        pytest.raises(StoreVersionError, match=r"not a database of farm .*photos"),
    ):
        open_store(tmp_path)


def test_a_newer_store_is_refused(results: Path) -> None:
    path = results / "farm.db"
    with closing(sqlite3.connect(path)) as other, other:
        other.execute("UPDATE alembic_version SET version_num = '0999'")
    with unchanged(path), pytest.raises(StoreVersionError) as told:
        open_store(results)
    assert "0999" in str(told.value)
    assert HEAD in str(told.value)


def test_a_newer_postgresql_store_is_refused(tmp_path: Path, postgres_database: str) -> None:
    open_store(tmp_path, database_url=postgres_database).close()
    database = url_database(postgres_database)
    with database.writing() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '0999'"))
    with pytest.raises(StoreVersionError, match="0999"):
        open_store(tmp_path, database_url=postgres_database)
    database.close()


def test_an_empty_postgresql_database_is_no_store(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    url = postgres.url(postgres.new_database())
    with pytest.raises(StoreError, match="no results here yet"):
        open_store(tmp_path, database_url=url, create=False)


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("mysql://root:hunter2@db/farm", "no such kind of store"),
        ("postgresql://root:hunter2@127.0.0.1:1/farm", "Is the database up"),
        ("hunter2", "does not parse"),
    ],
)
def test_a_bad_url_is_told_without_its_password(tmp_path: Path, url: str, told: str) -> None:
    with pytest.raises(StoreError, match=told) as error:
        open_store(tmp_path, database_url=url)
    assert "hunter2" not in str(error.value)


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="File exists"):
        open_store(tmp_path / "file" / "results")


def test_migrations_make_the_schema(store: Store) -> None:
    with store._database.reading() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, METADATA) == []


def test_head_is_the_newest_migration() -> None:
    assert ScriptDirectory(str(migrate.MIGRATIONS)).get_current_head() == HEAD


@pytest.fixture
def later_migrations(tmp_path: Path) -> Path:
    """Our migrations and one more, as the next farm would bring them."""
    folder = tmp_path / "migrations"
    shutil.copytree(
        migrate.MIGRATIONS, folder, ignore=shutil.ignore_patterns("__pycache__", "*.pyc")
    )
    (folder / "versions" / "0003_more.py").write_text(
        "import sqlalchemy as sa\n"
        "from alembic import op\n"
        "revision = '0003'\n"
        "down_revision = '0002'\n"
        "def upgrade():\n"
        "    op.add_column('runs', sa.Column('note', sa.Text()))\n"
        "    op.execute(\"UPDATE runs SET note = 'migrated'\")\n"
    )
    return folder


def notes(database: Database) -> list[object]:
    with database.reading() as connection:
        return list(connection.execute(text("SELECT note FROM runs")).scalars())


def test_an_older_store_is_migrated_after_a_copy(
    results: Path, later_migrations: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrate, "MIGRATIONS", later_migrations)
    monkeypatch.setattr("farm.store.opening.HEAD", "0003")
    with open_store(results) as store:
        assert notes(store._database) == ["migrated"]
    with closing(sqlite3.connect(results / "farm.db.bak-0002")) as copy:
        assert copy.execute("SELECT count(*) FROM trials").fetchone() == (8,)
        assert copy.execute("SELECT version_num FROM alembic_version").fetchone() == ("0002",)
    assert not list(results.glob("*.part"))


def test_a_failed_migration_leaves_the_store_as_it_was(
    results: Path, later_migrations: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (later_migrations / "versions" / "0003_more.py").open("a") as file:
        file.write("    op.execute('SELECT nonsense FROM nowhere')\n")
    with monkeypatch.context() as patch:
        patch.setattr(migrate, "MIGRATIONS", later_migrations)
        patch.setattr("farm.store.opening.HEAD", "0003")
        for _ in range(2):
            with pytest.raises(StoreError, match="nowhere"):
                open_store(results)
    assert (results / "farm.db.bak-0002-2").is_file()
    with open_store(results) as store:
        assert len(store.runs()) == 1


def test_a_copy_has_what_is_only_in_the_wal(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        run_id = new_run(store)
        copy = migrate.back_up(tmp_path / "farm.db", "0001")
    (tmp_path / "other").mkdir()
    copy.rename(tmp_path / "other" / "farm.db")
    with open_store(tmp_path / "other", create=False) as restored:
        assert restored.find_run("last") == run_id
