"""Which commands farm runs as root on a board, by its profile's power controller.

A pattern of sudoers' ``*`` fits blanks too: ``nvpmodel -m *`` would let ``-m 0 -f FILE`` through,
and with a file of one's own nvpmodel writes anything anywhere. So numbers are spelled out.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from farm.drivers.power_modes import cpufreq, fan, nvidia_smi
from farm.drivers.power_modes.nvpmodel import STORE
from farm.execution.kernel_log import JOURNAL_LINES
from farm.model.profile import BoardProfile


@dataclass(frozen=True, slots=True)
class RootCommand:
    """One command.

    `path` and `arguments` as they stand in sudoers ("" for none); `sample` is an argv that
    the pattern lets through; `is_harmless`: running the sample changes nothing.
    """

    path: str
    arguments: str
    sample: tuple[str, ...]
    is_harmless: bool = False

    @property
    def text(self) -> str:
        """As sudoers wants it."""
        return f"{self.path} {self.arguments or chr(34) * 2}"


PSTORE = ("/sys/fs/pstore/console-ramoops-0", "/sys/fs/pstore/console-ramoops")
NVPMODEL, CLOCKS = "/usr/sbin/nvpmodel", "/usr/bin/jetson_clocks"
"""Where L4T puts its tools, R28.2 to R39."""

_NVPMODEL = (
    RootCommand(NVPMODEL, "-m [0-9]", ("nvpmodel", "-m", "0")),
    RootCommand(NVPMODEL, "-m [0-9][0-9]", ("nvpmodel", "-m", "10")),
    RootCommand(NVPMODEL, "-q --verbose", ("nvpmodel", "-q", "--verbose"), is_harmless=True),
    RootCommand(CLOCKS, "", ("jetson_clocks",)),
    RootCommand(CLOCKS, "--show", ("jetson_clocks", "--show"), is_harmless=True),
    RootCommand(CLOCKS, f"--store {STORE}", ("jetson_clocks", "--store", STORE)),
    RootCommand(CLOCKS, f"--restore {STORE}", ("jetson_clocks", "--restore", STORE)),
    RootCommand(CLOCKS, "--restore", ("jetson_clocks", "--restore")),
)


def _allowed(lines: Iterable[str]) -> tuple[RootCommand, ...]:
    """Commands as a controller spells them for sudoers: any number will do as a sample."""
    commands = []
    for line in lines:
        path, _, arguments = line.partition(" ")
        plain = re.sub(r"\\(.)", r"\1", arguments.replace("[0-9]", "1"))
        sample = (PurePosixPath(path).name, *plain.split())
        commands.append(RootCommand(path, arguments, sample))
    return tuple(commands)


_BY_CONTROLLER = {
    "nvpmodel": _NVPMODEL,
    "cpufreq": _allowed(cpufreq.ALLOW),
    "nvidia-smi": _allowed(nvidia_smi.ALLOW),
    "fixed": (),
}

REBOOT = (
    RootCommand("/sbin/reboot", "", ("reboot",)),
    RootCommand("/bin/systemctl", "reboot", ("systemctl", "reboot")),
)
"""For `farm boards reboot` and modes that need one; either is enough."""
_BOOT_ID = "[0-9a-f]" * 32
_JOURNAL = f"--dmesg -o short-monotonic --no-pager -q -n {JOURNAL_LINES} --boot\\="
KERNEL_LOG = (
    RootCommand("/bin/dmesg", "", ("dmesg",), is_harmless=True),
    RootCommand(
        "/bin/journalctl",
        _JOURNAL + _BOOT_ID,
        ("journalctl", *(_JOURNAL.replace("\\", "") + "0123456789abcdef" * 2).split()),
        is_harmless=True,
    ),
    *(RootCommand("/bin/cat", path, ("cat", path), is_harmless=True) for path in PSTORE),
)
"""Reads the kernel's messages after a spoilt attempt; without it their causes stay unknown."""
FAN = _allowed(fan.ALLOW)
"""For sweeps that set the fan of a Jetson."""
_TEGRASTATS = "/usr/bin/tegrastats"
TELEMETRY = tuple(
    RootCommand(
        _TEGRASTATS, f"--interval {digits}", ("tegrastats", "--interval", "1" * (len(digits) // 5))
    )
    for digits in ("[0-9]" * 3, "[0-9]" * 4)
)
"""1 to 10 Hz. As root it tells loads and clocks that it keeps from others; it goes without."""


def root_commands(
    profile: BoardProfile,
    *,
    with_reboot: bool = False,
    with_fan: bool = False,
    with_kernel_log: bool = False,
    with_telemetry: bool = False,
) -> Sequence[RootCommand]:
    """What the board must allow without a password; () where nothing is set as root."""
    is_jetson = profile.power_controller == "nvpmodel"
    return (
        *_BY_CONTROLLER.get(profile.power_controller, ()),
        *(FAN if with_fan and is_jetson else ()),
        *(TELEMETRY if with_telemetry and is_jetson else ()),
        *(REBOOT if with_reboot else ()),
        *(KERNEL_LOG if with_kernel_log else ()),
    )
