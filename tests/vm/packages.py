"""Debian's arm64 packages, by this machine's own apt and sources, without touching its own state.

Packages are only unpacked: nothing of them runs here.
"""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

LIMIT_S = 240.0
UNUSED = ("perl", "libperl", "dpkg_", "tar_", "debconf", "libdb5", "libgdbm")
"""Only maintainer scripts use them, and no such script runs here."""
KERNEL = "linux-image-cloud-arm64"


class PackagesError(RuntimeError):
    """apt could not get what the board is made of; its last words."""


def command(
    argv: Sequence[str], *, cwd: Path | None = None, apt_config: Path | None = None
) -> str:
    """Run a tool of this machine to its end; its stdout."""
    environment = {**os.environ, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"}
    if apt_config is not None:
        environment["APT_CONFIG"] = str(apt_config)
    done = subprocess.run(
        list(argv),
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    if done.returncode != 0:
        told = (done.stderr or done.stdout).strip()[-2000:]
        raise PackagesError(f"{' '.join(argv)}: exit {done.returncode}: {told}")
    return done.stdout


class Arm64Packages:
    """A private apt, for arm64, in `folder`. It reads this machine's sources of its release."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._archives = folder / "cache" / "archives"
        self._config = folder / "apt.conf"

    def update(self) -> None:
        """Make the private apt and get the lists. Raises PackagesError."""
        for part in ("etc/sources.list.d", "lists/partial", "cache/archives/partial"):
            (self._folder / part).mkdir(parents=True)
        (self._folder / "status").touch()
        self._copy_sources()
        at = f'"{self._folder}'
        self._config.write_text(
            f'Dir::Etc::SourceList {at}/etc/sources.list";\n'
            f'Dir::Etc::SourceParts {at}/etc/sources.list.d";\n'
            f'Dir::State::Lists {at}/lists"; Dir::State::Status {at}/status";\n'
            f'Dir::Cache {at}/cache"; Dir::Cache::Archives {at}/cache/archives";\n'
            'APT::Architecture "arm64"; APT::Architectures { "arm64"; };\n'
            'APT::Install-Recommends "false"; APT::Sandbox::User "root";\n'
            'Acquire::Languages "none"; Acquire::Retries "4"; Acquire::http::Timeout "30";\n'
        )
        command(["apt-get", "-qq", "update"], apt_config=self._config)

    def unpack(self, names: Sequence[str], root: Path) -> None:
        """Unpack packages and all they depend on below `root`. Raises PackagesError."""
        get = ["apt-get", "-qq", "-y", "--download-only", "install", *names]
        command(get, apt_config=self._config)
        kept = [p for p in self._archives.glob("*.deb") if not p.name.startswith(UNUSED)]
        for package in sorted(kept):
            command(["dpkg-deb", "--extract", str(package), str(root)])

    def unpack_kernel(self, root: Path) -> None:
        """Unpack the newest kernel alone. Raises PackagesError."""
        told = command(["apt-cache", "depends", KERNEL], apt_config=self._config)
        words = [line.split() for line in told.splitlines()]
        name = next(w[1] for w in words if len(w) == 2 and w[1].startswith("linux-image-"))
        place = self._folder / "kernel"
        place.mkdir()
        command(["apt-get", "-qq", "download", name], cwd=place, apt_config=self._config)
        (package,) = place.glob("*.deb")
        command(["dpkg-deb", "--extract", str(package), str(root)])

    def _copy_sources(self) -> None:
        """Those of the release that runs here: others may lack arm64, or be far away."""
        release = _codename()
        own = [Path("/etc/apt/sources.list"), *Path("/etc/apt/sources.list.d").glob("*.*")]
        kept = [file for file in own if file.is_file() and release in file.read_text().split()]
        if not kept:
            raise PackagesError(f"no source of {release or 'a Debian release'} below /etc/apt")
        for file in kept:
            (self._folder / "etc" / "sources.list.d" / file.name).write_text(file.read_text())


def _codename() -> str:
    for line in Path("/etc/os-release").read_text().splitlines():
        key, _, value = line.partition("=")
        if key == "VERSION_CODENAME":
            return value.strip('"')
    return ""
