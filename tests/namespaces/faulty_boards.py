"""Real-sshd boards with one fault each, put in as files and mounts; and the lab that has them."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.servers.namespace_board import USER
from tests.servers.namespaces import BoardLab, BoardOptions, NamespaceBoard
from tests.servers.shelly import ShellyServer

COMMAND_LIMIT_S = 100.0
BOOTING_AT_ONCE = 4
"""Each boot is mostly waiting for the kernel; more at once only take each other's cores."""
DISK = "2g"
"""A limit, not an amount: nothing is written to it. More free than the doctor minds."""
HOME = f"/home/{USER}"
HELD = "r-20240501-other"

ALLOWED = f"""\
Cmnd_Alias FARM = /usr/sbin/nvpmodel -m [0-9], /usr/sbin/nvpmodel -m [0-9][0-9], \\
    /usr/sbin/nvpmodel -q --verbose, /usr/bin/jetson_clocks "", /usr/bin/jetson_clocks --show, \\
    /usr/bin/jetson_clocks --restore /run/farm-jetson-clocks.conf, /usr/bin/jetson_clocks --restore
{USER} ALL = (root) NOPASSWD: FARM
"""
"""All but ``jetson_clocks --store``."""
GERMAN_SUDO = """\
#!/bin/sh
echo 'sudo: Zum Lesen des Passworts ist ein Terminal erforderlich' >&2
echo 'sudo: Ein Passwort ist notwendig' >&2
exit 1
"""
OLD_PYTHON = """\
#!/bin/sh
exec /usr/bin/python3.old -c '
import sys
words = sys.argv[1:]
at = words.index("-c")
sys.version_info = (2, 7, 12, "final", 0)
sys.argv = ["-c"] + words[at + 2:]
exec(words[at + 1])' "$@"
"""
BUSY = """\
import time
while True:
    end = time.thread_time() + 0.05
    while time.thread_time() < end:
        pass
    time.sleep(0.05)
"""
DATE = """\
#!/bin/sh
# a board without a battery for its clock
exec faketime -f '@1970-01-01 00:01:00' /usr/bin/date "$@"
"""
BROKEN_NVPMODEL = """\
#!/bin/sh
case "$*" in
*-q*) echo 'NVPM ERROR: Error opening /var/lib/nvpmodel/status: 5' >&2; exit 1 ;;
*) exec /usr/sbin/nvpmodel.real "$@" ;;
esac
"""

ORDINARY = BoardOptions(disk=DISK)

Break = Callable[[NamespaceBoard], None]


def _as_it_is(board: NamespaceBoard) -> None:
    """The fault is in the options or in the inventory."""


@dataclass(frozen=True)
class Faulty:
    """A board of the lab, and what the doctor must say of it: one finding.

    `words` must be in its text and `fix` in its fix; `about` is "" for a board without fault.
    """

    name: str
    about: str
    words: str = ""
    fix: str = ""
    level: str = "fail"
    options: BoardOptions = ORDINARY
    entry: dict[str, object] = field(default_factory=dict)
    put_in: Break = _as_it_is
    meter: str = ""


def move_tools(board: NamespaceBoard) -> None:
    """Put NVIDIA's tools where L4T has them, and where a sudoers file allows them."""
    for tool, place in (("nvpmodel", "/usr/sbin"), ("jetson_clocks", "/usr/bin")):
        board.console(["mv", f"/usr/local/bin/{tool}", f"{place}/{tool}"])


def console(*scripts: str) -> Break:
    """A fault that a root shell on the board makes."""

    def put_in(board: NamespaceBoard) -> None:
        board.console(["sh", "-ec", "\n".join(scripts)])

    return put_in


def program(path: str, text: str) -> Break:
    """A program in place of another; what was there stays as PATH.real."""

    def put_in(board: NamespaceBoard) -> None:
        board.console(["sh", "-ec", f"[ ! -e {path} ] || mv {path} {path}.real"])
        board.console(["sh", "-ec", f"cat > {path}; chmod 755 {path}"], stdin=text.encode())

    return put_in


def _sudo(rule: str) -> BoardOptions:
    return BoardOptions(disk=DISK, sudoers=rule)


def _unplug(board: NamespaceBoard) -> None:
    board.link_down()


def _forget_key(board: NamespaceBoard) -> None:
    board.known_hosts.write_text("")


def _old_python(board: NamespaceBoard) -> None:
    board.console(
        ["sh", "-ec", "cp /usr/bin/python3.11 /usr/bin/python3.old; rm /usr/bin/python3"]
    )
    program("/usr/bin/python3", OLD_PYTHON)(board)


