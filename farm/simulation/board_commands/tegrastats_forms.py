"""What the tegrastats of each kind of Jetson prints, and what its sensors share of the physics.

Field names, their order and what only root sees are as in captures (L4T R32 to R39). The
rails' shares are assumed; the sum of what is drawn from the input is what the module takes,
less than the socket meter sees. `chip` is the rail's power monitor (bus-address).
"""

from typing import NamedTuple

from farm.simulation.board_commands.board_files import LiveState

MODULE_SHARE = 0.85
"""Assumed: the adapter and the carrier take the rest of the socket's watts."""


class Rail(NamedTuple):
    """A rail's share of the module's power at rest and while the GPU works; nominal volts."""

    name: str
    idle: float
    loaded: float
    chip: str
    volts: float = 5.0

    def milliwatts(self, state: LiveState) -> int:
        """What the rail carries now."""
        share = self.loaded if state.is_loaded else self.idle
        return round(state.power_w * 1000 * MODULE_SHARE * share)


class Sensor(NamedTuple):
    """A temperature: degrees above the board's, more under load; rounded to `step`.

    A `step` of 0 means that it always reads `above`. `is_gated`: only there under load.
    """

    name: str
    above: float = 0.0
    step: float = 1 / 32
    hot: float = 0.0
    is_gated: bool = False

    def degrees(self, state: LiveState) -> float:
        """What it reads now, Celsius."""
        if not self.step:
            return self.above
        warmth = state.temperature_c + self.above + (self.hot if state.is_loaded else 0.0)
        return round(warmth / self.step) * self.step


class Form(NamedTuple):
    """The parts of a line.

    In `root` and `user` {emc} {emc_mhz} {gpu} {gpu_mhz} are filled in; gpu_mhz is 0 without load
    where `has_gated_gpu`.
    """

    memory: str
    root: str
    user: str
    sensors: tuple[Sensor, ...]
    rails: tuple[Rail, ...]
    has_user_rails: bool = True
    has_gated_gpu: bool = False
    root_memory: str = ""


def _half(name: str, above: float = 0.0, hot: float = 0.0) -> Sensor:
    return Sensor(name, above, 0.5, hot)


def _fixed(name: str, value: float) -> Sensor:
    return Sensor(name, value, 0.0)


_TX2 = Form(
    memory="RAM 1404/7860MB (lfb 236x4MB) SWAP 0/3930MB (cached 0MB)",
    root="EMC_FREQ {emc}%@{emc_mhz} GR3D_FREQ {gpu}%@{gpu_mhz} APE 150 MTS fg 0% bg 0%",
    user="EMC_FREQ 0% GR3D_FREQ 0%",
    sensors=(
        *(_half("PLL"), _half("MCPU"), _fixed("PMIC", 100), _half("Tboard", -4)),
        *(_half("GPU", -1.5, 2.5), _half("BCPU"), Sensor("thermal", step=0.1)),
        _half("Tdiode", -4),
    ),
    rails=(
        Rail("VDD_SYS_GPU", 0.08, 0.45, "0-0040", 19),
        Rail("VDD_SYS_SOC", 0.20, 0.12, "0-0040", 19),
        Rail("VDD_4V0_WIFI", 0.0, 0.0, "0-0040", 4.8),
        Rail("VDD_IN", 1.0, 1.0, "0-0041", 19),
        Rail("VDD_SYS_CPU", 0.13, 0.10, "0-0041", 19),
        Rail("VDD_SYS_DDR", 0.08, 0.16, "0-0041", 19),
    ),
)
_TX2_NX = _TX2._replace(
    memory="RAM 1689/3825MB (lfb 339x4MB) SWAP 0/1913MB (cached 0MB)",
    user="EMC_FREQ 0% GR3D_FREQ {gpu}%",
    sensors=(
        *(_half("PLL"), _half("MCPU"), _fixed("PMIC", 50), _half("GPU", -0.5, 1)),
        *(_half("BCPU"), Sensor("thermal", -0.2, 0.1)),
    ),
    rails=(
        Rail("VDD_IN", 1.0, 1.0, "0-0040"),  # the bus is assumed
        Rail("VDD_CPU_GPU", 0.21, 0.55, "0-0040"),
        Rail("VDD_SOC", 0.20, 0.12, "0-0040"),
    ),
    has_user_rails=False,
)
_NANO = Form(
    memory="RAM 613/3964MB (lfb 634x4MB) SWAP 0/1982MB (cached 0MB)",
    root_memory=" IRAM 0/252kB(lfb 252kB)",
    root="EMC_FREQ {emc}%@{emc_mhz} GR3D_FREQ {gpu}%@{gpu_mhz} APE 25",
    user="EMC_FREQ 0% GR3D_FREQ 0%",
    sensors=(
        *(_half("PLL", -1.5), _half("CPU"), _fixed("PMIC", 100), _half("GPU")),
        *(_half("AO", 5), _half("thermal")),
    ),
    rails=(
        Rail("POM_5V_IN", 1.0, 1.0, "6-0040"),
        Rail("POM_5V_GPU", 0.03, 0.50, "6-0040"),
        Rail("POM_5V_CPU", 0.13, 0.15, "6-0040"),
    ),
)
_XAVIER_ROOT = (
    "EMC_FREQ {emc}%@{emc_mhz} GR3D_FREQ {gpu}%@{gpu_mhz} VIC_FREQ 0%@115 APE 150 MTS fg 0% bg 3%"
)
_AGX_XAVIER = Form(
    memory="RAM 3149/31920MB (lfb 5889x4MB) SWAP 0/15960MB (cached 0MB)",
    root=_XAVIER_ROOT,
    user="EMC_FREQ 0% GR3D_FREQ {gpu}%",
    sensors=(
        *(_half("AO", -2.5), _half("GPU", -2.5, 3), _half("Tdiode"), _fixed("PMIC", 50)),
        *(_half("AUX", -3), _half("CPU"), Sensor("thermal", -1.5, 0.05), _half("Tboard", -2)),
    ),
    rails=(
        Rail("GPU", 0.04, 0.45, "1-0040", 19),  # the bus is assumed
        Rail("CPU", 0.10, 0.10, "1-0040", 19),
        Rail("SOC", 0.25, 0.14, "1-0040", 19),
        Rail("CV", 0.0, 0.0, "1-0041", 19),
        Rail("VDDRQ", 0.06, 0.11, "1-0041", 19),
        Rail("SYS5V", 0.45, 0.15, "1-0041", 5),
    ),
    has_user_rails=False,
)
_INPUT_RAILS = ("VDD_IN", "VDD_CPU_GPU_CV", "VDD_SOC")


