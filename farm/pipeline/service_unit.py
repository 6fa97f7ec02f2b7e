"""The systemd unit of the service."""

import getpass
import sys
from pathlib import Path

from farm.errors import ConfigError

WATCHDOG_S = 120
STOP_S = 300
"""Above the service's own limit for stopping its runs."""

_UNIT = """\
# {name}
#
# Goes on with the runs of one workspace whose host process is gone: after a reboot, a crash.
# Written by `farm service unit`; install it with:
#   {install}

[Unit]
Description=farm: benchmark runs of {workspace_text}
Documentation=man:systemd.service(5)
Wants=network-online.target
After=network-online.target{postgres}
StartLimitIntervalSec=600
StartLimitBurst=10

[Service]
Type=notify
NotifyAccess=main
{user}ExecStart={python} -m farm service run -w {workspace}
Environment=PYTHONUNBUFFERED=1
Restart=on-failure
RestartSec=10
WatchdogSec={watchdog}
# SIGTERM goes to the service alone: it stops its runs in order, boards are put back.
KillMode=mixed
TimeoutStopSec={stop}
# Its runs are processes of its own: a run that eats the memory ends, not the service.
OOMPolicy=continue

NoNewPrivileges=yes
PrivateTmp=yes
ProtectSystem={protect_system}
{writable}ProtectKernelTunables=yes
ProtectKernelModules=yes
ProtectKernelLogs=yes
ProtectControlGroups=yes
ProtectClock=yes
RestrictSUIDSGID=yes
RestrictRealtime=yes
RestrictNamespaces=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6
LockPersonality=yes
SystemCallArchitectures=native
UMask=0027

[Install]
WantedBy={wanted_by}
"""


def unit_text(workspace: Path, *, is_user: bool) -> str:
    """The unit for a workspace: of the system, run by who asks now, or of the user's manager.

    Raises ConfigError for a path that a unit cannot name.
    """
    root = workspace.absolute()
    name = f"farm-{_slug(root.name)}.service"
    folder = "~/.config/systemd/user" if is_user else "/etc/systemd/system"
    control = "systemctl --user" if is_user else "sudo systemctl"
    write = f"farm service unit{' --user' if is_user else ''} -w {root}"
    tee = f"tee {folder}/{name}" if is_user else f"sudo tee {folder}/{name}"
    install = f"{write} | {tee} && {control} daemon-reload && {control} enable --now {name}"
    if is_user:
        install += "\n#   loginctl enable-linger   (else it ends with your last session)"
    return _UNIT.format(
        name=name,
        install=install,
        workspace_text=_escaped(root),
        workspace=_quoted(root),
        python=_quoted(Path(sys.executable)),
        postgres=" postgresql.service",
        user="" if is_user else f"User={getpass.getuser()}\n",
        watchdog=WATCHDOG_S,
        stop=STOP_S,
        # A user's manager cannot mount: what needs that is left out there.
        protect_system="no" if is_user else "strict",
        writable="" if is_user else f"ReadWritePaths={_quoted(root)}\n",
        wanted_by="default.target" if is_user else "multi-user.target",
    )


def _slug(name: str) -> str:
    return "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "-" for c in name) or "lab"


def _escaped(path: Path) -> str:
    text = str(path)
    if any(ord(c) < 32 or ord(c) == 127 for c in text):  # noqa: PLR2004 - control characters
        raise ConfigError(f"{text!r}: a unit cannot name a path with control characters")
    return text.replace("%", "%%")


def _quoted(path: Path) -> str:
    """As systemd.syntax(7) reads it: quoted, %% for a percent sign, $$ for a dollar."""
    text = _escaped(path).replace("\\", "\\\\").replace('"', '\\"').replace("$", "$$")
    return f'"{text}"'
