"""One private sshd that stands for many boards, in namespaces of its own.

Each script re-executes itself under `unshare` (needs root), so sshd listens where only this
script's processes reach it, and all of them end with it. Board k is 127.0.1.k; keys, one
configuration and all targets lie in memory (/dev/shm).
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

PORT = 22022
INSIDE = "FARM_BENCHMARK_INSIDE"
# dash as pid 1 reaps the detached attempts that boards leave behind
_INIT = '"$@"; exit $?'

SSHD_CONFIG = """\
Port {port}
ListenAddress 0.0.0.0
PidFile none
UsePAM no
UseDNS no
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/client_key.pub
StrictModes no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
MaxStartups 4000:30:4000
MaxSessions 1000
LogLevel ERROR
PrintMotd no
PrintLastLog no
LoginGraceTime 300
SetEnv HOME={folder}/home PATH=/usr/bin:/bin
Subsystem sftp /usr/lib/openssh/sftp-server
"""

SSH_CONFIG = """\
Host *
  User root
  Port {port}
  IdentityFile {folder}/client_key
  IdentitiesOnly yes
  IdentityAgent none
  UserKnownHostsFile {folder}/known_hosts
  GlobalKnownHostsFile /dev/null
  StrictHostKeyChecking yes
  BatchMode yes
  LogLevel ERROR
"""


def enter_namespaces() -> None:
    """Re-execute this script under namespaces of its own, unless that was done."""
    if os.environ.get(INSIDE) == "1":
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        return
    if os.geteuid() != 0:
        sys.exit("benchmarks make a private network: they need root")
    os.environ[INSIDE] = "1"
    apart = ["unshare", "--net", "--pid", "--fork", "--mount-proc", "--kill-child"]
    sys.stdout.flush()
    os.execvp(apart[0], [*apart, "sh", "-c", _INIT, "sh", sys.executable, *sys.argv])


@dataclass(frozen=True, slots=True)
class Fleet:
    """What a client needs to know."""

    folder: Path
    hosts: tuple[str, ...]
    port: int = PORT
    user: str = "root"

    @property
    def client_key(self) -> Path:
        """The login key's private half."""
        return self.folder / "client_key"

    @property
    def host_key(self) -> str:
        """The public host key of all boards, as OpenSSH writes it."""
        return (self.folder / "host_key.pub").read_text().strip()

    @property
    def ssh_config(self) -> list[str]:
        """Arguments for ssh and scp."""
        return ["-F", str(self.folder / "ssh_config")]

    def save(self, path: Path) -> None:
        """For a client's process."""
        path.write_text(json.dumps({**asdict(self), "folder": str(self.folder)}))

    @classmethod
    def load(cls, path: Path) -> Self:
        """What `save` wrote."""
        data = json.loads(path.read_text())
        return cls(Path(data["folder"]), tuple(data["hosts"]), data["port"], data["user"])


class PrivateSshd:
    """The sshd behind a fleet of `n` boards."""

    def __init__(self, n: int) -> None:
        folder = Path(tempfile.mkdtemp(prefix="farm-benchmark-", dir="/dev/shm"))
        hosts = tuple(f"127.0.{1 + k // 250}.{1 + k % 250}" for k in range(n))
        self.fleet = Fleet(folder, hosts)

    def __enter__(self) -> Self:
        folder, port = self.fleet.folder, self.fleet.port
        for name in ("host_key", "client_key"):
            keygen = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
            subprocess.run(keygen, check=True)
        kind, key = self.fleet.host_key.split()[:2]
        lines = [f"[{host}]:{port} {kind} {key}\n" for host in self.fleet.hosts]
        (folder / "known_hosts").write_text("".join(lines))
        (folder / "home").mkdir()  # start-up files of the machine must not be measured
        (folder / "sshd_config").write_text(SSHD_CONFIG.format(port=port, folder=folder))
        (folder / "ssh_config").write_text(SSH_CONFIG.format(port=port, folder=folder))
        Path("/run/sshd").mkdir(exist_ok=True)
        sshd = ["/usr/sbin/sshd", "-D", "-f", str(folder / "sshd_config")]
        self.process = subprocess.Popen(
            [*sshd, "-E", str(folder / "sshd.log")], stdin=subprocess.DEVNULL
        )
        self._wait_until_up()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.process.terminate()
        self.process.wait(10)
        shutil.rmtree(self.fleet.folder, ignore_errors=True)

    def _wait_until_up(self) -> None:
        end = time.monotonic() + 10
        while True:
            try:
                socket.create_connection((self.fleet.hosts[0], self.fleet.port), 1).close()
            except OSError:
                if time.monotonic() > end or self.process.poll() is not None:
                    log = (self.fleet.folder / "sshd.log").read_text()
                    raise RuntimeError(f"sshd does not start: {log}") from None
                time.sleep(0.05)
            else:
                return