def _input_rails(chip: str) -> tuple[Rail, ...]:
    shares = ((1.0, 1.0), (0.12, 0.50), (0.30, 0.22))
    return tuple(
        Rail(name, idle, loaded, chip)
        for name, (idle, loaded) in zip(_INPUT_RAILS, shares, strict=True)
    )


_XAVIER_NX = Form(
    memory="RAM 2387/7774MB (lfb 961x4MB) SWAP 0/3887MB (cached 0MB)",
    root=_XAVIER_ROOT,
    user="EMC_FREQ 0% GR3D_FREQ {gpu}%",
    sensors=(
        *(_half("AO", -2), _half("GPU", -1.5, 2), _fixed("PMIC", 100), _half("AUX", -1.5)),
        *(_half("CPU"), Sensor("thermal", -1, 0.05)),
    ),
    rails=_input_rails("7-0040"),
)
_R35_SENSORS = (
    *(_fixed("CV0", -256), Sensor("CPU"), Sensor("SOC2", -2), Sensor("SOC0", -1)),
    *(_fixed("CV1", -256), Sensor("GPU", -2.5, hot=3), Sensor("tj", 0.5)),
    *(Sensor("SOC1", -1.5), _fixed("CV2", -256)),
)
_ORIN_R35 = Form(  # Orin NX; there is no capture of root there: as on AGX Orin
    memory="RAM 998/15389MB (lfb 3313x4MB) SWAP 0/7694MB (cached 0MB)",
    root="EMC_FREQ {emc}%@{emc_mhz} GR3D_FREQ {gpu}%@{gpu_mhz} GR3D2_FREQ {gpu}%@{gpu_mhz} "
    "NVJPG1 729 VIC_FREQ 729 APE 233",
    user="EMC_FREQ 0% GR3D_FREQ 0% GR3D2_FREQ 0%@0",
    sensors=_R35_SENSORS,
    rails=_input_rails("1-0040"),
    has_user_rails=False,
)
_AGX_RAILS = (
    Rail("VDD_GPU_SOC", 0.35, 0.60, "1-0040", 19),
    Rail("VDD_CPU_CV", 0.08, 0.12, "1-0040", 19),
    Rail("VIN_SYS_5V0", 0.45, 0.20, "1-0040"),
)
_AGX_ORIN_R35 = _ORIN_R35._replace(
    memory="RAM 1205/30623MB (lfb 6429x4MB) SWAP 0/15311MB (cached 0MB)",
    sensors=(
        *_R35_SENSORS[:2],
        Sensor("Tdiode", -11),
        *(sensor for sensor in _R35_SENSORS[2:] if sensor.name != "tj"),
    ),
    rails=(
        *_AGX_RAILS,
        Rail("NC", 0.0, 0.0, "1-0041"),
        Rail("VDDQ_VDD2_1V8AO", 0.06, 0.08, "1-0041"),  # drawn from VIN_SYS_5V0
        Rail("NC", 0.0, 0.0, "1-0041"),
    ),
    has_user_rails=True,
)
_R36_SENSORS = (
    *(Sensor("cpu"), Sensor("soc2", -1), Sensor("soc0"), Sensor("gpu", -1, hot=2)),
    *(Sensor("tj", 0.25), Sensor("soc1", 0.25)),
)
_ORIN_NANO_R36 = Form(
    memory="RAM 3452/7620MB (lfb 25x4MB) SWAP 1518/16384MB (cached 174MB)",
    root="EMC_FREQ {emc}%@{emc_mhz} GR3D_FREQ {gpu}%@[{gpu_mhz}] NVDEC off NVJPG off "
    "NVJPG1 off VIC off OFA off APE 200",
    user="GR3D_FREQ 0%",
    sensors=_R36_SENSORS,
    rails=_input_rails("1-0040"),
)
_AGX_ORIN_R39 = Form(
    memory="RAM 4714/62878MB (lfb 7x4MB) SWAP 0/2048MB (cached 0MB)",
    root="EMC_FREQ {emc}%@{emc_mhz} GR3D_FREQ {gpu}%@[{gpu_mhz},{gpu_mhz}] NVENC0 off "
    "NVDEC0 off NVJPG0 off NVJPG1 off VIC off OFA off NVDLA0 off NVDLA1 off PVA0_FREQ off APE 174",
    user="GR3D_FREQ 0%",  # no capture: as on R36
    sensors=tuple(s._replace(is_gated=s.name == "gpu") for s in _R36_SENSORS),
    rails=_AGX_RAILS,
    has_gated_gpu=True,
)
_THOR = Form(
    memory="RAM 4208/125773MB (lfb 31x4MB)",
    root="EMC_FREQ {emc}%@{emc_mhz} GR3D_FREQ @[{gpu_mhz},{gpu_mhz},{gpu_mhz}] NVENC0_FREQ @0 "
    "NVENC1_FREQ @0 NVDEC0_FREQ @0 NVDEC1_FREQ @0 NVJPG0_FREQ @0 VIC off OFA_FREQ @0 "
    "PVA0_FREQ off APE 300",
    user="",
    sensors=(
        *(Sensor("cpu"), Sensor("tj", 0.5), Sensor("soc012", -0.5)),
        *(Sensor("gpu", 1, is_gated=True), Sensor("soc345", 0.5)),
    ),
    rails=(
        Rail("VDD_GPU", 0.0, 0.50, "2-0040", 19),  # the buses are assumed
        Rail("VDD_CPU_SOC_MSS", 0.30, 0.20, "2-0040", 19),
        Rail("VIN_SYS_5V0", 0.30, 0.20, "2-0040"),
        Rail("VIN", 1.0, 1.0, "2-0044", 19),
    ),
    has_gated_gpu=True,
)

