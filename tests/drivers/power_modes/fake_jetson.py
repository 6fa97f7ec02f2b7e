"""The tools of a Jetson TX2 in memory: a BoardCommands that answers like the real ones print."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from farm.drivers.power_modes.nvpmodel import ONLINE
from farm.drivers.power_modes.nvpmodel_conf import ConfMode, is_no_cap, parse_conf
from farm.drivers.power_modes.nvpmodel_refusals import CONF
from farm.errors import CommandTimeoutError
from tests.servers.memory_board import NO_SUDO, MemoryBoard, Told

RECORDINGS = Path(__file__).parents[2] / "recordings"
TX2 = (RECORDINGS / "jetson-tx2" / "nvpmodel" / "conf.txt").read_text()
TOP = {"CPU": 2035200, "GPU": 1300500000, "EMC": 1866000000}


@dataclass
class FakeJetson(MemoryBoard):
    """`state` is what nvpmodel stored; faults are the fields named `has_` and `is_`."""

    conf: str = TX2
    mode_id: int | None = 0
    is_locked: bool = False
    has_root: bool = True
    has_own_store: bool = False
    asks_reboot: bool = False
    refuses_with: str = ""
    ignores_lock: bool = False
    hangs_on_set: bool = False
    stuck_core: bool = False
    restores_cores: bool = False
    stuck_gpu_cap: int | None = None
    has_stale_mask: bool = False
    ignores_answer: bool = False
    has_tools: bool = True
    reboots: int = 0
    conf_readable: bool = True
    files: dict[str, str] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)
    stdin: bytes = b""

    def answer(self, argv: Sequence[str], stdin: bytes, *, needs_root: bool) -> Told:
        self.log.append(" ".join(argv))
        if needs_root and not self.has_root:
            return Told(1, stderr=NO_SUDO)
        if not self.has_tools:
            return Told(127, stderr=b"nvpmodel: not found")
        self.stdin = stdin
        tools: dict[str, Callable[[Sequence[str]], str]] = {
            "nvpmodel": self._nvpmodel,
            "jetson_clocks": self._jetson_clocks,
            "reboot": self._reboot,
        }
        return Told(stdout=tools[argv[0]](argv[1:]).encode())

    async def read_text(self, path: str) -> str | None:
        if path == CONF:
            return self.conf if self.conf_readable else None
        if path == ONLINE:
            return ",".join(str(core) for core in self._online()) + "\n"
        return self.files.get(path)

    @property
    def sets(self) -> list[str]:
        return [line for line in self.log if line.startswith("nvpmodel -m")]

    def _mode(self) -> ConfMode | None:
        modes = parse_conf(self.conf).modes
        return next((mode for mode in modes if mode.id == self.mode_id), None)

    def _online(self) -> list[int]:
        mode = self._mode()
        cores = {0} if not self.stuck_core else {0, 1}
        for (_, arg), value in mode.settings.items() if mode else ():
            if arg.startswith("CORE_") and value == "1":
                cores.add(int(arg[5:]))
        return sorted(cores)

    def _nvpmodel(self, argv: Sequence[str]) -> str:
        if argv[0] == "-m":
            return self._set(int(argv[1]))
        if argv[0] == "-p":
            return self._printed()
        mode = self._mode()
        if mode is None:
            return "NVPM ERROR: could not get the mode\n"
        lines = [f"NVPM WARN: fan mode is not set!\nNV Power Mode: {mode.name}", str(mode.id)]
        if "--verbose" in argv:
            lines += [self._value(*key, value) for key, value in mode.settings.items()]
            if self.has_stale_mask:
                lines.append(self._line("TPC_POWER_GATING", "TPC_PG_MASK", "0", "240"))
        return "\n".join(lines) + "\n"

    def _value(self, param: str, arg: str, conf: str) -> str:
        real = conf
        if arg == "MAX_FREQ" and is_no_cap(conf):
            real = str(TOP[param.partition("_")[0]])
        elif arg == "MAX_FREQ" and param == "GPU":
            real = str(self.stuck_gpu_cap or int(int(conf) * 1.013))  # snapped
        elif arg.startswith("GPU_PWR"):
            real = "auto"
        return self._line(param, arg, real, "2147483647" if conf == "-1" else conf)

    def _line(self, param: str, arg: str, real: str, conf: str) -> str:
        return f"NVPM VERB: PARAM {param}: ARG {arg}: PATH /x: REAL_VAL: {real} CONF_VAL: {conf}"

    def _set(self, mode_id: int) -> str:
        if self.hangs_on_set:
            raise CommandTimeoutError("run", "no end")
        if mode_id not in [mode.id for mode in parse_conf(self.conf).modes]:
            return f"NVPM ERROR: request for bad power mode {mode_id}\n"
        if self.asks_reboot:
            if self.stdin != b"YES\n" or self.ignores_answer:
                return (RECORDINGS / "jetson-agx-thor/nvpmodel/set_no_input.txt").read_text()
            self.mode_id = mode_id
            self._reboot([])
            return (RECORDINGS / "jetson-agx-orin/nvpmodel/set_accepted.txt").read_text()
        if self.refuses_with:
            return self.refuses_with
        self.mode_id, self.stuck_core = mode_id, self.stuck_core and not self.restores_cores
        return ""

    def _reboot(self, argv: Sequence[str]) -> str:
        self.reboots, self.has_stale_mask, self.asks_reboot = self.reboots + 1, False, False
        return ""

    def _printed(self) -> str:
        conf = parse_conf(self.conf)
        lines = [f"NVPM VERB: PM_CONFIG: DEFAULT=X({conf.default_id})"]
        for mode in conf.modes:
            lines.append(f"NVPM VERB: POWER_MODEL: ID={mode.id} NAME={mode.name}")
            for (param, arg), value in mode.settings.items():
                lines.append(f"NVPM VERB: {param} {arg} {value.replace('-1', '2147483647')}")
        return "\n".join(lines)

    def _jetson_clocks(self, argv: Sequence[str]) -> str:
        if not argv:
            self.is_locked = self.is_locked or not self.ignores_lock
        elif argv[0] == "--show":
            return self._show()
        elif argv[0] == "--store":
            self.files[argv[1]] = "locked" if self.is_locked else "free"
        elif argv[0] == "--restore" and len(argv) > 1:
            self.is_locked = self.files[argv[1]] == "locked"
            self.stuck_core = self.stuck_core or self.restores_cores
        elif self.has_own_store:
            self.is_locked = False
        return ""

    def _show(self) -> str:
        low = 2035200 if self.is_locked else 345600
        gpu = 1300500000 if self.is_locked else 114750000
        cpus = [f"cpu{n}: Online=1 MinFreq={low} MaxFreq=2035200" for n in self._online()]
        return "\n".join([*cpus, f"GPU MinFreq={gpu} MaxFreq=1300500000", ""])
