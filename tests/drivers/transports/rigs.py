"""Rigs that run the transport suite on our SSH driver."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from signal import SIGKILL

import pytest

from farm.drivers.transports.asyncssh import AsyncsshTransport
from farm.drivers.transports.ssh_context import SshContext
from farm.interfaces.transport import Transport
from farm.model.board import Board, ConnectionLimits
from farm.testing.transport_contract import TransportRig
from tests.servers.ssh import SshServer
from tests.servers.sshd import SSHD, Sshd

QUICK = ConnectionLimits(starts_per_s=1000.0, keepalive_s=1.0, keepalive_count=2)


@dataclass(frozen=True)
class SshRig(TransportRig):
    """A board behind SSH on this machine; its files are in `folder`."""

    board: Board
    folder: Path
    cut_links: Callable[[], Awaitable[None]]
    small: Path | None = None
    fixed: Path | None = None

    @property
    def scratch(self) -> str:
        path = self.folder / "scratch"
        path.mkdir(exist_ok=True)
        return str(path)

    @property
    def full_folder(self) -> str | None:
        return str(self.small) if self.small else None

    @property
    def read_only_folder(self) -> str | None:
        return str(self.fixed) if self.fixed else None

    def transport(self) -> Transport:
        return AsyncsshTransport(self.board, SshContext(QUICK))

    async def cut(self) -> None:
        await self.cut_links()


@dataclass(frozen=True, kw_only=True)
class SshdRig(SshRig):
    """The same, with its sshd at hand."""

    server: Sshd


@asynccontextmanager
async def in_process_rig() -> AsyncIterator[SshRig]:
    with _folder() as folder, mounts(folder) as (small, fixed):
        async with SshServer(folder / "root") as server:
            yield SshRig(server.board(), folder, server.cut, small, fixed)


@asynccontextmanager
async def sshd_rig(
    lines: Sequence[str] = (),
    *,
    algorithm: str = "ssh-ed25519",
    widen: tuple[str, ...] = (),
) -> AsyncIterator[SshdRig]:
    need_sshd()
    with (
        _folder() as folder,
        mounts(folder) as (small, fixed),
        Sshd(folder / "sshd", lines=lines, algorithm=algorithm) as server,
    ):

        async def cut() -> None:
            server.signal_sessions(SIGKILL)

        yield SshdRig(server.board(algorithms=widen), folder, cut, small, fixed, server=server)


def through(shell: str, before: str = "") -> tuple[str, ...]:
    """Lines of sshd_config that make `shell` the login shell, called as sshd would."""
    return (f'ForceCommand {before}exec {shell} -c "$SSH_ORIGINAL_COMMAND"',)


@asynccontextmanager
async def tools_rig(tools: Mapping[str, str]) -> AsyncIterator[SshRig]:
    """A board that has these tools and no others: name -> program of this machine."""
    with _folder() as folder:
        for name, program in tools.items():
            (folder / name).symlink_to(program)
        shell = f"env PATH={folder} {folder}/sh"
        async with sshd_rig(through(shell)) as rig:
            yield rig


def need(program: str) -> str:
    """The program's path. Skips the test where it is missing; fails where CI=true."""
    path = shutil.which(program)
    if path is None:
        _miss(f"{program} is not installed")
    return path or ""


def need_sshd() -> None:
    """Skip the test where there is no sshd; fail where CI=true."""
    if SSHD is None:
        _miss("openssh-server is not installed")


def _miss(reason: str) -> None:
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="farm-ssh-") as name:
        yield Path(name)


@contextmanager
def mounts(folder: Path) -> Iterator[tuple[Path | None, Path | None]]:
    """A file system of 2 MB and one that is read-only; None, None where we may not mount."""
    small, fixed = folder / "small", folder / "fixed"
    small.mkdir()
    fixed.mkdir()
    made: list[Path] = []
    try:
        for path, options in ((small, "size=2m"), (fixed, "size=64k,ro")):
            argv = ["mount", "-t", "tmpfs", "-o", options, "farm-test", str(path)]
            if subprocess.run(argv, capture_output=True, check=False).returncode == 0:
                made.append(path)
        yield (small if small in made else None), (fixed if fixed in made else None)
    finally:
        for path in made:
            subprocess.run(["umount", "-l", str(path)], check=True)
