"""OpenSSH's sshd on loopback, with a set-up of its own: key login of the present user."""

import getpass
import os
import shutil
import signal
import socket
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import asyncssh

from farm.model.board import Board
from tests.servers.process_tree import descendants, send_signal
from tests.servers.ssh_keys import make_key, public_line, write_key, write_known_hosts

SSHD = shutil.which("sshd") or shutil.which("sshd", path="/usr/sbin:/usr/local/sbin")
START_TIMEOUT_S = 20.0
PORT_TRIES = 10

OLD_ALGORITHMS = (
    "HostKeyAlgorithms ssh-rsa",
    "PubkeyAcceptedAlgorithms ssh-rsa,ssh-ed25519",
    "KexAlgorithms curve25519-sha256,curve25519-sha256@libssh.org,ecdh-sha2-nistp256,"
    "diffie-hellman-group14-sha1",
    "Ciphers aes128-ctr,aes256-ctr,chacha20-poly1305@openssh.com",
    "MACs hmac-sha1,hmac-sha2-256",
)
"""As OpenSSH 7.6 on a board of 2018, and harsher: that one also has rsa-sha2."""


class Sshd:
    """A context manager. `lines` go to the end of sshd_config; `home` is each session's HOME."""

    def __init__(
        self,
        folder: Path,
        *,
        lines: Sequence[str] = (),
        algorithm: str = "ssh-ed25519",
        key_name: str = "host",
    ) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.home.mkdir(parents=True, exist_ok=True)
        self.host_key = make_key(key_name, algorithm)
        self.log: list[str] = []
        self.port = 0
        self._lines, self._key_file = lines, write_key(folder, key_name, algorithm)
        self._process: subprocess.Popen[bytes] | None = None
        self._is_listening = threading.Event()
        self._reader: threading.Thread | None = None

    def __enter__(self) -> Self:
        for _ in range(PORT_TRIES):
            self.port = self.port or _free_port()
            if self.start():
                return self
            self.port = 0  # somebody took it meanwhile
        raise RuntimeError("sshd did not start: " + " ".join(self.log[-5:]))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> bool:
        """Start on `port`. False if it ended at once."""
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # sshd's privilege separation
        self._is_listening.clear()
        self._process = subprocess.Popen(
            [SSHD or "sshd", "-D", "-e", "-f", str(self._write_config())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read_log, args=(self._process,))
        self._reader.start()
        self._is_listening.wait(START_TIMEOUT_S)
        return self._process.poll() is None

    def _read_log(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stderr is not None
        for line in process.stderr:
            self.log.append(line.decode("utf-8", "replace").strip())
            if b"listening on" in line:
                self._is_listening.set()
        self._is_listening.set()  # it ended

    def _write_config(self) -> Path:
        (self.folder / "authorized_keys").write_text(public_line(make_key("login")) + "\n")
        config = self.folder / "sshd_config"
        config.write_text(
            f"Port {self.port}\nListenAddress 127.0.0.1\nPidFile none\nUsePAM no\nUseDNS no\n"
            f"HostKey {self._key_file}\nAuthorizedKeysFile {self.folder}/authorized_keys\n"
            "StrictModes no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n"
            "PermitRootLogin prohibit-password\nPrintMotd no\nPrintLastLog no\n"
            f"LogLevel INFO\nSetEnv HOME={self.home} FARM_TEST_SSHD={self._mark}\n"
            + "".join(f"{line}\n" for line in self._lines)
        )
        return config

    @property
    def _mark(self) -> str:
        return f"{os.getpid()}-{self.port}"

    def stop(self) -> None:
        """End sshd and all that ran in its sessions."""
        if self._process is None:
            return
        for pid in [*descendants(self._process.pid), *self.left_behind()]:
            send_signal(pid, signal.SIGKILL)
        self._process.kill()
        self._process.wait(START_TIMEOUT_S)
        assert self._reader is not None
        self._reader.join(START_TIMEOUT_S)
        assert self._process.stderr is not None
        self._process.stderr.close()
        self._process = None

    def left_behind(self) -> list[int]:
        """Processes of its sessions, also of dead ones, by a mark in their environment."""
        mark = f"FARM_TEST_SSHD={self._mark}".encode()
        return [
            int(path.name)
            for path in Path("/proc").iterdir()
            if path.name.isdigit() and mark in _environment(path)
        ]

    def session_pids(self) -> list[int]:
        """The sshd processes that serve connections now."""
        if self._process is None:
            return []
        return [pid for pid in descendants(self._process.pid) if _command(pid).startswith("sshd")]

    def signal_sessions(self, number: signal.Signals) -> None:
        """Send a signal to all processes that serve connections: KILL cuts, STOP freezes."""
        for pid in self.session_pids():
            send_signal(pid, number)

    def known_hosts(self, *keys: asyncssh.SSHKey) -> Path:
        """A known_hosts file with these keys, or with the server's own."""
        return write_known_hosts(
            self.folder / "known_hosts", self.port, *(keys or (self.host_key,))
        )

    def board(self, name: str = "board", *, algorithms: tuple[str, ...] = ()) -> Board:
        """How to reach it; the login key and the host key are right."""
        return Board(
            name=name,
            profile="any",
            host="127.0.0.1",
            port=self.port,
            user=getpass.getuser(),
            identity_file=write_key(self.folder, "login"),
            known_hosts=self.known_hosts(),
            host_key_algorithms=algorithms,
        )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _environment(process: Path) -> bytes:
    try:
        return (process / "environ").read_bytes()
    except OSError:  # gone, or not ours
        return b""


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text()
    except OSError:
        return ""
