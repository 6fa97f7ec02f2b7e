"""The transport against its peers: fan-out, kept connections, push, streams, memory.

    python benchmarks/transport.py [--only fan,kept,push,stream,memory] [--repeats 3]

Ratios hold within one run only; the targets are those of docs/benchmarks.md.
"""

import argparse
import sys
from dataclasses import dataclass, field

from benchmarks.lab import PrivateSshd, enter_namespaces
from benchmarks.results import Target, report
from benchmarks.turns import Settings, take_turns

SENDER = """\
import sys, time
total, rate = int(sys.argv[1]), int(sys.argv[2])
write = sys.stdout.buffer.write
if not rate:
    piece = (b"x" * 99 + b"\\n") * 1000
    for _ in range(total // 1000):
        write(piece)
else:
    begin, step = time.monotonic(), rate // 100
    for tick in range(total // step):
        wait = begin + tick / 100 - time.monotonic()
        if wait > 0:
            time.sleep(wait)
        write((b"%017.6f " % time.monotonic() + b"x" * 81 + b"\\n") * step)
        sys.stdout.flush()
"""
"""Lines of 100 bytes: as fast as they go, or `rate` a second with their time of writing."""

_CLIENTS = "benchmarks.clients."
FARM, SSH = f"{_CLIENTS}farm_client:", f"{_CLIENTS}openssh:"
AGENT = f"{_CLIENTS}farm_agent:"
FABRIC, PARAMIKO = f"{_CLIENTS}fabric_peer:", f"{_CLIENTS}paramiko_peer:"
ASYNCSSH = f"{_CLIENTS}asyncssh_peer:"
FAN_OUT = {
    "farm": f"{FARM}FanOut",
    "ssh, curve25519": f"{SSH}FanOut",
    "ssh by default": f"{SSH}FanOutByDefault",
    "fabric": f"{FABRIC}FanOut",
    "paramiko": f"{PARAMIKO}FanOut",
}


@dataclass(frozen=True, slots=True)
class Scene:
    """One table."""

    name: str
    title: str
    boards: int
    clients: dict[str, str]
    targets: tuple[Target, ...]
    settings: Settings = field(default_factory=dict)
    repeats: int | None = None
    warm_up: int = 1


def _fan_out(boards: int) -> Scene:
    return Scene(
        "fan",
        f"`true` over {boards} fresh connections",
        boards,
        FAN_OUT,
        (
            Target("farm", "wall_s", 0.75, "ssh, curve25519"),
            Target("farm", "wall_s", 0.30, "ssh by default"),
            Target("farm", "wall_s", 1.15, "fabric"),
            Target("farm", "cpu_s", 0.35, "ssh, curve25519"),
            Target("farm", "cpu_s", 0.06, "ssh by default"),
            Target("farm", "cpu_s", 0.7, "fabric"),
            Target("farm", "cpu_s", 0.004 * boards),
        ),
    )


def _push(shape: str, boards: int, targets: tuple[Target, ...]) -> Scene:
    what = "500 files of 20 kB" if shape == "small" else "50 MB in one file"
    clients = {
        "farm, payload": f"{AGENT}Push",
        "farm, put": f"{FARM}Put",
        "scp": f"{SSH}Scp",
        "scp, kept master": f"{SSH}ScpKept",
        "fabric put": f"{FABRIC}Put",
        "asyncssh SFTP": f"{ASYNCSSH}Sftp",
    }
    if boards > 1:
        del clients["scp, kept master"]
    title = f"push {what} to {boards} board{'s' if boards > 1 else ''}"
    return Scene("push", title, boards, clients, targets, {"shape": shape})


SCENES = (
    Scene(
        "fan",
        "`true` over one fresh connection",
        1,
        FAN_OUT,
        (
            Target("farm", "wall_s", 0.45, "ssh, curve25519"),
            Target("farm", "wall_s", 0.5, "fabric"),
        ),
        repeats=5,
    ),
    _fan_out(50),
    _fan_out(200),
    Scene(
        "kept",
        "1000 commands over 10 kept connections",
        10,
        {
            "farm, command": f"{AGENT}Commands",
            "farm, exec": f"{FARM}Kept",
            "asyncssh": f"{ASYNCSSH}Kept",
            "fabric": f"{FABRIC}Kept",
            "ssh, kept masters": f"{SSH}Kept",
            "farm, poll": f"{AGENT}Poll",
            "farm, poll, pipelined": f"{AGENT}PollPipelined",
        },
        (
            Target("farm, command", "wall_s", 0.40, "fabric"),
            Target("farm, command", "wall_s", 0.45, "ssh, kept masters"),
            Target("farm, poll", "wall_s", 0.1, "asyncssh"),
            Target("farm, poll, pipelined", "wall_s", 0.05, "asyncssh"),
        ),
        {"operations": 1000},
    ),
    _push(
        "small",
        1,
        (
            Target("farm, payload", "wall_s", 0.40, "scp, kept master"),
            Target("farm, payload", "wall_s", 0.35, "asyncssh SFTP"),
            Target("farm, payload", "wall_s", 0.2, "fabric put"),
        ),
    ),
    _push("small", 10, (Target("farm, payload", "wall_s", 0.35, "scp"),)),
    _push(
        "big",
        1,
        (
            Target("farm, payload", "wall_s", 1.1, "scp, kept master"),
            Target("farm, payload", "wall_s", 0.5, "fabric put"),
        ),
    ),
    _push("big", 10, (Target("farm, payload", "wall_s", 0.6, "scp"),)),
    Scene(
        "stream",
        "500,000 lines of 100 bytes as fast as they go",
        1,
        {
            "farm": f"{FARM}Stream",
            "ssh, read in pieces": f"{SSH}StreamChunks",
            "asyncssh, async for": f"{ASYNCSSH}StreamLines",
        },
        (
            Target("farm", "million_lines_per_s", at_least=2.0),
            Target("farm", "million_lines_per_s", against="ssh, read in pieces", at_least=2.0),
            Target("farm", "million_lines_per_s", against="asyncssh, async for", at_least=6.0),
        ),
        {"lines": 500_000, "rate": 0},
    ),
    Scene(
        "stream",
        "100,000 lines a second for 2 s",
        1,
        {"farm": f"{FARM}Stream"},
        (Target("farm", "core_pct", 10.0), Target("farm", "lag_ms", 5.0)),
        {"lines": 200_000, "rate": 100_000},
    ),
    Scene(
        "memory",
        "200 idle connections",
        200,
        {"farm": f"{FARM}Idle", "paramiko": f"{PARAMIKO}Idle"},
        (Target("farm", "kb_each", 40.0), Target("farm", "kb_each", 0.7, "paramiko")),
        repeats=1,
        warm_up=0,
    ),
)


def main() -> None:
    """Run the scenes asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="names of scenes, by comma")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    enter_namespaces()
    wanted = options.only.split(",") if options.only else [scene.name for scene in SCENES]
    is_good = True
    for scene in (scene for scene in SCENES if scene.name in wanted):
        with PrivateSshd(scene.boards) as sshd:
            (sshd.fleet.folder / "sender.py").write_text(SENDER)
            rows = take_turns(
                sshd,
                scene.clients,
                scene.settings,
                repeats=scene.repeats or options.repeats,
                warm_up=scene.warm_up,
            )
        is_good &= report(scene.title, rows, scene.targets, file="transport")
    sys.exit(0 if is_good else 1)


if __name__ == "__main__":
    main()