FORMS = {
    "tx2": _TX2,
    "tx2nx": _TX2_NX,
    "nano": _NANO,
    "agx-xavier": _AGX_XAVIER,
    "xavier-nx": _XAVIER_NX,
    "orin-nano-4gb": _ORIN_R35._replace(
        memory="RAM 998/3424MB (lfb 313x4MB) SWAP 0/1712MB (cached 0MB)",
        sensors=tuple(s for s in _R35_SENSORS if not s.name.startswith("CV")),
    ),
    "orin-nano-8gb": _ORIN_NANO_R36,
    "orin-nano-super": _ORIN_NANO_R36._replace(
        memory="RAM 1488/7620MB (lfb 105x4MB) SWAP 253/12002MB (cached 2MB)",
    ),
    "orin-nx-16gb": _ORIN_R35,
    "orin-nx-super": _ORIN_NANO_R36._replace(
        memory="RAM 2982/15655MB (lfb 5x1MB) SWAP 0/7827MB (cached 0MB)",
        root="EMC_FREQ {emc}%@{emc_mhz} GR3D_FREQ {gpu}%@[{gpu_mhz}] NVENC off NVDEC off "
        "NVJPG off NVJPG1 off VIC off OFA off NVDLA0 off NVDLA1 off PVA0_FREQ off APE 174",
    ),
    "agx-orin-32gb": _AGX_ORIN_R35,
    "agx-orin-64gb": _AGX_ORIN_R39,
    "thor": _THOR,
}
