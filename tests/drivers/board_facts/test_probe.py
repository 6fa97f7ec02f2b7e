from collections.abc import Mapping, Sequence

from farm.drivers.board_facts.probe import probe
from farm.errors import CommandTimeoutError
from tests.recording_cases import RECORDINGS
from tests.servers.memory_board import MemoryBoard, Told


class Commands(MemoryBoard):
    """Files and answers by name; everything else is not there."""

    def __init__(self, files: Mapping[str, str], answers: Mapping[str, str]) -> None:
        self.files, self.answers = dict(files), answers

    def answer(self, argv: Sequence[str], stdin: bytes, *, needs_root: bool) -> Told:
        assert not needs_root
        if argv[0] == "lscpu" and "lscpu" not in self.answers:
            raise CommandTimeoutError("lscpu", "no end")
        text = self.answers.get(argv[0])
        status = 127 if text is None else 0
        return Told(status, (text or "").encode())


def recording(path: str) -> str:
    return (RECORDINGS / path).read_text("utf-8", "replace")


async def test_a_jetson_tells_its_module_release_cores_and_memory() -> None:
    facts = await probe(
        Commands(
            {
                "/sys/firmware/devicetree/base/model": "NVIDIA Jetson TX2\0",
                "/sys/firmware/devicetree/base/compatible": "nvidia,p2597-0000+p3310-1000\0"
                "nvidia,tegra186\0",
                "/etc/nv_tegra_release": recording("jetson-tx2/nv_tegra_release/r32.6.1.txt"),
                "/etc/os-release": 'NAME="Ubuntu"\nPRETTY_NAME="Ubuntu 18.04.6 LTS"\n',
                "/proc/cpuinfo": recording("jetson-tx2/cpuinfo/two_kinds_cut.txt"),
                "/proc/meminfo": "MemTotal: 8048612 kB\nMemAvailable: 7000000 kB\n"
                "SwapTotal: 4096000 kB\nSwapFree: 2048000 kB\n",
                "/proc/loadavg": "0.52 0.58 0.59 1/389 12345\n",
                "/proc/uptime": "350735.47 234388.90\n",
                "/sys/devices/system/cpu/online": "0,3-5\n",
            },
            {"date": "86400\n"},
        )
    )
    assert facts.model == "NVIDIA Jetson TX2"
    assert facts.modules == ("p3310-1000",)
    assert (facts.chip, facts.l4t, facts.l4t_source) == ("tegra186", "R32.6.1", "nv_tegra_release")
    assert facts.os == "Ubuntu 18.04.6 LTS"
    assert "Denver 2" in {core.name for core in facts.cores}
    assert (facts.memory_total_mb, facts.swap_used_mb) == (7859, 2000)
    assert (facts.load_1m, facts.uptime_s) == (0.52, 350735.47)
    assert facts.cores_online == "0,3-5"
    assert facts.clock is not None
    assert facts.clock.year == 1970
    assert facts.clock_error_s is not None
    assert facts.clock_error_s > 1e9


async def test_without_files_all_is_unknown_and_nothing_hangs() -> None:
    facts = await probe(Commands({}, {}))
    assert facts.model == ""
    assert facts.l4t == ""
    assert facts.cores == ()
    assert facts.clock is None
    assert facts.memory_total_mb is None


async def test_yocto_tells_its_release_by_its_package_and_a_pc_its_cores_by_lscpu() -> None:
    answers = {
        "dpkg-query": "nvidia-l4t-core\t36.4.4-20250616085344\n",
        "lscpu": "Architecture: x86_64\nCPU(s): 8\nModel name: A fast one\n"
        "Thread(s) per core: 2\nCore(s) per socket: 4\nSocket(s): 1\n",
        "date": "99999999999999999999",
    }
    facts = await probe(Commands({}, answers))
    assert (facts.l4t, facts.l4t_source) == ("R36.4.4", "dpkg")
    assert [(core.name, core.count) for core in facts.cores] == [("A fast one", 8)]
    assert facts.clock is None
