"""The root folder of a simulated board: what a real board of that type shows in its files.

``build_board_root`` makes it, or renews what a boot renews; homes and payload files stay.
"""

import json
import shutil
import sys
from importlib.resources import files as package_files
from pathlib import Path

from farm.errors import ConfigError
from farm.model.board import Board, Quirk
from farm.model.profile import BoardProfile
from farm.simulation import board_commands
from farm.simulation.board_commands.board_files import (
    COLD,
    CPU,
    FACTS_FILE,
    GPU_USED_FILE,
    BoardFiles,
)
from farm.simulation.board_commands.nvpmodel_conf import (
    CONF_FILE,
    STATUS_FILE,
    ModeTable,
    apply_mode,
    load_mode_table,
    stored_mode_id,
)
from farm.simulation.board_commands.nvpmodel_reboot import BY_NVPMODEL_FILE
from farm.simulation.jetsons import JETSONS, conf_files, kernel_files, kernel_links
from farm.simulation.sensors import sensor_labels, sensor_values
from farm.simulation.simulated_jetson import SimulatedJetson

BOOT_ID_FILE = "/proc/sys/kernel/random/boot_id"
BOOTS_FILE = "/var/log/farm-sim-boots"
"""The boot id of every boot so far, a line each."""
LOAD_FILE = "/run/farm-sim/load.json"

_COMMAND_FOLDER = "/usr/lib/farm-sim"
_EVERYWHERE = {
    "reboot": "reboot:main",
    "poweroff": "reboot:poweroff",
    "halt": "reboot:poweroff",
    "shutdown": "reboot:shutdown",
    "systemctl": "reboot:systemctl",
}
_ON_JETSONS = {
    "nvpmodel": "nvpmodel:main",
    "jetson_clocks": "jetson_clocks:main",
    "tegrastats": "tegrastats:main",
}

_RUNNER = """\
import importlib, sys
module, _, function = sys.argv[1].partition(":")
command = importlib.import_module("farm.simulation.board_commands." + module)
sys.exit(getattr(command, function)(sys.argv[2:]))
"""

_ID = """\
#!/bin/sh
# id of a simulated board, whose user is no root unless sudo says so.
case "$*" in
    -u) echo "${FARM_SIM_UID:-1000}" ;;
    *) exec /usr/bin/id "$@" ;;
esac
"""

_SUDO = """\
#!/bin/sh
# sudo of a simulated board: no password, and root is an environment variable.
list=
while [ $# -gt 0 ]; do
    case "$1" in
        -n|-H|-E|-S|-k) shift ;;
        -l) list=1; shift ;;
        -u|-p) shift 2 ;;
        --) shift; break ;;
        -*) echo "sudo: invalid option -- '${1#-}'" >&2; exit 1 ;;
        *) break ;;
    esac
done
if [ -n "$list" ]; then
    if [ $# -eq 0 ]; then
        echo "User ${USER:-farm} may run the following commands on $FARM_SIM_BOARD:"
        echo "    (ALL : ALL) NOPASSWD: ALL"
        exit 0
    fi
    path=$(command -v -- "$1") || { echo "sudo: $1: command not found" >&2; exit 1; }
    shift
    echo "$path${*:+ $*}"
    exit 0
fi
[ $# -gt 0 ] || exit 0
FARM_SIM_UID=0 HOME="$FARM_ROOT/root" exec env "$@"
"""

_TEE = """\
#!/bin/sh
# tee of a simulated board: the kernel's files are its own, and root's.
case "$1" in
    /sys/*|/run/*) ;;
    *) exec /usr/bin/tee "$@" ;;
esac
if [ "${FARM_SIM_UID:-1000}" != 0 ]; then
    echo "tee: $1: Permission denied" >&2
    exit 1
fi
case "$1" in
    /sys/*) [ -e "$FARM_ROOT$1" ] || { echo "tee: $1: No such file or directory" >&2; exit 1; } ;;
esac
exec /usr/bin/tee "$FARM_ROOT$1"
"""

_NO_SUDO = """\
#!/bin/sh
# sudo of a simulated board whose user must give a password.
echo "sudo: a password is required" >&2
exit 1
"""

