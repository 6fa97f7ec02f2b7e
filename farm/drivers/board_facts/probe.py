"""What a board is and how it is now, read without root in one go.

Every source may be missing (a PC has no device tree, Yocto no dpkg): then the fact is None or "".
"""

import asyncio
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from farm.drivers.board_facts.cpuinfo import parse_cpuinfo
from farm.drivers.board_facts.device_tree import parse_device_tree
from farm.drivers.board_facts.lscpu import parse_lscpu
from farm.drivers.board_facts.nv_tegra_release import L4tRelease, parse_l4t_release
from farm.errors import CommandTimeoutError
from farm.interfaces.agent import BoardCommands
from farm.model.record import Record

COMMAND_LIMIT_S = 10.0
_TREES = ("/proc/device-tree", "/sys/firmware/devicetree/base")
_FILES = (
    "/etc/nv_tegra_release",
    "/etc/os-release",
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/proc/loadavg",
    "/proc/uptime",
    "/sys/devices/system/cpu/online",
    "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
)
_L4T_PACKAGE = ("dpkg-query", "--show", "nvidia-l4t-core")
_PRETTY = re.compile(r"^PRETTY_NAME=\"?([^\"\n]{1,100})", re.MULTILINE)
_KB = re.compile(r"^(\w{1,32}):\s{1,20}(\d{1,15}) kB", re.MULTILINE)
_NUMBER = re.compile(r"\s*(\d{1,12}(?:\.\d{1,6})?)\b")


class CoreKind(Record):
    """Cores of one kind that are online."""

    name: str
    count: int


class BoardFacts(Record):
    """Facts of one board. "", () and None are unknown.

    `l4t` is the release, e.g. ``R32.6.1``; `l4t_source` is ``nv_tegra_release`` or ``dpkg``.
    `clock` is the board's wall clock and `clock_error_s` how far it is from the host's at
    most: half the round trip is taken off. Nothing rests on it.
    """

    model: str = ""
    compatible: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    chip: str = ""
    l4t: str = ""
    l4t_source: str = ""
    os: str = ""
    cores: tuple[CoreKind, ...] = ()
    cores_online: str = ""
    governor: str = ""
    memory_total_mb: int | None = None
    memory_available_mb: int | None = None
    swap_used_mb: int | None = None
    load_1m: float | None = None
    uptime_s: float | None = None
    clock: datetime | None = None
    clock_error_s: float | None = None


async def probe(commands: BoardCommands) -> BoardFacts:
    """Read the facts. Raises LinkLostError, CommandTimeoutError, AgentError."""
    paths = [f"{tree}/{name}" for tree in _TREES for name in ("model", "compatible")]
    texts = await asyncio.gather(*(commands.read_text(path) for path in (*paths, *_FILES)))
    read = {path: text or "" for path, text in zip((*paths, *_FILES), texts, strict=True)}
    release = parse_l4t_release(read["/etc/nv_tegra_release"])
    release = release or parse_l4t_release(await _said(commands, _L4T_PACKAGE))
    lscpu = "" if _cores(read["/proc/cpuinfo"], "") else await _said(commands, ("lscpu",))
    clock, clock_error_s = await _clock(commands)
    return _facts(read, release, lscpu).model_copy(
        update={"clock": clock, "clock_error_s": clock_error_s}
    )


def _facts(read: Mapping[str, str], release: L4tRelease | None, lscpu: str) -> BoardFacts:
    tree_folder = next((tree for tree in _TREES if read[f"{tree}/model"]), _TREES[0])
    tree = parse_device_tree(read[f"{tree_folder}/model"], read[f"{tree_folder}/compatible"])
    memory = {name: int(kb) // 1024 for name, kb in _KB.findall(read["/proc/meminfo"])}
    swap = [memory.get(name) for name in ("SwapTotal", "SwapFree")]
    pretty = _PRETTY.search(read["/etc/os-release"])
    return BoardFacts(
        model=tree.model,
        compatible=tree.compatible,
        modules=tree.modules,
        chip=tree.chip,
        l4t=release.name if release else "",
        l4t_source=release.source if release else "",
        os=pretty[1] if pretty else "",
        cores=_cores(read["/proc/cpuinfo"], lscpu),
        cores_online=read["/sys/devices/system/cpu/online"].strip()[:100],
        governor=read["/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"].strip()[:40],
        memory_total_mb=memory.get("MemTotal"),
        memory_available_mb=memory.get("MemAvailable"),
        swap_used_mb=None if swap[0] is None or swap[1] is None else swap[0] - swap[1],
        load_1m=_first_number(read["/proc/loadavg"]),
        uptime_s=_first_number(read["/proc/uptime"]),
    )


def _cores(cpuinfo: str, lscpu: str) -> tuple[CoreKind, ...]:
    """By /proc/cpuinfo; where that names none (not an Arm, a new core), by lscpu."""
    counts: dict[str, int] = {}
    for core in parse_cpuinfo(cpuinfo).cores:
        if core.name:
            counts[core.name] = counts.get(core.name, 0) + 1
    if not counts:
        counts = {kind.name: kind.cpus or 0 for kind in parse_lscpu(lscpu).kinds if kind.name}
    return tuple(CoreKind(name=name[:80], count=count) for name, count in counts.items())


async def _clock(commands: BoardCommands) -> tuple[datetime | None, float | None]:
    before = datetime.now(UTC)
    told = _first_number(await _said(commands, ("date", "+%s")))
    after = datetime.now(UTC)
    if told is None:
        return None, None
    middle, half_s = before + (after - before) / 2, (after - before).total_seconds() / 2
    try:
        clock = datetime.fromtimestamp(told, UTC)
    except (OverflowError, OSError, ValueError):
        return None, None
    return clock, max(0.0, abs((clock - middle).total_seconds()) - half_s - 1)  # whole seconds


async def _said(commands: BoardCommands, argv: Sequence[str]) -> str:
    """What a command printed; "" when it is not there, failed or hung."""
    try:
        result = await commands.run(argv, timeout_s=COMMAND_LIMIT_S)
    except CommandTimeoutError:
        return ""
    return result.text if result.exit_status == 0 else ""


def _first_number(text: str) -> float | None:
    found = _NUMBER.match(text)
    return float(found[1]) if found else None
