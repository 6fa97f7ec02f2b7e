"""The board side as most boards run it: by a user who is not root, on the system's Python."""

import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from farm.errors import AgentError
from farm.testing.local_transport import LocalTransport
from tests.boardside.local_board import Bench, job, local_board, until

NOBODY = 65534
PYTHON = Path("/usr/bin/python3")
BECOME = f"setpriv --reuid={NOBODY} --regid={NOBODY} --clear-groups"


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Not below pytest's folder, which only its owner may enter."""
    if os.geteuid() != 0 or not PYTHON.exists() or shutil.which("setpriv") is None:
        pytest.skip(f"becoming another user needs root, setpriv and {PYTHON}")
    folder = Path(tempfile.mkdtemp(prefix="farm-nobody-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
async def nobody(open_folder: Path) -> AsyncIterator[Bench]:
    home, python = open_folder / "home", open_folder / "python"
    home.mkdir()
    os.chown(home, NOBODY, NOBODY)
    python.write_text(f'#!/bin/sh\nexec {BECOME} {PYTHON} "$@"\n')
    python.chmod(0o755)
    async with LocalTransport(home) as transport:
        made = Bench(open_folder, local_board(python=str(python)), transport)
        await made.open()
        try:
            yield made
        finally:
            await made.agent.close()


async def test_payload_cannot_write_into_its_own_folder(nobody: Bench) -> None:
    payload = await nobody.push({"run.sh": "id -u; echo >>$FARM_PAYLOAD/run.sh; echo >new && ls"})
    await nobody.agent.start(job("a1", payload))
    files = await nobody.files_of(await nobody.exit_of("a1"))
    assert files["stdout.log"].split() == [b"65534", b"new", b"run.sh"]
    assert b"Permission denied" in files["stderr.log"]


async def test_locked_artifacts_are_told_and_removed(nobody: Bench) -> None:
    script = "cd $FARM_OUT; mkdir -p a/b; touch a/b/c a/d; chmod 0 a/b; chmod 555 a"
    exited = await nobody.run_script("a1", script, artifacts=("**",))
    files = await nobody.files_of(exited)
    assert "artifacts/a/d" in files
    assert b"Permission denied" in files["skipped.json"]
    await nobody.agent.remove(["a1"])
    await until(lambda: not nobody.path("a1", "").exists(), "it is removed")


async def test_time_limit_and_clean_need_no_root(nobody: Bench) -> None:
    exited = await nobody.run_script("a1", "sleep 1000", time_limit_s=0.2)
    assert exited.ended_by == "timeout"
    await nobody.agent.clean()
    assert list((nobody.work / "payloads").iterdir()) == []


async def test_root_is_asked_for_without_a_password(nobody: Bench) -> None:
    if shutil.which("sudo") is None:
        pytest.skip("sudo is not installed")
    with pytest.raises(AgentError, match=r"run id as root: sudo: .*without a password"):
        await nobody.agent.run(["id", "-u"], needs_root=True)