_DMESG = """\
#!/bin/sh
# dmesg of a simulated board, never of the machine beneath: a file that a boot empties.
echo "[    0.000000] Booting Linux on a simulated board"
cat "$FARM_ROOT/run/farm-sim/kernel.log" 2> /dev/null || true
"""

_DATE = """\
#!/bin/sh
# date of a simulated board, whose clock may have jumped.
offset=$(cat "$FARM_ROOT/run/farm-sim/date-offset" 2> /dev/null) || exec /usr/bin/date "$@"
for word in "$@"; do
    case "$word" in -d*|--date*|-r*|-s*|--set*) exec /usr/bin/date "$@" ;; esac
done
exec /usr/bin/date -d "@$(($(/usr/bin/date +%s) + offset))" "$@"
"""

_JOURNALCTL = """\
#!/bin/sh
echo "No journal files were found." >&2
exit 1
"""


def jetson_of(profile: BoardProfile) -> SimulatedJetson | None:
    """The Jetson that the profile's simulation is, or None. Raises ConfigError."""
    conf = profile.simulation.nvpmodel_conf if profile.simulation else None
    if conf is None:
        return None
    jetson = JETSONS.get(Path(conf).stem)
    if jetson is None:
        known = ", ".join(sorted(JETSONS))
        msg = f"profile {profile.name}: no simulated Jetson {conf!r}; there are {known}"
        raise ConfigError(msg)
    return jetson


