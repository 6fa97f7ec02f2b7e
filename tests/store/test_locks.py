"""One process a run; the lock goes with the process."""

import os
import signal
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from farm.errors import RunHeldError
from farm.store.database import open_store
from farm.store.locks import Holder, beat, holder, last_beat, locked, this_process
from tests.store.builders import new_run

HOLD = """
import sys
from dataclasses import replace
from pathlib import Path
from farm.store.locks import locked
with locked(Path(sys.argv[1]), "run x"):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_held_run_tells_who_has_it(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        run_id, other = new_run(store), new_run(store)
        assert store.run_holder(run_id) is None
        with store.lock_run(run_id) as owner:
            with pytest.raises(RunHeldError) as told, store.lock_run(run_id):
                pass
            assert store.run_holder(run_id) == store.last_holder(run_id) == owner
            assert (owner.pid, owner.host) == (os.getpid(), socket.gethostname())
        assert f"process {os.getpid()} on {socket.gethostname()} since 20" in str(told.value)
        assert "`farm stop`" in str(told.value)
        assert store.run_holder(run_id) is store.last_holder(run_id) is None
        with store.lock_run(run_id), store.lock_run(other):
            pass


def test_the_lock_goes_with_a_killed_process(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        with pytest.raises(RunHeldError, match=f"process {process.pid} "), locked(path, "run x"):
            pass
        process.send_signal(signal.SIGKILL)
        process.wait()
    with locked(path, "run x"):
        found = holder(path)
        assert found is not None
        assert found.pid == os.getpid()


def test_an_unreadable_lock_file_still_holds(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with locked(path, "run x"):
        path.write_bytes(b"\xff[]")
        with pytest.raises(RunHeldError, match=r"process \? on \?"), locked(path, "run x"):
            pass


def test_looking_at_the_holder_does_not_take_the_run(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with locked(path, "run x"):
        assert holder(path) is not None
    assert holder(path) is None
    assert holder(tmp_path / "none") is None
    with locked(path, "run x"):
        pass


def test_a_beat_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    assert last_beat(path) is None
    with locked(path, "run x"):
        os.utime(path, (0, 0))
        silent = last_beat(path)
        beat(path)
        alive = last_beat(path)
    assert silent is not None
    assert alive is not None
    assert (silent.year, alive > silent) == (1970, True)


def test_a_later_process_of_the_same_number_is_another() -> None:
    ours = this_process()
    assert ours.is_here
    assert not ours.is_dead
    assert replace(ours, started=ours.started - 1).is_dead
    for elsewhere in (replace(ours, host="other"), replace(ours, boot_id="b"), Holder("", 0, "")):
        assert not elsewhere.is_here
        assert not elsewhere.is_dead
