"""Real-sshd boards with one fault each, put in as files and mounts; what a doctor must say."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.servers.namespace_board import USER
from tests.servers.namespaces import BoardOptions, NamespaceBoard

DISK = "2g"
"""A limit, not an amount: nothing is written to it. More free than the doctor minds."""
HOME = f"/home/{USER}"
HELD = "r-20240501-other"
NEIGHBOUR = "neighbour"
"""A board that is in maintenance, at another board's meter."""

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
import contextlib, os, time
for _ in range(5):
    if os.fork() == 0:
        break
else:
    os._exit(0)
os.setsid()
with contextlib.suppress(OSError):
    os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
while True:
    end = time.thread_time() + 0.01
    while time.thread_time() < end:
        pass
    time.sleep(0.09)
"""
"""Five times a tenth of a core, also on a machine whose cores many others want: it shares its
time out by sessions, and asks those first that are real-time ones."""
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
    """Processes of somebody else that take about half a core."""
    start = 'python3 -c "$1" </dev/null >/dev/null 2>&1'
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
    Faulty("meter-shared", "meter", f"feeds {NEIGHBOUR} too", "own", level="warn", meter="shared"),
    Faulty("meter-stuck", "meter", "without a change", "hangs", level="note", meter="stuck"),
)
