"""One test board: a real sshd in namespaces of its own, on an overlay of this machine's `/`.

It has its own files, process tree, host name, address, boot id and disk (a tmpfs of the size
asked for). It shares the kernel, the CPU and `/proc/uptime` with the machine.
"""

import os
import shutil
import signal
import socket
import subprocess
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from farm.model.board import Board
from tests.servers.namespace_network import BoardNetwork, address_of, command
from tests.servers.process_tree import descendants, send_signal, state_of

USER, USER_ID = "jet", 1500
IMAGE = Path(__file__).parent / "board_image"
BOOT_SCRIPT = Path(__file__).parent / "board_boot.sh"
START_LIMIT_S = 30.0

_SSHD_CONFIG = """\
Port 22
ListenAddress 0.0.0.0
HostKey /etc/ssh/board_key
UsePAM no
PasswordAuthentication no
PidFile none
UseDNS no
PrintMotd no
MaxStartups 100
SetEnv PATH=/usr/local/bin:/usr/local/sbin:/usr/bin:/usr/sbin:/bin:/sbin
"""


@dataclass(frozen=True, slots=True)
class BoardOptions:
    """How a board differs from an ordinary one.

    `disk` is a tmpfs size. `sshd_extra` are lines put before the rest of sshd_config, where
    sshd takes the first value of a keyword. `files` (absolute path -> content) lie on the
    board from the start; those below the user's home belong to the user.
    """

    disk: str = "64m"
    shell: str = "/bin/bash"
    host_key_type: str = "ed25519"
    has_sftp: bool = True
    sshd_extra: tuple[str, ...] = ()
    sudoers: str = f"{USER} ALL=(ALL) NOPASSWD: ALL\n"
    reboot_down_s: float = 1.0
    files: dict[str, str] = field(default_factory=dict)