def _be_an_orin(board: NamespaceBoard) -> None:
    tree = "/sys/firmware/devicetree/base"
    names = r"nvidia,p3768-0000+p3767-0000\0nvidia,p3767-0000\0nvidia,tegra234\0"
    model = r"NVIDIA Jetson Orin NX Engineering Reference Developer Kit\0"
    board.console(["sh", "-ec", f"printf '{names}' >{tree}/compatible"])
    board.console(["sh", "-ec", f"printf '{model}' >{tree}/model"])


def _work(board: NamespaceBoard) -> None:
    """A process of somebody else that takes about half a core."""
    start = 'setsid python3 -c "$1" </dev/null >/dev/null 2>&1 &'
    board.console(["sh", "-ec", start, "sh", BUSY])


def _be_held(board: NamespaceBoard) -> None:
    lease = {"run_id": HELD, "holder": "host9 pid 7", "expires_s": 1e12}
    text = json.dumps({**lease, "boot_id": board.boot_id})
    make = f"install -d -o {USER} -g {USER} -m 700 {HOME}/.farm; cat > {HOME}/.farm/lease.json"
    board.console(
        ["sh", "-ec", f"{make}; chown {USER} {HOME}/.farm/lease.json"], stdin=text.encode()
    )


TREE, ZONE = "/sys/firmware/devicetree/base", "/sys/class/thermal/thermal_zone0/temp"
FREE = f"{USER} ALL=(ALL) NOPASSWD: ALL\n"

HEALTHY = (
    Faulty("healthy", "", meter="moving"),
    # What looks like a fault and is none.
    Faulty(
        "odd",
        "",
        options=BoardOptions(
            disk=DISK,
            sudoers=f"Defaults use_pty\n{FREE}",
            files={f"{HOME}/.bashrc": "echo noise; echo more noise >&2; printf half\n"},
        ),
        put_in=console("echo '127.0.0.1 localhost' > /etc/hosts"),  # unable to resolve host
    ),
)
FAULTY = (
    Faulty("closed-port", "reach", "refused the connection", "SSH server", entry={"port": 2222}),
    Faulty("black-hole", "reach", "198.18.", "switched on", put_in=_unplug),
    Faulty(
        "changed-key",
        "host key",
        "is not the enrolled one",
        "",
        put_in=NamespaceBoard.new_host_key,
    ),
    Faulty(
        "unknown-key",
        "host key",
        "is not known",
        "farm boards enroll unknown-key",
        put_in=_forget_key,
    ),
    Faulty(
        "no-login",
        "login",
        f"refused the login of '{USER}'",
        "authorized_keys",
        put_in=console(f": > {HOME}/.ssh/authorized_keys"),
    ),
    Faulty(
        "no-sudo",
        "sudo",
        "no sudo on the board",
        "apt install sudo",
        put_in=console("rm /usr/bin/sudo"),
    ),
    Faulty(
        "sudo-password",
        "sudo",
        "asks for a password",
        "farm boards sudoers sudo-password",
        options=_sudo(f"{USER} ALL=(ALL) ALL\n"),
    ),
    Faulty(
        "sudo-tty",
        "sudo",
        "requiretty",
        "farm boards sudoers sudo-tty",
        options=_sudo(f"Defaults requiretty\n{FREE}"),
    ),
    Faulty(
        "sudo-german",
        "sudo",
        "Zum Lesen des Passworts",
        "farm boards sudoers sudo-german",
        put_in=program("/usr/local/bin/sudo", GERMAN_SUDO),
    ),
    Faulty(
        "sudo-lacks-one",
        "sudo",
        "jetson_clocks --store",
        "farm boards sudoers sudo-lacks-one",
        options=_sudo(ALLOWED),
    ),
    Faulty("no-python", "agent", "no Python 3", "python:", put_in=NamespaceBoard.remove_python),
    Faulty("old-python", "agent", "is Python 2.7, older than 3.5", "python:", put_in=_old_python),
    Faulty("small-disk", "disk", "MB free", "farm boards clean", options=BoardOptions()),
    Faulty(
        "fixed-folder",
        "agent",
        "the work folder ~/.farm cannot be used",
        "work_dir:",
        put_in=console(f"mkdir {HOME}/.farm; mount -t tmpfs -o ro,size=1m t {HOME}/.farm"),
    ),
    Faulty(
        "in-1970",
        "date",
        "h off",
        "set it",
        level="note",
        put_in=program("/usr/local/bin/date", DATE),
    ),
    Faulty(
        "no-table",
        "power mode",
        "/etc/nvpmodel.conf lists no mode",
        "L4T tools",
        put_in=console("head -c 200 /etc/nvpmodel.conf > /tmp/c; cp /tmp/c /etc/nvpmodel.conf"),
    ),
    Faulty(
        "mute-nvpmodel",
        "power mode",
        "nvpmodel -q",
        "sudo nvpmodel -m ID",
        put_in=program("/usr/sbin/nvpmodel", BROKEN_NVPMODEL),
    ),
    Faulty(
        "orin",
        "profile",
        "jetson-orin-nx",
        "profile: jetson-orin-nx",
        level="warn",
        put_in=_be_an_orin,
    ),
    Faulty("hot", "temperature", "94 C at rest", "fan", put_in=console(f"echo 94000 > {ZONE}")),
    Faulty("busy", "load", "python3", "end or disable it", level="warn", put_in=_work),
    Faulty("held", "lease", HELD, "farm stop", put_in=_be_held),
    Faulty("meter-off", "meter", "refused", "", meter="off"),
    Faulty("meter-zero", "meter", "reads 0 W", "plugged into this meter", meter="zero"),
    Faulty("meter-stuck", "meter", "without a change", "hangs", level="note", meter="stuck"),
)


