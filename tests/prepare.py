"""Installs what the tests need from Debian, where this is Debian and we are root.

`make test` runs it first: ``python tests/prepare.py``. Elsewhere it says what is missing and
which tests will skip for it. With CI=true a missing program is an error (exit status 1), so
that no test skips unseen. Does nothing, at once, when everything is there.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

Runner = Callable[[Sequence[str], Mapping[str, str]], int]
"""Runs argv with an environment; its exit status."""


@dataclass(frozen=True, slots=True)
class Need:
    """A program, the Debian package that has it, and the tests that skip without it."""

    program: str
    package: str
    tests: str


_BOARDS = "tests/namespaces"
_MACHINES = "tests/vm"
NEEDS = (
    Need("sshd", "openssh-server", f"{_BOARDS} and all marked sshd"),
    Need("ssh", "openssh-client", f"{_BOARDS} and all marked sshd"),
    Need("ip", "iproute2", _BOARDS),
    Need("nft", "nftables", _BOARDS),
    Need("sudo", "sudo", _BOARDS),
    Need("fish", "fish", "login shells"),
    Need("csh", "csh", "login shells"),
    Need("ping", "iputils-ping", _BOARDS),
    Need("pkill", "procps", _BOARDS),
    Need("busybox", "busybox-static", "boards with busybox alone"),
    Need("bwrap", "bubblewrap", "boards of users without root"),
    Need("faketime", "faketime", "boards whose clock is wrong"),
    Need("tmux", "tmux", "the live view in a terminal"),
    Need("qemu-system-aarch64", "qemu-system-arm", _MACHINES),
    Need("fdtput", "device-tree-compiler", _MACHINES),
    Need("mke2fs", "e2fsprogs", _MACHINES),
    Need("mosquitto", "mosquitto", "meters over MQTT"),
    Need("snmpd", "snmpd", "meters over SNMP"),
)

POLICY = Path("/usr/sbin/policy-rc.d")
POLICY_TEXT = "#!/bin/sh\n# by farm's tests/prepare.py, for the time of its apt-get\nexit 101\n"
_SEARCH = f"{os.environ.get('PATH', os.defpath)}:/usr/local/sbin:/usr/sbin:/sbin"


def missing(is_there: Callable[[str], bool]) -> list[Need]:
    """The needs whose programs are not there."""
    return [need for need in NEEDS if not is_there(need.program)]


def prepare(
    *,
    is_there: Callable[[str], bool],
    run: Runner,
    can_install: bool,
    is_ci: bool,
    policy: Path = POLICY,
) -> int:
    """Install what is missing if we can, tell what still is. The exit status."""
    absent = missing(is_there)
    if absent and can_install:
        install([need.package for need in absent], run, policy)
        absent = missing(is_there)
    for need in absent:
        sys.stdout.write(
            f"missing: {need.program} (Debian: {need.package}); skipped for it: {need.tests}\n"
        )
    return 1 if absent and is_ci else 0


def install(packages: Sequence[str], run: Runner, policy: Path) -> None:
    """Install Debian packages without letting them start services."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    with services_kept_down(policy):
        run(["apt-get", "-q", "update"], environment)  # old lists may do; install will tell
        options = ["-q", "-y", "--no-install-recommends"]
        run(["apt-get", *options, "install", *packages], environment)


@contextmanager
def services_kept_down(policy: Path) -> Iterator[None]:
    """Have invoke-rc.d refuse to start anything meanwhile.

    A policy-rc.d that was there is put back, also one that a killed run of ours had put aside.
    """
    aside = policy.with_name(policy.name + ".before-farm")
    if policy.exists() and not aside.exists() and policy.read_text() != POLICY_TEXT:
        policy.rename(aside)
    policy.write_text(POLICY_TEXT)
    policy.chmod(0o755)
    try:
        yield
    finally:
        if aside.exists():
            aside.rename(policy)
        else:
            policy.unlink()


def main() -> int:
    """Prepare this machine."""
    return prepare(
        is_there=lambda program: shutil.which(program, path=_SEARCH) is not None,
        run=lambda argv, environment: (
            subprocess.run(
                list(argv), env=dict(environment), stdin=subprocess.DEVNULL, check=False
            ).returncode
        ),
        can_install=os.geteuid() == 0 and Path("/etc/debian_version").exists(),
        is_ci=os.environ.get("CI") == "true",
    )


if __name__ == "__main__":
    sys.exit(main())
