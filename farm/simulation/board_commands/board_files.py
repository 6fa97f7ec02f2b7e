"""The files of a simulated board, as its commands see them.

A path such as ``/sys/...`` is read below ``FARM_ROOT``. ``sudo`` on a simulated board sets
``FARM_SIM_UID=0``; that is what being root means there.
"""

import json
import os
import sys
from pathlib import Path
from typing import NamedTuple, Self

FACTS_FILE = "/etc/farm-simulated"
STATE_FILE = "/run/farm-sim/state.json"
REQUEST_FILE = "/run/farm-sim/request"
GPU_USED_FILE = "/run/farm-sim/gpu-used"
"""There when something has used the GPU since the boot; then its masks cannot change."""
KERNEL_LOG_FILE = "/run/farm-sim/kernel.log"
"""What the board's dmesg says."""
DATE_OFFSET_FILE = "/run/farm-sim/date-offset"
"""Seconds by which the board's date differs; absent while it is right."""
CPU = "/sys/devices/system/cpu/"
COOLING = "/sys/class/thermal/cooling_device0/"
"""What makes the board slower when it is too hot: its `cur_state` is then over 0."""


class BoardFacts(NamedTuple):
    """What the commands need to know of the Jetson they run on. Frequencies in Hz.

    `kind` names its conf and the form of its tegrastats; `l4t` is the release's major number.
    `gpu` is the tool's word for the GPU, `gpu_clocks` the folder of its frequencies, `railgate`
    the file that keeps it awake ("" if there is none). `idle_states` holds, for each core, the
    names of its idle states; `emc_lock` is the file that pins the memory clock, `emc_cap` its
    cap. `fan` is the folder of the fan's two files, `fan_label` their name in jetson_clocks.
    `tops_hz` are clocks without a frequency table, `tpcs` the GPU's parts (0: not told).
    `question`: how nvpmodel asks for a reboot, "golden" with a line before, "plain" without.
    `fan_mode` is the mode that nvpmodel prints, "" where it prints none.
    """

    kind: str
    l4t: int
    soc: str
    machine: str
    gpu: str
    gpu_clocks: str
    railgate: str
    idle_states: tuple[tuple[str, ...], ...]
    emc_min_hz: int
    emc_max_hz: int
    emc_lock: str
    emc_cap: str
    fan: tuple[str, str]
    fan_label: str = ""
    tops_hz: dict[str, int] = {}  # noqa: RUF012 -- a NamedTuple's default, never changed
    tpcs: int = 0
    question: str = ""
    fan_mode: str = ""


class LiveState(NamedTuple):
    """What the physics last said: watts at the socket, degrees, busy cores, GPU work."""

    power_w: float
    temperature_c: float
    busy_cores: float
    is_loaded: bool


COLD = LiveState(0.0, 25.0, 0.0, is_loaded=False)
"""A board at rest that the physics has not told of yet."""


class BoardFiles:
    """Reads and writes a board's files by their paths on the board."""

    def __init__(self, root: Path) -> None:
        self._root = root

    @classmethod
    def here(cls) -> Self:
        """The board that this process runs on."""
        return cls(Path(os.environ["FARM_ROOT"]))

    def path(self, on_board: str) -> Path:
        """Where the board's absolute path lies on this machine."""
        return self._root / on_board.lstrip("/")

    def on_board(self, path: object) -> str:
        """The board's own path of a file on this machine."""
        return "/" + os.path.relpath(str(path), self._root)

    def exists(self, on_board: str) -> bool:
        """Whether the board has that file."""
        return self.path(on_board).exists()

    def read(self, on_board: str) -> str:
        """The file's text without blanks at its ends. Raises OSError."""
        return self.path(on_board).read_text(encoding="utf-8").strip()

    def write(self, on_board: str, value: str) -> None:
        """Write as to sysfs: in place, never seen empty. Raises OSError."""
        data = value.encode() + b"\n"
        handle = os.open(self.path(on_board), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            os.write(handle, data)
            os.ftruncate(handle, len(data))
        finally:
            os.close(handle)

    def facts(self) -> BoardFacts:
        """The Jetson's facts, written when it was made. Raises OSError, ValueError, KeyError."""
        jetson = json.loads(self.read(FACTS_FILE))["jetson"]
        jetson["idle_states"] = tuple(tuple(names) for names in jetson["idle_states"])
        jetson["fan"] = tuple(jetson["fan"])
        return BoardFacts(**jetson)

    def has_quirk(self, name: str) -> bool:
        """Whether the inventory gave this board that quirk."""
        try:
            return name in json.loads(self.read(FACTS_FILE))["quirks"]
        except (OSError, ValueError, KeyError):
            return False

    def live_state(self) -> LiveState:
        """The physics' last word; a cold, idle board when there is none."""
        try:
            return LiveState(**json.loads(self.read(STATE_FILE)))
        except (OSError, ValueError, TypeError):
            return COLD

    def clock_share(self) -> float:
        """How much of its caps the board reaches: less while it throttles."""
        try:
            return 1.0 if self.read(COOLING + "cur_state") == "0" else 0.5
        except OSError:
            return 1.0

    def online_cores(self, core_count: int) -> list[int]:
        """The cores that are online, ascending. Raises OSError."""
        return [core for core in range(core_count) if self.read(f"{CPU}cpu{core}/online") == "1"]

    def sum_up_online(self) -> None:
        """Write the list of online cores as the kernel keeps it. Raises OSError."""
        count = int(self.read(CPU + "present").rpartition("-")[2]) + 1
        self.write(CPU + "online", number_ranges(self.online_cores(count)))


def number_ranges(cores: list[int]) -> str:
    """Ascending numbers as the kernel writes them, e.g. ``0,3-5``."""
    spans: list[list[int]] = []
    for core in cores:
        if spans and core == spans[-1][1] + 1:
            spans[-1][1] = core
        else:
            spans.append([core, core])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in spans)


def is_root() -> bool:
    """Whether the command runs through the board's ``sudo``."""
    return os.environ.get("FARM_SIM_UID") == "0"


def say(line: str) -> None:
    """A line on stdout, at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def complain(line: str) -> None:
    """A line on stderr, at once."""
    sys.stderr.write(line + "\n")
    sys.stderr.flush()
