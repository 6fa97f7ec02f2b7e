"""A /sys of CPUs in memory that answers writes as a kernel does, refusals included."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from farm.drivers.power_modes.cpufreq import CPU
from tests.servers.memory_board import NO_SUDO, MemoryBoard, Told


@dataclass
class FakeCpus(MemoryBoard):
    """`policies` -> their cores. `ignores`: files whose writes have no effect."""

    policies: dict[int, tuple[int, ...]] = field(default_factory=lambda: {0: (0, 1, 2, 3)})
    governors: str = "conservative ondemand userspace powersave performance schedutil"
    governor: str = "ondemand"
    driver: str = "cpufreq-dt"
    low: int = 600000
    high: int = 1500000
    has_root: bool = True
    ignores: tuple[str, ...] = ()
    files: dict[str, str] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        cores = sorted(core for each in self.policies.values() for core in each)
        self.files[f"{CPU}/present"] = f"{cores[0]}-{cores[-1]}\n"
        for core in cores[1:]:
            self.files[f"{CPU}/cpu{core}/online"] = "1\n"
        for number in self.policies:
            folder = f"{CPU}/cpufreq/policy{number}"
            self.files |= {
                f"{folder}/scaling_available_governors": self.governors + " \n",
                f"{folder}/scaling_governor": self.governor + "\n",
                f"{folder}/scaling_driver": self.driver + "\n",
                f"{folder}/cpuinfo_min_freq": f"{self.low}\n",
                f"{folder}/cpuinfo_max_freq": f"{self.high}\n",
                f"{folder}/scaling_min_freq": f"{self.low}\n",
                f"{folder}/scaling_max_freq": f"{self.high}\n",
            }

    def answer(self, argv: Sequence[str], stdin: bytes, *, needs_root: bool) -> Told:
        tool, path = argv
        assert (tool, needs_root) == ("tee", True)
        if not self.has_root:
            return Told(1, stderr=NO_SUDO)
        value = stdin.decode()
        self.log.append(f"{path} {value.strip()}")
        if path.startswith("/run/"):
            self.files[path] = value
            return Told(stdout=stdin)
        if path in self.ignores:
            return Told(stdout=stdin)
        if not self._is_accepted(path, value.strip()):
            said = f"tee: {path}: Invalid argument\n".encode()
            return Told(1, stdin, said)
        self.files[path] = value
        return Told(stdout=stdin)

    async def read_text(self, path: str) -> str | None:
        if path == f"{CPU}/online":
            return ",".join(str(core) for core in self.online()) + "\n"
        folder = path.rpartition("/")[0]
        number = folder.removeprefix(f"{CPU}/cpufreq/policy")
        if number.isdecimal() and not set(self.policies.get(int(number), ())) & set(self.online()):
            return None  # EBUSY, while all its cores are offline
        return self.files.get(path)

    def online(self) -> list[int]:
        cores = [core for each in self.policies.values() for core in each]
        return sorted(c for c in cores if self.files.get(f"{CPU}/cpu{c}/online", "1\n") == "1\n")

    def policy(self, file: str, number: int = 0) -> str:
        return self.files[f"{CPU}/cpufreq/policy{number}/scaling_{file}"].strip()

    def setting(self, number: int = 0) -> tuple[str, str, str]:
        files = ("governor", "min_freq", "max_freq")
        first, second, third = (self.policy(file, number) for file in files)
        return first, second, third

    def _is_accepted(self, path: str, value: str) -> bool:
        folder, _, file = path.rpartition("/")
        if path not in self.files:
            return False
        if file == "scaling_governor":
            return value in self.governors.split()
        if file == "scaling_min_freq":
            return self.low <= int(value) <= int(self.files[f"{folder}/scaling_max_freq"])
        if file == "scaling_max_freq":
            return int(self.files[f"{folder}/scaling_min_freq"]) <= int(value) <= self.high
        return file == "online" and value in "01"
