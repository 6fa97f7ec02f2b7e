"""``reboot``, ``poweroff`` and their relatives: ask the simulated lab, never this machine.

The lab watches the request file of each board. The names shadow the machine's own commands,
so that no board can switch off the computer it is simulated on.
"""

from farm.simulation.board_commands.board_files import (
    REQUEST_FILE,
    BoardFiles,
    complain,
    is_root,
    say,
)

FAN_SERVICE = "nvfancontrol"
FAN_STOPPED_FILE = "/run/farm-sim/fan-service-stopped"
FIRST_WITH_FAN_SERVICE = 34
_NOT_ACTIVE, _NO_UNIT = 3, 5
"""Exit statuses of systemctl."""

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
    """Run ``systemctl``: the verbs that end the system, how far it is, the fan's service."""
    if argv == ["is-system-running"]:
        say("running")
        return 0
    if len(argv) == 1 and argv[0] in _VERBS:
        return _ask(argv[0])
    if len(argv) == 2 and argv[1] == FAN_SERVICE and argv[0] in {"is-active", "start", "stop"}:  # noqa: PLR2004
        return _fan_service(argv[0])
    return _refuse("systemctl", argv)


def _fan_service(verb: str) -> int:
    """It runs from the boot on where the release has it; while it runs, the fan is its own."""
    files = BoardFiles.here()
    try:
        facts = files.facts()
    except KeyError:  # no Jetson
        facts = None
    has_service = facts is not None and facts.l4t >= FIRST_WITH_FAN_SERVICE
    if verb == "is-active":
        is_active = has_service and not files.exists(FAN_STOPPED_FILE)
        say("active" if is_active else "inactive")
        return 0 if is_active else _NOT_ACTIVE
    if facts is None or not has_service:
        complain(f"Failed to {verb} {FAN_SERVICE}.service: Unit {FAN_SERVICE}.service not loaded.")
        return _NO_UNIT
    if not is_root():
        complain(f"Failed to {verb} {FAN_SERVICE}.service: Interactive authentication required.")
        return 1
    if verb == "stop":
        files.write(FAN_STOPPED_FILE, "1")
    else:
        files.path(FAN_STOPPED_FILE).unlink(missing_ok=True)
        files.write(facts.fan[0], "0")  # at rest: it is cool
    return 0


def _ask(verb: str) -> int:
    if not is_root():
        complain(_REFUSED.format(verb=verb))
        return 1
    BoardFiles.here().write(REQUEST_FILE, _VERBS[verb])
    return 0


def _refuse(command: str, argv: list[str]) -> int:
    complain(f"{command}: not on a simulated board: {' '.join(argv)}")
    return 1
