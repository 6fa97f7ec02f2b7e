"""Facts of the Jetsons that can be simulated, and the kernel files that their tools use.

Names, paths and release lines are as seen on boards with L4T R32. The CPU and GPU frequency
tables are those of the R32 kernels as far as captures show them; values between are assumed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from farm.simulation.board_commands.board_files import BoardFacts


@dataclass(frozen=True, slots=True)
class SimulatedJetson:
    """One Jetson type. `policies` lists the cores that share a clock; CPU in kHz, GPU in Hz."""

    facts: BoardFacts
    compatible: tuple[str, ...]
    release: str
    policies: tuple[tuple[int, ...], ...]
    cpu_khz: tuple[int, ...]
    gpu_hz: tuple[int, ...]
    gpu_link: str

    @property
    def core_count(self) -> int:
        """How many cores there are, online or not."""
        return len(self.facts.idle_states)


_A57, _DENVER, _NANO = ("C1", "c7"), ("C1", "c6", "c7"), ("WFI", "c7")

JETSONS: Final[Mapping[str, SimulatedJetson]] = {
    "tx2": SimulatedJetson(
        facts=BoardFacts(
            soc="tegra186",
            machine="quill",
            gpu="17000000.gp10b",
            idle_states=(_A57, _DENVER, _DENVER, _A57, _A57, _A57),
            emc_min_hz=40_800_000,
            emc_max_hz=1_866_000_000,
            emc_lock="/sys/kernel/debug/bpmp/debug/clk/emc/mrq_rate_locked",
            tegrastats="tx2",
        ),
        compatible=("nvidia,p2597-0000+p3310-1000", "nvidia,quill", "nvidia,tegra186"),
        release=(
            "# R32 (release), REVISION: 6.1, GCID: 27863751, BOARD: t186ref, EABI: aarch64, "
            "DATE: Mon Jul 26 19:36:31 UTC 2021"
        ),
        policies=((0, 3, 4, 5), (1, 2)),
        cpu_khz=(
            *(345_600, 499_200, 652_800, 806_400, 960_000, 1_113_600),
            *(1_267_200, 1_420_800, 1_574_400, 1_728_000, 1_881_600, 2_035_200),
        ),
        gpu_hz=(
            *(114_750_000, 216_750_000, 318_750_000, 420_750_000, 522_750_000, 624_750_000),
            *(726_750_000, 854_250_000, 930_750_000, 1_032_750_000, 1_134_750_000),
            *(1_236_750_000, 1_300_500_000),
        ),
        gpu_link="gpu.0",
    ),
    "nano": SimulatedJetson(
        facts=BoardFacts(
            soc="tegra210",
            machine="NVIDIA Jetson Nano Developer Kit",
            gpu="57000000.gpu",
            idle_states=(_NANO, _NANO, _NANO, _NANO),
            emc_min_hz=204_000_000,
            emc_max_hz=1_600_000_000,
            emc_lock="/sys/kernel/debug/clk/override.emc/clk_state",
            tegrastats="nano",
        ),
        compatible=(
            "nvidia,p3449-0000-b00+p3448-0000-b00",
            "nvidia,jetson-nano",
            "nvidia,tegra210",
        ),
        release=(
            "# R32 (release), REVISION: 7.3, GCID: 31982016, BOARD: t210ref, EABI: aarch64, "
            "DATE: Tue Nov 22 17:30:08 UTC 2022"
        ),
        policies=((0, 1, 2, 3),),
        cpu_khz=(
            *(102_000, 204_000, 307_200, 403_200, 518_400, 614_400, 710_400),
            *(825_600, 921_600, 1_036_800, 1_132_800, 1_224_000, 1_326_000, 1_428_000),
        ),
        gpu_hz=tuple(76_800_000 * step for step in range(1, 13)),
        gpu_link="gpu.0",
    ),
}


def kernel_files(jetson: SimulatedJetson) -> dict[str, str]:
    """The files below /sys that nvpmodel and jetson_clocks read and write, as after a boot."""
    facts = jetson.facts
    files = {
        "/sys/kernel/nvpmodel_emc_cap/emc_iso_cap": "0",
        facts.emc_lock: "0",
        "/sys/devices/pwm-fan/target_pwm": "0",
        "/sys/devices/pwm-fan/temp_control": "1",
        f"/sys/devices/{facts.gpu}/power/control": "auto",
        f"/sys/devices/{facts.gpu}/railgate_enable": "1",
        **_clock_files(
            f"/sys/devices/{facts.gpu}/devfreq/{facts.gpu}/",
            ("available_frequencies", "min_freq", "max_freq"),
            jetson.gpu_hz,
        ),
    }
    for number, _ in enumerate(jetson.policies):
        files |= _clock_files(
            f"/sys/devices/system/cpu/cpufreq/policy{number}/",
            ("scaling_available_frequencies", "scaling_min_freq", "scaling_max_freq"),
            jetson.cpu_khz,
        )
        files[f"/sys/devices/system/cpu/cpufreq/policy{number}/scaling_governor"] = "schedutil"
    for core, states in enumerate(facts.idle_states):
        files[f"/sys/devices/system/cpu/cpu{core}/online"] = "1"
        for state, name in enumerate(states):
            folder = f"/sys/devices/system/cpu/cpu{core}/cpuidle/state{state}/"
            files[folder + "name"], files[folder + "disable"] = name, "0"
    return files


def kernel_links(jetson: SimulatedJetson) -> dict[str, str]:
    """Links below /sys: a path to what it points to, relative to the link's own folder."""
    links = {
        f"/sys/devices/system/cpu/cpu{core}/cpufreq": f"../cpufreq/policy{number}"
        for number, cores in enumerate(jetson.policies)
        for core in cores
    }
    links[f"/sys/devices/{jetson.gpu_link}"] = jetson.facts.gpu
    return links


def _clock_files(
    folder: str, names: tuple[str, str, str], table: tuple[int, ...]
) -> dict[str, str]:
    values = (" ".join(map(str, table)), str(min(table)), str(max(table)))
    return {folder + name: value for name, value in zip(names, values, strict=True)}
