"""Which processes of a board keep its cores busy, over a second, by /proc alone."""

import json
from dataclasses import dataclass

from farm.interfaces.agent import BoardCommands

LOOK_S = 1.0
RUN_LIMIT_S = 20.0
_LISTED = 5

_SCRIPT = r"""
import json, os, sys, time
root, seconds = sys.argv[1] or os.environ.get("FARM_ROOT", ""), float(sys.argv[2])
own = (str(os.getpid()), str(os.getppid()))
def look():
    seen = {}
    try:
        names = os.listdir(root + "/proc")
    except OSError:
        return seen
    for name in names:
        if name.isdigit() and name not in own:
            try:
                with open(root + "/proc/" + name + "/stat", "rb") as file:
                    head, _, tail = file.read().rpartition(b")")
                fields = tail.split()
                ticks = int(fields[11]) + int(fields[12])
            except (OSError, IndexError, ValueError):
                continue
            label = head.partition(b"(")[2].decode("ascii", "replace")
            seen[name + "." + fields[19].decode("ascii")] = (ticks, int(name), label)
    return seen
begin, first = time.monotonic(), look()
time.sleep(seconds)
second, took = look(), time.monotonic() - begin
hertz = float(os.sysconf("SC_CLK_TCK"))
busy = []
for key, (ticks, pid, label) in second.items():
    cores = (ticks - first.get(key, (0,))[0]) / hertz / took
    if cores > 0:
        busy.append([round(cores, 3), pid, label])
busy.sort(reverse=True)
print(json.dumps({"count": len(second), "total": sum(one[0] for one in busy), "busy": busy[:20]}))
"""
"""Python 3.5 or later. Left out: itself and the agent that started it."""


@dataclass(frozen=True, slots=True)
class BusyProcess:
    """A process and how much of a core it took: 1.0 is one core all the time."""

    name: str
    pid: int
    cores: float


@dataclass(frozen=True, slots=True)
class BusyLook:
    """All processes together, in cores, and the busiest ones."""

    total_cores: float
    busiest: tuple[BusyProcess, ...]


async def look_for_load(
    commands: BoardCommands, python: str, root_prefix: str = ""
) -> BusyLook | None:
    """What ran during a second; None where the board does not tell (no /proc of its own).

    Raises what `run` raises.
    """
    argv = [python, "-E", "-s", "-S", "-c", _SCRIPT, root_prefix, str(LOOK_S)]
    result = await commands.run(argv, timeout_s=RUN_LIMIT_S)
    return parse_busy(result.text) if result.exit_status == 0 else None


def parse_busy(text: str) -> BusyLook | None:
    """Read the script's answer; None for anything else."""
    try:
        told = json.loads(text)
        busiest = tuple(
            BusyProcess(str(label)[:64], int(pid), float(cores))
            for cores, pid, label in told["busy"][:_LISTED]
        )
        return BusyLook(float(told["total"]), busiest) if told["count"] else None
    except (ValueError, KeyError, TypeError):
        return None