@dataclass
class DoctorLab:
    """A workspace with these boards; `farm` runs at the host's place in their network."""

    root: Path
    namespace: str
    machines: dict[str, NamespaceBoard]

    def command(self, *words: str) -> list[str]:
        """The command line of a `farm` command."""
        inside = ["ip", "netns", "exec", self.namespace]
        return [*inside, sys.executable, "-m", "farm", *words, "-w", str(self.root)]

    async def doctor(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run it on all boards, or on those named, with the meters there."""
        argv = self.command("boards", "doctor", *words)
        async with AsyncExitStack() as stack:
            ports = {name: await stack.enter_async_context(server) for name, server in _meters()}
            self._write_inventory({name: server.port for name, server in ports.items()})
            moving = asyncio.create_task(_move(ports["moving"]))
            try:
                return await asyncio.to_thread(_run, argv)
            finally:
                moving.cancel()

    def _write_inventory(self, ports: dict[str, int]) -> None:
        ports = {**ports, "off": 9}
        boards = {one.name: self._entry(one) for one in (*HEALTHY, *FAULTY)}
        meters = {
            name: {
                "kind": "shelly",
                "host": "127.0.0.1",
                "port": port,
                "poll_hz": 5,
                "update_s": 1,
                "averaging_s": 1,
                "lag_s": 0.5,
            }
            for name, port in ports.items()
        }
        text = json.dumps({"boards": boards, "meters": meters})
        (self.root / "inventory.yaml").write_text(text)

    def _entry(self, one: Faulty) -> dict[str, object]:
        machine = self.machines[one.name]
        entry: dict[str, object] = {
            "profile": "jetson-tx2",
            "host": machine.address,
            "user": USER,
            "identity_file": str(machine.identity_file),
            "known_hosts": str(machine.known_hosts),
        }
        return entry | ({"meter": one.meter} if one.meter else {}) | one.entry


def _meters() -> Iterator[tuple[str, ShellyServer]]:
    yield "moving", ShellyServer()
    yield "zero", ShellyServer(power_w=0.0)
    yield "stuck", ShellyServer()


async def _move(meter: ShellyServer) -> None:
    while True:
        await asyncio.sleep(0.05)
        meter.set_power(10.0 if meter.power_w > 10.0 else 10.4)


def _run(argv: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        list(argv),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=COMMAND_LIMIT_S,
        check=False,
        env={**os.environ, "COLUMNS": "100"},
    )


@contextmanager
def doctor_lab(lab: BoardLab, root: Path) -> Iterator[DoctorLab]:
    """All boards, each with its fault, in a workspace at `root`; off again afterwards."""

    def make(one: Faulty) -> NamespaceBoard:
        (board,) = lab.up(1, one.options)
        move_tools(board)
        one.put_in(board)
        return board

    everyone = (*HEALTHY, *FAULTY)
    with ThreadPoolExecutor(BOOTING_AT_ONCE) as pool:
        boards = list(pool.map(make, everyone))
    names = [one.name for one in everyone]
    yield DoctorLab(root, lab.network.host, dict(zip(names, boards, strict=True)))
    lab.down(boards)


def findings_of(text: str) -> dict[str, list[dict[str, Any]]]:
    """Findings by board of the doctor's JSON."""
    return {one["board"]: one["findings"] for one in json.loads(text)}
