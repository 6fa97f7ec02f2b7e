"""``reboot``, ``poweroff`` and their relatives: ask the simulated lab, never this machine.

The lab watches the request file of each board. The names shadow the machine's own commands,
so that no board can switch off the computer it is simulated on.
"""

from farm.simulation.board_commands.board_files import (
    REQUEST_FILE,
    BoardFiles,
    complain,
    is_root,
)

# What systemd 237 (Ubuntu 18.04) says to a caller without rights.
_REFUSED = """\
Failed to set wall message, ignoring: Interactive authentication required.
Failed to {verb} system via logind: Interactive authentication required.
Failed to open /dev/initctl: Permission denied
Failed to talk to init daemon."""

_VERBS = {"reboot": "reboot", "poweroff": "power_cut", "halt": "power_cut"}


def main(argv: list[str]) -> int:
    """Run ``reboot``."""
    return _ask("reboot") if not argv or argv == ["-f"] else _refuse("reboot", argv)


def poweroff(argv: list[str]) -> int:
    """Run ``poweroff`` or ``halt``."""
    return _ask("poweroff") if not argv or argv == ["-f"] else _refuse("poweroff", argv)


def shutdown(argv: list[str]) -> int:
    """Run ``shutdown``: only ``[-r|-h|-P] now``."""
    if argv and argv[-1] == "now" and set(argv[:-1]) <= {"-r", "-h", "-P"}:
        return _ask("reboot" if "-r" in argv else "poweroff")
    return _refuse("shutdown", argv)


def systemctl(argv: list[str]) -> int:
    """Run ``systemctl``: only the verbs that end the system."""
    if len(argv) == 1 and argv[0] in _VERBS:
        return _ask(argv[0])
    return _refuse("systemctl", argv)


def _ask(verb: str) -> int:
    if not is_root():
        complain(_REFUSED.format(verb=verb))
        return 1
    BoardFiles.here().write(REQUEST_FILE, _VERBS[verb])
    return 0


def _refuse(command: str, argv: list[str]) -> int:
    complain(f"{command}: not on a simulated board: {' '.join(argv)}")
    return 1
