"""Jetson Nano, TX2, TX2 NX, AGX Xavier and Xavier NX, on L4T R32.

Names, paths and release lines are as seen on boards. The frequency tables are those of the R32
kernels as far as captures show them; values between are assumed.
"""

from collections.abc import Mapping
from typing import Final

from farm.simulation.board_commands.board_files import BoardFacts
from farm.simulation.simulated_jetson import (
    SimulatedJetson,
    clusters,
    megahertz,
    release_line,
)

_A57, _DENVER, _NANO, _CARMEL = ("C1", "c7"), ("C1", "c6", "c7"), ("WFI", "c7"), ("C1", "c6")
_EMC_CAP = "/sys/kernel/nvpmodel_emc_cap/emc_iso_cap"
_BPMP_LOCK = "/sys/kernel/debug/bpmp/debug/clk/emc/mrq_rate_locked"
_FAN = ("/sys/devices/pwm-fan/target_pwm", "/sys/devices/pwm-fan/temp_control")
_R32_6_1 = release_line("R32 6.1", 27863751, "t186ref", "Mon Jul 26 19:36:31 UTC 2021")


def _clocks(gpu: str) -> str:
    return f"/sys/devices/{gpu}/devfreq/{gpu}"


_TX2: Final = SimulatedJetson(
    facts=BoardFacts(
        kind="tx2",
        l4t=32,
        soc="tegra186",
        machine="quill",
        gpu="GPU",
        gpu_clocks=_clocks("17000000.gp10b"),
        railgate="/sys/devices/17000000.gp10b/railgate_enable",
        idle_states=(_A57, _DENVER, _DENVER, _A57, _A57, _A57),
        emc_min_hz=40_800_000,
        emc_max_hz=1_866_000_000,
        emc_lock=_BPMP_LOCK,
        emc_cap=_EMC_CAP,
        fan=_FAN,
    ),
    compatible=("nvidia,p2597-0000+p3310-1000", "nvidia,quill", "nvidia,tegra186"),
    release=_R32_6_1,
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
    gpu_device="/sys/devices/17000000.gp10b",
)
_TX2_NX: Final = SimulatedJetson(
    facts=_TX2.facts._replace(kind="tx2nx", machine="lanai-3636", emc_max_hz=1_600_000_000),
    compatible=("nvidia,p3509-0000+p3636-0001", "nvidia,p3636-0001", "nvidia,tegra186"),
    release=_R32_6_1,
    policies=_TX2.policies,
    cpu_khz=_TX2.cpu_khz,
    gpu_hz=_TX2.gpu_hz,
    gpu_device=_TX2.gpu_device,
)
_NANO_BOARD: Final = SimulatedJetson(
    facts=BoardFacts(
        kind="nano",
        l4t=32,
        soc="tegra210",
        machine="NVIDIA Jetson Nano Developer Kit",
        gpu="GPU",
        gpu_clocks=_clocks("57000000.gpu"),
        railgate="/sys/devices/57000000.gpu/railgate_enable",
        idle_states=(_NANO,) * 4,
        emc_min_hz=204_000_000,
        emc_max_hz=1_600_000_000,
        emc_lock="/sys/kernel/debug/clk/override.emc/clk_state",
        emc_cap=_EMC_CAP,
        fan=_FAN,
    ),
    compatible=("nvidia,p3449-0000-b00+p3448-0000-b00", "nvidia,jetson-nano", "nvidia,tegra210"),
    release=release_line("R32 7.3", 31982016, "t210ref", "Tue Nov 22 17:30:08 UTC 2022"),
    policies=clusters(4),
    cpu_khz=(
        *(102_000, 204_000, 307_200, 403_200, 518_400, 614_400, 710_400),
        *(825_600, 921_600, 1_036_800, 1_132_800, 1_224_000, 1_326_000, 1_428_000),
    ),
    gpu_hz=tuple(76_800_000 * step for step in range(1, 13)),
    gpu_device="/sys/devices/57000000.gpu",
)
_AGX_XAVIER: Final = SimulatedJetson(
    facts=BoardFacts(
        kind="agx-xavier",
        l4t=32,
        soc="tegra194",
        machine="Jetson-AGX",
        gpu="GPU",
        gpu_clocks=_clocks("17000000.gv11b"),
        railgate="/sys/devices/17000000.gv11b/railgate_enable",
        idle_states=(_CARMEL,) * 8,
        emc_min_hz=204_000_000,
        emc_max_hz=2_133_000_000,
        emc_lock=_BPMP_LOCK,
        emc_cap=_EMC_CAP,
        fan=_FAN,
        question="golden",
        fan_mode="quiet",
    ),
    compatible=("nvidia,p2972-0000", "nvidia,p2822-0000+p2888-0001", "nvidia,tegra194"),
    release=_R32_6_1,
    policies=clusters(2, 2, 2, 2),
    cpu_khz=tuple(range(115_200, 2_265_601, 76_800)),
    gpu_hz=megahertz(
        *(114.75, 216.75, 318.75, 420.75, 522.75, 624.75, 675.75, 828.75, 905.25),
        *(1032.75, 1198.5, 1236.75, 1338.75, 1377),
    ),
    gpu_device="/sys/devices/17000000.gv11b",
)
_XAVIER_NX: Final = SimulatedJetson(
    facts=_AGX_XAVIER.facts._replace(
        kind="xavier-nx",
        machine="NVIDIA Jetson Xavier NX Developer Kit",  # assumed: no capture shows it
        idle_states=(_CARMEL,) * 6,
        emc_max_hz=1_866_000_000,
    ),
    compatible=("nvidia,p3509-0000+p3668-0000", "nvidia,p3668-0000", "nvidia,tegra194"),
    release=_R32_6_1,
    policies=clusters(2, 2, 2),
    cpu_khz=(*range(115_200, 1_881_601, 76_800), 1_907_200),
    gpu_hz=megahertz(
        *(114.75, 204, 306, 408, 510, 599.25, 701.25, 752.25, 803.25, 854.25),
        *(905.25, 956.25, 1007.25, 1058.25, 1109.25),
    ),
    gpu_device="/sys/devices/17000000.gv11b",
)

JETSONS_R32: Final[Mapping[str, SimulatedJetson]] = {
    jetson.facts.kind: jetson for jetson in (_TX2, _TX2_NX, _NANO_BOARD, _AGX_XAVIER, _XAVIER_NX)
}