class NamespaceBoard:
    """A board that runs. Made by `BoardLab.up`; every method waits until what it says is so."""

    def __init__(
        self, network: BoardNetwork, folder: Path, number: int, options: BoardOptions
    ) -> None:
        self.number, self.options = number, options
        self.name, self.address = f"tx2-{number:02d}", address_of(number)
        self.folder = folder
        self.identity_file = folder.parent / "identity"
        self.known_hosts = folder / "known_hosts"
        self._network = network
        self._machine: subprocess.Popen[bytes] | None = None
        self._lock = threading.RLock()

    @property
    def host_key_line(self) -> str:
        """The known_hosts line of the board's present key."""
        key = (self.folder / "host_key.pub").read_text().split()
        return f"{self.address} {key[0]} {key[1]}\n"

    @property
    def boot_id(self) -> str:
        """The id of the present boot."""
        return (self.folder / "boot_id").read_text().strip()

    def inventory_entry(self, *, transport: str = "asyncssh") -> Board:
        """The board as an inventory names it, with the host key as it was at `up`."""
        return Board(
            name=self.name,
            profile="jetson-tx2",
            host=self.address,
            user=USER,
            transport=transport,
            identity_file=self.identity_file,
            known_hosts=self.known_hosts,
        )

    def make(self) -> None:
        """Make its disk and its cable; not yet switched on."""
        disk = self.folder / "disk"
        for path in (disk, self.folder / "machine"):
            path.mkdir(parents=True)
        size = f"size={self.options.disk},mode=755"
        command(["mount", "-t", "tmpfs", "-o", size, "farm-board", str(disk)])
        for part in ("lower", "upper", "work", "root"):
            (disk / part).mkdir()
        self._write_system(disk / "lower")
        self.known_hosts.write_text(self.host_key_line)
        self._network.add(self.number)

    def power_on(self) -> None:
        """Boot with a new boot id."""
        with self._lock:
            (self.folder / "boot_id").write_text(f"{uuid.uuid4()}\n")
            (self.folder / "machine" / "request").unlink(missing_ok=True)
            with (self.folder / "console.log").open("ab") as log:
                inside = ["ip", "netns", "exec", f"{self._network.prefix}-{self.number}"]
                apart = ["unshare", "--mount", "--pid", "--fork", "--uts", "--ipc"]
                boot = [str(BOOT_SCRIPT), str(self.folder), self.name]
                self._machine = subprocess.Popen(
                    [*inside, *apart, "--kill-child", *boot],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            (self.folder / "machine.pid").write_text(str(self._machine.pid))

    def power_off(self) -> None:
        """Every process dies at once, as by a power cut. The disk keeps what was written."""
        with self._lock:
            if self._machine is not None:
                # unshare ignores SIGTERM; --kill-child takes pid 1 and so all others with it
                self._machine.kill()
                self._machine.wait(timeout=START_LIMIT_S)
                self._machine = None

    def wait_until_up(self) -> None:
        """Wait for sshd's greeting, seen from the host."""
        with self._network.entered():
            self._wait("sshd does not answer", lambda: greeting(self.address) is not None)

    def reboot(self, down_s: float | None = None) -> None:
        """Link down, power cut, `down_s` of silence, boot; returns when sshd answers."""
        with self._lock:
            self.link_down()
            self.power_off()
            threading.Event().wait(self.options.reboot_down_s if down_s is None else down_s)
            self.power_on()
            self.link_up()
        self.wait_until_up()

    def link_down(self) -> None:
        """Pull the network cable."""
        self._network.set_link(self.number, is_up=False)

    def link_up(self) -> None:
        """Plug the network cable in."""
        self._network.set_link(self.number, is_up=True)

    def freeze(self) -> None:
        """Stop all its processes: the kernel still takes connections, nobody answers."""
        while running := [pid for pid in self.processes() if state_of(pid) not in "TtZX"]:
            for pid in running:
                send_signal(pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Let all its processes go on."""
        for pid in self.processes():
            send_signal(pid, signal.SIGCONT)

    def processes(self) -> list[int]:
        """Its processes by the machine's pids, pid 1 of the board first."""
        return [] if self._machine is None else descendants(self._machine.pid)

    def console(self, argv: Sequence[str], *, stdin: bytes = b"") -> bytes:
        """Run a command as root on the board, not by way of its network; its stdout."""
        pid = self.processes()[0]
        inside = ["nsenter", f"--target={pid}", "--all", "--root", "--wd"]
        return command([*inside, "--", *argv], stdin=stdin)

    def read(self, path: str) -> bytes:
        """A file's content on the board."""
        return self.console(["cat", path])

    def exists(self, path: str) -> bool:
        """Whether the board has such a file or folder."""
        script = '[ -e "$1" ] && echo yes || echo no'
        return self.console(["sh", "-c", script, "sh", path]).strip() == b"yes"

    def fill_disk(self) -> None:
        """Use up the board's disk to the last byte."""
        with (self.folder / "disk" / "filler").open("ab", buffering=0) as file:
            for size in (1 << 20, 4096):
                try:
                    while file.write(bytes(size)) == size:
                        pass
                except OSError:  # ENOSPC: what was meant to happen
                    continue

    def free_disk(self) -> None:
        """Undo `fill_disk`."""
        (self.folder / "disk" / "filler").unlink()

    def remount_read_only(self) -> None:
        """The root file system becomes read-only, as after an SD card's errors."""
        pid = self.processes()[0]
        root = str(self.folder / "disk" / "root")
        command(["nsenter", f"--target={pid}", "--mount", "mount", "-o", "remount,ro", root])

    def remove_python(self) -> None:
        """Take every python3 off the board."""
        script = "rm -f /usr/bin/python3* /usr/local/bin/python3* /bin/python3*"
        self.console(["sh", "-c", script])

    def new_host_key(self) -> None:
        """The board gets another host key, as after a reinstallation; sshd serves it."""
        self._make_host_key()
        key = (self.folder / "host_key").read_bytes()
        self.console(["sh", "-c", "cat > /etc/ssh/board_key && pkill -HUP -o sshd"], stdin=key)
        kind, wanted = self.host_key_line.split()[1:]
        scan = ["ip", "netns", "exec", self._network.host, "ssh-keyscan", "-T", "1"]
        scan += ["-t", kind.removeprefix("ssh-"), self.address]
        self._wait(
            "the new host key is not served",
            lambda: wanted.encode() in command(scan, allowed=(0, 1)),
        )

    def take_reboot_request(self) -> bool:
        """Whether `reboot` was called on the board; the next call says no again."""
        try:
            (self.folder / "machine" / "request").unlink()
        except FileNotFoundError:
            return False
        return True

    def destroy(self) -> None:
        """Power off; remove disk and cable."""
        self.power_off()
        self._network.remove(self.number)
        command(["umount", "--lazy", str(self.folder / "disk")])
        shutil.rmtree(self.folder)

    def _wait(self, what: str, is_done: Callable[[], bool]) -> None:
        end = time.monotonic() + START_LIMIT_S
        while not is_done():
            if time.monotonic() > end or self._is_dead():
                log = (self.folder / "console.log").read_text(errors="replace")[-2000:]
                raise RuntimeError(f"{self.name}: {what}; its console says:\n{log}")
            threading.Event().wait(0.02)

    def _is_dead(self) -> bool:
        return self._machine is None or self._machine.poll() is not None

    def _make_host_key(self) -> None:
        path = self.folder / "host_key"
        path.unlink(missing_ok=True)
        kind = self.options.host_key_type
        size = ["-b", "2048"] if kind == "rsa" else []
        make = ["ssh-keygen", "-q", "-t", kind, *size, "-N", "", "-C", self.name]
        command([*make, "-f", str(path)])

    def _write_system(self, lower: Path) -> None:
        shutil.copytree(IMAGE, lower, dirs_exist_ok=True)
        self._make_host_key()
        home = f"/home/{USER}"
        sftp = ("Subsystem sftp internal-sftp\n",) if self.options.has_sftp else ()
        extra = (f"{line}\n" for line in self.options.sshd_extra)
        account = f"{USER}:x:{USER_ID}:{USER_ID}::{home}:{self.options.shell}\n"
        public_key = self.identity_file.with_suffix(".pub").read_text()
        texts: dict[str, tuple[str, int]] = {
            "/etc/hostname": (f"{self.name}\n", 0o644),
            "/etc/hosts": (f"127.0.0.1 localhost\n127.0.1.1 {self.name}\n", 0o644),
            "/etc/passwd": (Path("/etc/passwd").read_text() + account, 0o644),
            "/etc/group": (Path("/etc/group").read_text() + f"{USER}:x:{USER_ID}:\n", 0o644),
            "/etc/shadow": (Path("/etc/shadow").read_text() + f"{USER}:*:19000::::::\n", 0o640),
            "/etc/sudoers.d/jet": (self.options.sudoers, 0o440),
            "/etc/ssh/board_key": ((self.folder / "host_key").read_text(), 0o600),
            "/etc/ssh/sshd_board": ("".join((*extra, _SSHD_CONFIG, *sftp)), 0o600),
            f"{home}/.ssh/authorized_keys": (public_key, 0o600),
        }
        texts |= {path: (text, 0o644) for path, text in self.options.files.items()}
        for path, (text, mode) in texts.items():
            target = lower / path.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
            target.chmod(mode)
        top = lower / home.lstrip("/")
        for entry in (top, *top.rglob("*")):
            os.chown(entry, USER_ID, USER_ID)


def greeting(address: str) -> bytes | None:
    """What sshd at `address` says first, or None. For the calling thread's network."""
    try:
        with socket.create_connection((address, 22), timeout=1.0) as link:
            return link.recv(256) or None
    except OSError:
        return None
