"""A board made of this machine: the agent over a LocalTransport, payloads of a few lines."""

import asyncio
import hashlib
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from farm.drivers.agent import SshBoardAgent, open_agent
from farm.interfaces.agent import AttemptExit, Job
from farm.model.board import Board
from farm.model.payload import Payload, PayloadFile, PayloadManifest
from farm.testing.local_transport import LocalTransport

PATIENCE_S = 30.0


def local_board(**fields: object) -> Board:
    settings: dict[str, object] = {"name": "b1", "profile": "local", "host": "h", "user": "u"}
    return Board.model_validate({**settings, **fields})


def make_payload(folder: Path, files: Mapping[str, str | bytes], executable: str = "") -> Payload:
    """A payload of these files, written to `folder`."""
    records = []
    for path, content in files.items():
        data = content.encode() if isinstance(content, str) else content
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
        sha256 = hashlib.sha256(data).hexdigest()
        is_executable = path == executable
        records.append(
            PayloadFile(path=path, sha256=sha256, size=len(data), is_executable=is_executable)
        )
    digest = hashlib.sha256(repr(records).encode()).hexdigest()
    manifest = PayloadManifest(name="p", level=1, summary="a test", command=("sh", "run.sh"))
    return Payload(manifest=manifest, folder=folder, files=tuple(records), digest=digest)


class Bench:
    """One local board with an open agent. `run_script` is the whole way of a trial."""

    def __init__(self, folder: Path, board: Board, transport: LocalTransport) -> None:
        self.folder, self.board, self.transport = folder, board, transport
        self.agent: SshBoardAgent
        self._payloads = 0

    @property
    def work(self) -> Path:
        return self.transport.home / ".farm"

    async def open(self) -> None:
        self.agent = await open_agent(self.transport, self.board)

    async def push(self, files: Mapping[str, str | bytes]) -> Payload:
        self._payloads += 1
        payload = make_payload(self.folder / f"payload-{self._payloads}", files)
        await self.agent.ensure_payload(payload)
        return payload

    async def start_script(self, attempt_id: str, script: str, **fields: object) -> None:
        """Start a shell script as the payload of an attempt."""
        payload = await self.push({"run.sh": script})
        await self.agent.start(job(attempt_id, payload, **fields))

    async def run_script(self, attempt_id: str, script: str, **fields: object) -> AttemptExit:
        await self.start_script(attempt_id, script, **fields)
        return await self.exit_of(attempt_id)

    async def exit_of(self, attempt_id: str) -> AttemptExit:
        async with asyncio.timeout(PATIENCE_S):
            status = await self.agent.wait(attempt_id)
        assert status.exit is not None, status
        return status.exit

    async def files_of(self, exited: AttemptExit) -> dict[str, bytes]:
        folder = self.folder / "collected" / exited.attempt_id
        records = await self.agent.collect(exited, folder)
        return {record.path: (folder / record.path).read_bytes() for record in records}

    def log(self, attempt_id: str) -> bytes:
        """What the attempt's stdout.log has now."""
        path = self.path(attempt_id, "stdout.log")
        return path.read_bytes() if path.exists() else b""

    def path(self, attempt_id: str, name: str) -> Path:
        """A file of an attempt where it lies on the board."""
        return self.work / "attempts" / attempt_id / name


def job(attempt_id: str, payload: Payload, **fields: object) -> Job:
    settings: dict[str, object] = {"argv": ("sh", "run.sh"), "params": {}, **fields}
    return Job(attempt_id, payload.digest, **settings)  # type: ignore[arg-type]  # by test


@asynccontextmanager
async def bench(
    folder: Path, environment: Mapping[str, str] | None = None, **board_fields: object
) -> AsyncIterator[Bench]:
    """A bench whose agent and attempts end with the block."""
    home = folder / "home"
    home.mkdir()
    async with LocalTransport(home, environment) as transport:
        made = Bench(folder, local_board(**board_fields), transport)
        await made.open()
        try:
            yield made
        finally:
            await made.agent.close()
            end_supervisors(made.work)


def end_supervisors(work: Path) -> None:
    """Kill what a failed test left: processes whose environment names our own work folder."""
    for environ in Path("/proc").glob("[0-9]*/environ"):
        try:
            is_ours = f"FARM_OUT={work}/attempts/".encode() in environ.read_bytes()
        except OSError:
            continue
        if is_ours:
            os.kill(int(environ.parent.name), signal.SIGKILL)


async def until(is_so: Callable[[], object], what: str) -> None:
    """Wait for a condition, bounded."""
    for _ in range(int(PATIENCE_S / 0.02)):
        if is_so():
            return
        await asyncio.sleep(0.02)
    raise AssertionError(f"did not happen: {what}")


def is_process(pid: int) -> bool:
    """Whether it lives (a zombie does not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] not in b"ZX"
    except OSError:
        return False


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    if os.geteuid() != 0:
        pytest.skip("mounting a tmpfs needs root")
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], check=False
    )
    if mounted.returncode != 0:
        pytest.skip("this machine does not let us mount a tmpfs")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)