def build_board_root(root: Path, board: Board, profile: BoardProfile) -> None:
    """Make or complete the root folder. Existing homes, keys and the stored mode are kept."""
    for folder in ("home", "root", "bin", "tmp", "run/farm-sim", "var/lib/nvpmodel", "etc/ssh"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    root.chmod(0o700)
    jetson = jetson_of(profile)
    quirks = board.simulation.quirks if board.simulation else ()
    facts: dict[str, object] = {
        "board": board.name,
        "profile": profile.name,
        "quirks": [str(quirk) for quirk in quirks],
    }
    if jetson is not None:
        facts["jetson"] = jetson.facts._asdict()
    _write(root, FACTS_FILE, json.dumps(facts))
    _write(root, "/etc/hostname", board.name)
    for name in ("present", "online"):  # a power mode may switch some off
        _write(root, CPU + name, f"0-{profile.cores - 1}" if profile.cores > 1 else "0")
    if profile.memory_gb is not None:
        _write(root, "/proc/meminfo", f"MemTotal: {round(profile.memory_gb * 1024**2):>15} kB")
    _write_device_tree(root, profile, jetson)
    _install_commands(root, _EVERYWHERE | (_ON_JETSONS if jetson else {}))
    _script(root / "bin" / "dmesg", _DMESG)
    _script(root / "bin" / "journalctl", _JOURNALCTL)
    _script(root / "bin" / "date", _DATE)
    put_sudo(root, works=Quirk.NO_SUDO not in quirks)
    if jetson is None:
        _write(root, "/sys/class/thermal/thermal_zone0/type", "CPU-therm")
    else:
        _write(root, "/etc/nv_tegra_release", jetson.release)
        conf = package_files("farm.simulation") / "confs" / f"{jetson.facts.kind}.conf"
        _write(root, CONF_FILE, conf.read_text(encoding="utf-8").rstrip("\n"))
        for link, target in kernel_links(jetson).items():
            _link(root / link.lstrip("/"), target)


def put_sudo(root: Path, *, works: bool) -> None:
    """Give the board a sudo that works without a password, or one that wants one."""
    _script(root / "bin" / "sudo", _SUDO if works else _NO_SUDO)


def boot_files(root: Path, profile: BoardProfile, boot_id: str) -> None:
    """What a boot renews: the boot id, fresh clocks, then the stored power mode is applied."""
    _write(root, BOOT_ID_FILE, boot_id)
    boots = root / BOOTS_FILE.lstrip("/")
    boots.parent.mkdir(parents=True, exist_ok=True)
    with boots.open("a", encoding="utf-8") as log:
        log.write(boot_id + "\n")
    for volatile in ("run", "tmp"):
        shutil.rmtree(root / volatile, ignore_errors=True)
        (root / volatile).mkdir(exist_ok=True)
    (root / "run" / "farm-sim").mkdir(exist_ok=True)
    jetson = jetson_of(profile)
    if jetson is None:
        return
    board = BoardFiles(root)
    table = load_mode_table(board)
    shutil.rmtree(root / "sys" / "bus", ignore_errors=True)  # the numbers of hwmon change
    files = {
        **conf_files(jetson, table),
        **kernel_files(jetson),
        **sensor_labels(jetson.facts, boot_id),
        **sensor_values(jetson.facts, boot_id, COLD),
    }
    for path in sorted(files):
        _write(root, path, files[path])
    _start_services(board, jetson, table)


def _start_services(board: BoardFiles, jetson: SimulatedJetson, table: ModeTable) -> None:
    """The boot service of nvpmodel, and then what uses the GPU for the first time."""
    is_own_reboot = board.exists(BY_NVPMODEL_FILE)
    board.path(BY_NVPMODEL_FILE).unlink(missing_ok=True)
    if board.has_quirk(Quirk.STATUS_LOST_AT_REBOOT):
        board.path(STATUS_FILE).unlink(missing_ok=True)
    mode = table.mode(stored_mode_id(board, table))
    board.sum_up_online()
    if mode is not None and not board.has_quirk(Quirk.BOOT_SERVICE_FAILED):
        is_stuck = board.has_quirk(Quirk.STICKY_MASK) and not is_own_reboot
        apply_mode(board, table, mode, has_masks=not is_stuck)
    if jetson.facts.question and not board.has_quirk(Quirk.GPU_UNUSED):
        board.write(GPU_USED_FILE, "1")


def _write_device_tree(root: Path, profile: BoardProfile, jetson: SimulatedJetson | None) -> None:
    """Model and compatible under both paths, NUL-ended as the kernel shows them."""
    identify = profile.identify
    model = jetson.facts.machine if jetson else next(iter(identify.model), profile.name)
    compatible = jetson.compatible if jetson else identify.compatible or (profile.name,)
    for folder in ("proc/device-tree", "sys/firmware/devicetree/base"):
        (root / folder).mkdir(parents=True, exist_ok=True)
        (root / folder / "model").write_bytes(model.encode() + b"\0")
        (root / folder / "compatible").write_bytes(
            b"".join(entry.encode() + b"\0" for entry in compatible)
        )


def _install_commands(root: Path, commands: dict[str, str]) -> None:
    """The commands' modules go to a library folder, each name in bin is a short sh script.

    Two empty packages hold the path to the modules, so that a command loads nothing else of
    farm and none of its libraries.
    """
    library = root / _COMMAND_FOLDER.lstrip("/")
    (library / "farm" / "simulation").mkdir(parents=True, exist_ok=True)
    (library / "farm" / "__init__.py").touch()
    (library / "farm" / "simulation" / "__init__.py").touch()
    (library / "run.py").write_text(_RUNNER, encoding="utf-8")
    _link(
        library / "farm" / "simulation" / "board_commands", str(Path(board_commands.__path__[0]))
    )
    for name, entry in commands.items():
        text = f'#!/bin/sh\nexec python3 "$FARM_ROOT{_COMMAND_FOLDER}/run.py" {entry} "$@"\n'
        _script(root / "bin" / name, text)
    _script(root / "bin" / "id", _ID)
    _script(root / "bin" / "tee", _TEE)
    _link(root / "bin" / "python3", str(Path(sys.executable).resolve()))


def _script(path: Path, text: str) -> None:
    unfinished = path.with_name(path.name + ".new")  # never seen half, nor written to while run
    unfinished.write_text(text, encoding="utf-8")
    unfinished.chmod(0o755)
    unfinished.replace(path)


def _link(path: Path, target: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_symlink() or path.exists():
        path.unlink()
    path.symlink_to(target)


def _write(root: Path, on_board: str, value: str) -> None:
    path = root / on_board.lstrip("/")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value + "\n", encoding="utf-8")
