"""The Orin family on L4T R35, R36 and R39, and Thor on R38.

Names, paths and release lines are as seen on boards, one or two boards a release so that all
forms of the tools' output are there. Frequency tables end at what captures show; the steps
between are assumed.
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

_R35_3 = release_line("R35 3.1", 32827747, "t186ref", "Sun Mar 19 15:19:21 UTC 2023")
_R35_4 = release_line("R35 4.1", 33958178, "t186ref", "Tue Aug  1 19:57:35 UTC 2023")
_R36_REST = """
# KERNEL_VARIANT: oot
TARGET_USERSPACE_LIB_DIR=nvidia
TARGET_USERSPACE_LIB_DIR_PATH=usr/lib/aarch64-linux-gnu/nvidia"""
_R36_4 = release_line("R36 4.3", 38968081, "generic", "Wed Jan  8 01:49:37 UTC 2025") + _R36_REST
_R36_5 = release_line("R36 5.0", 43688277, "generic", "Fri Jan 16 03:50:45 UTC 2026") + _R36_REST
_R38_2 = release_line("R38 2.2", 42205042, "generic", "Thu Sep 25 22:47:11 UTC 2025") + _R36_REST
_R39_2 = release_line("R39 2.0", 45755727, "generic", "Mon Jun  1 09:28:48 PM UTC 2026")
_R39_2 += _R36_REST

# Of AGX Orin in MAXN; those of Orin NX are not known.
_ORIN_TOPS = dict.fromkeys(("DLA0_CORE", "DLA1_CORE"), 1_600_000_000)
_ORIN_TOPS |= dict.fromkeys(("DLA0_FALCON", "DLA1_FALCON"), 844_800_000)
_ORIN_TOPS |= {"PVA0_VPS": 1_152_000_000, "PVA0_AXI": 832_000_000}


def _khz(top: int) -> tuple[int, ...]:
    """CPU frequencies: steps of 76.8 MHz from 729.6, then the top, which may be off the grid."""
    return (*range(729_600, top, 76_800), top)


def _mhz(*tops: float) -> tuple[int, ...]:
    """GPU frequencies: steps of 102 MHz from 306, then the tops."""
    return megahertz(*range(306, round(tops[0]), 102), *tops)


def _fan(number: int) -> tuple[str, str]:
    folder = f"/sys/devices/platform/pwm-fan/hwmon/hwmon{number}"
    return f"{folder}/pwm1", f"{folder}/pwm1_enable"


def _r35(kind: str, machine: str, cores: int, emc_max_hz: int) -> BoardFacts:
    return BoardFacts(
        kind=kind,
        l4t=35,
        soc="tegra234",
        machine=machine,
        gpu="GPU",
        gpu_clocks="/sys/devices/17000000.ga10b/devfreq/17000000.ga10b",
        railgate="/sys/devices/17000000.ga10b/railgate_enable",
        idle_states=(("WFI", "c7"),) * cores,
        emc_min_hz=204_000_000,
        emc_max_hz=emc_max_hz,
        emc_lock="/sys/kernel/debug/bpmp/debug/clk/emc/mrq_rate_locked",
        emc_cap="/sys/kernel/nvpmodel_emc_cap/emc_iso_cap",
        fan=_fan(2),
        fan_label="hwmon2_pwm1",
        tops_hz={"EMC": emc_max_hz, **_ORIN_TOPS},
        tpcs=8,
        question="golden",
        fan_mode="quiet",
    )


def _r36(kind: str, machine: str, cores: int, emc_max_hz: int) -> BoardFacts:
    return _r35(kind, machine, cores, emc_max_hz)._replace(
        l4t=36,
        gpu_clocks="/sys/devices/platform/17000000.gpu/devfreq_dev",
        railgate="/sys/devices/platform/17000000.gpu/railgate_enable",
        emc_cap="/sys/kernel/nvpmodel_clk_cap/emc",
        fan=_fan(0),
        fan_label="hwmon0_pwm1",
        fan_mode="",
    )


_OLD_GPU, _NEW_GPU = "/sys/devices/17000000.ga10b", "/sys/devices/platform/17000000.gpu"
_ENGINEERING = "NVIDIA Jetson {} Engineering Reference Developer Kit{}"


def _module(carrier: str, module: str) -> tuple[str, ...]:
    return f"nvidia,{carrier}+{module}", f"nvidia,{module}", "nvidia,tegra234"


_BOARDS = (
    SimulatedJetson(
        facts=_r35("orin-nano-4gb", "NVIDIA Orin Nano Developer Kit", 6, 2_133_000_000),
        compatible=_module("p3768-0000", "p3767-0004"),
        release=_R35_4,
        policies=clusters(4, 2),
        cpu_khz=_khz(1_510_400),
        gpu_hz=_mhz(624.75),
        gpu_device=_OLD_GPU,
    ),
    SimulatedJetson(
        facts=_r36("orin-nano-8gb", "NVIDIA Jetson Orin Nano Developer Kit", 6, 2_133_000_000),
        compatible=_module("p3768-0000", "p3767-0003"),
        release=_R36_4,
        policies=clusters(4, 2),
        cpu_khz=_khz(1_510_400),
        gpu_hz=_mhz(624.75),
        gpu_device=_NEW_GPU,
    ),
    SimulatedJetson(
        facts=_r36(
            "orin-nano-super", _ENGINEERING.format("Orin Nano", " Super"), 6, 3_199_000_000
        ),
        compatible=_module("p3768-0000", "p3767-0005-super"),
        release=_R36_4,
        policies=clusters(4, 2),
        cpu_khz=_khz(1_728_000),
        gpu_hz=_mhz(1020),
        gpu_device=_NEW_GPU,
    ),
    SimulatedJetson(  # the name on R35 is assumed
        facts=_r35("orin-nx-16gb", "NVIDIA Orin NX Developer Kit", 8, 3_199_000_000),
        compatible=_module("p3768-0000", "p3767-0000"),
        release=_R35_4,
        policies=clusters(4, 4),
        cpu_khz=_khz(1_984_000),
        gpu_hz=_mhz(918),
        gpu_device=_OLD_GPU,
    ),
    SimulatedJetson(  # the name with super is assumed
        facts=_r36("orin-nx-super", _ENGINEERING.format("Orin NX", " Super"), 8, 3_199_000_000),
        compatible=_module("p3768-0000", "p3767-0000-super"),
        release=_R36_5,
        policies=clusters(4, 4),
        cpu_khz=_khz(1_984_000),
        gpu_hz=_mhz(1173),
        gpu_device=_NEW_GPU,
    ),
    SimulatedJetson(
        facts=_r35("agx-orin-32gb", "Jetson AGX Orin", 8, 3_199_000_000),
        compatible=_module("p3737-0000", "p3701-0004"),
        release=_R35_3,
        policies=clusters(4, 4),
        cpu_khz=_khz(2_201_600),
        gpu_hz=_mhz(918, 930.75),
        gpu_device=_OLD_GPU,
    ),
    SimulatedJetson(
        facts=_r36(
            "agx-orin-64gb", "NVIDIA Jetson AGX Orin Developer Kit", 12, 3_199_000_000
        )._replace(l4t=39, fan=_fan(2), fan_label="hwmon2_pwm1"),
        compatible=_module("p3737-0000", "p3701-0000"),
        release=_R39_2,
        policies=clusters(4, 4, 4),
        cpu_khz=_khz(2_201_600),
        gpu_hz=_mhz(1300.5),
        gpu_device=_NEW_GPU,
    ),
    SimulatedJetson(
        facts=_r36("thor", "NVIDIA Jetson AGX Thor Developer Kit", 14, 4_266_000_000)._replace(
            l4t=38,
            soc="tegra264",
            gpu="gpu-gpc-0",
            gpu_clocks="/sys/class/devfreq/gpu-gpc-0",
            railgate="",
            idle_states=(("WFI", "cc7"),) * 14,
            emc_min_hz=665_600_000,
            fan=_fan(1),
            fan_label="hwmon1_pwm1",
            tops_hz={"EMC": 4_266_000_000, "gpu-nvd-0": 1_692_000_000},
            tpcs=0,
            question="plain",
        ),
        compatible=("nvidia,p4071-0000+p3834-0008", "nvidia,p3834-0008", "nvidia,tegra264"),
        release=_R38_2,
        policies=clusters(14),
        cpu_khz=(*range(972_000, 2_592_001, 54_000), 2_601_000),
        gpu_hz=megahertz(*range(315, 1306, 90), 1386, 1440, 1530, 1575),
    ),
)

JETSONS_ORIN_AND_THOR: Final[Mapping[str, SimulatedJetson]] = {
    jetson.facts.kind: jetson for jetson in _BOARDS
}
