"""A virtual board that really boots: qemu, its power switch, and a root's console by SSH."""

import contextlib
import json
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.vm.image import MACHINE, SERVED_KEY, USER, Image

PATIENCE_S = 300.0
"""An emulated boot takes 6 s on a quiet machine; this is for the slowest."""
PORT = 2222
FIRST = ("nice", "-n", "-5")
"""A board's speed must not depend on the tests beside it: farm's limits are for real boards.
Where nobody may be put first, this changes nothing."""


class VirtualBoard:
    """A board with its own disk at a loopback address. Every wait is bounded."""

    def __init__(self, image: Image, folder: Path, address: str) -> None:
        self.name, self.address, self.identity = folder.name, address, image.identity
        self.folder, self.known_hosts = folder, folder / "known_hosts"
        self._image = image
        self._qemu: subprocess.Popen[bytes] | None = None
        folder.mkdir(parents=True)
        self.known_hosts.write_text(f"[{address}]:{PORT} {image.host_key}\n")
        copy = ["cp", "--sparse=always", str(image.disk), str(folder / "disk.img")]
        subprocess.run(copy, check=True, timeout=PATIENCE_S)

    def inventory_line(self, profile: str) -> str:
        return (
            f"  {self.name}: {{profile: {profile}, host: {self.address}, port: {PORT}, "
            f"user: {USER}, identity_file: {self.identity}, known_hosts: {self.known_hosts}}}"
        )

    def power_on(self) -> None:
        """Switch on; does not wait for the boot."""
        assert self._qemu is None, "it is on"
        forward = f"user,id=net,restrict=on,hostfwd=tcp:{self.address}:{PORT}-:22"
        disk = f"file={self.folder}/disk.img,format=raw,if=none,cache=unsafe,id=disk"
        argv = [
            *(
                *FIRST,
                "qemu-system-aarch64",
                *MACHINE,
                "-accel",
                "tcg",
                "-nodefaults",
                "-no-user-config",
            ),
            *("-display", "none", "-serial", "stdio", "-sandbox", "on"),
            *("-kernel", str(self._image.kernel), "-initrd", str(self._image.initrd)),
            *("-dtb", str(self._image.tree), "-append", "console=ttyAMA0 quiet panic=5"),
            *("-netdev", forward, "-device", "virtio-net-device,netdev=net"),
            *("-drive", disk, "-device", "virtio-blk-device,drive=disk"),
            *("-device", "virtio-rng-device"),
            *("-qmp", f"unix:{self.folder}/qmp,server=on,wait=off"),
        ]
        with (self.folder / "console.log").open("ab") as log:
            self._qemu = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        with contextlib.suppress(OSError):  # where sessions share the processor, theirs counts
            Path(f"/proc/{self._qemu.pid}/autogroup").write_text(FIRST[-1])

    @property
    def is_on(self) -> bool:
        """Whether it has power."""
        return self._qemu is not None and self._qemu.poll() is None

    def power_off(self) -> None:
        """Take its power, as by a plug pulled. What it had not yet written is lost."""
        if self._qemu is not None:
            self._qemu.kill()
            self._qemu.wait(timeout=PATIENCE_S)
            self._qemu = None

    def freeze(self) -> None:
        """It stands still: connections are taken and nobody answers."""
        self._order("stop")

    def thaw(self) -> None:
        """It goes on."""
        self._order("cont")

    def stay_off_at_reboot(self) -> None:
        """From now on a reboot ends with the power off."""
        self._order("set-action", {"reboot": "shutdown"})

    def wait_until_up(self) -> None:
        """Wait until a boot is through."""
        self.wait_for("the end of a boot", lambda: self.has("/run/board/booted"))

    def wait_for(self, what: str, is_so: Callable[[], bool]) -> None:
        """Wait for a condition. Raises RuntimeError with the board's console."""
        end = time.monotonic() + PATIENCE_S
        while not is_so():
            if time.monotonic() > end:
                log = (self.folder / "console.log").read_text(errors="replace")[-2000:]
                raise RuntimeError(f"{self.name}: waited in vain for {what}; console:\n{log}")
            threading.Event().wait(0.2)

    def console(self, script: str, *, stdin: str = "") -> str:
        """Run a script as root on it, by OpenSSH's client; its stdout."""
        done = subprocess.run(
            self._argv(script),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(f"{self.name}: {script}: {done.returncode}: {done.stderr}")
        return done.stdout

    def take_key(self, path: str, *, is_served: bool = False) -> None:
        """Make a host key its own, for the next boot or for new connections from now on."""
        self.console(f"cp {path} {SERVED_KEY}; sync")
        if is_served:
            start = f"dropbear -r {SERVED_KEY} -s -p 22 -P /run/dropbear.pid"
            self.console(f"kill $(cat /run/dropbear.pid); sleep 1; {start}")

    def has(self, path: str) -> bool:
        """Whether there is such a file on it."""
        return self._ssh(f"test -e {path}") == 0

    def times_down(self) -> int:
        """How often it went down in order, by its serial console."""
        return (self.folder / "console.log").read_text(errors="replace").count("board goes down")

    def boot_ids(self) -> list[str]:
        """Every boot's id, the present one last."""
        return self.console("cat /var/log/boots").split()

    def _ssh(self, script: str) -> int:
        done = subprocess.run(
            self._argv(script),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PATIENCE_S,
            check=False,
        )
        return done.returncode

    def _argv(self, script: str) -> list[str]:
        settings = (
            "BatchMode=yes",
            "ConnectTimeout=10",
            "ServerAliveInterval=10",
            "StrictHostKeyChecking=no",  # this is the test's own way in, whatever its key is
            "UserKnownHostsFile=/dev/null",
            "LogLevel=ERROR",
        )
        options = [part for setting in settings for part in ("-o", setting)]
        login = ["-F", "/dev/null", "-i", str(self.identity), "-p", str(PORT)]
        return ["ssh", *options, *login, f"root@{self.address}", script]

    def _order(self, command: str, arguments: Mapping[str, str] | None = None) -> None:
        """One order at qemu's machine socket (QMP)."""
        with socket.socket(socket.AF_UNIX) as link:
            link.settimeout(PATIENCE_S)
            link.connect(str(self.folder / "qmp"))
            with link.makefile("rw") as lines:
                lines.readline()  # its greeting
                for word, given in (("qmp_capabilities", {}), (command, arguments or {})):
                    lines.write(json.dumps({"execute": word, "arguments": dict(given)}) + "\n")
                    lines.flush()
                    answer = json.loads(lines.readline())
                    while "event" in answer:
                        answer = json.loads(lines.readline())
                    assert "return" in answer, answer
