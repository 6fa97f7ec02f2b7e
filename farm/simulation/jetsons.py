"""The Jetsons that can be simulated, and the kernel files that their tools use."""

from collections.abc import Mapping
from typing import Final

from farm.simulation.board_commands.nvpmodel_conf import ModeTable, top_hz
from farm.simulation.jetsons_orin import JETSONS_ORIN_AND_THOR
from farm.simulation.jetsons_r32 import JETSONS_R32
from farm.simulation.simulated_jetson import SimulatedJetson

JETSONS: Final[Mapping[str, SimulatedJetson]] = {**JETSONS_R32, **JETSONS_ORIN_AND_THOR}
"""By the name of their conf."""

_FIRST_NEW_KERNEL = 36
_CPU = "/sys/devices/system/cpu/"


def kernel_files(jetson: SimulatedJetson) -> dict[str, str]:
    """The files below /sys that nvpmodel and jetson_clocks read and write, as after a boot."""
    facts = jetson.facts
    files = {facts.emc_cap: "0", facts.emc_lock: "0", facts.fan[0]: "0", facts.fan[1]: "1"}
    if jetson.gpu_device:
        files[f"{jetson.gpu_device}/power/control"] = "auto"
    if facts.railgate:
        files[facts.railgate] = "1"
    names = ("available_frequencies", "min_freq", "max_freq")
    files |= _clock_files(facts.gpu_clocks + "/", names, jetson.gpu_hz)
    for cores in jetson.policies:
        policy = f"{_CPU}cpufreq/policy{cores[0]}/"
        names = ("scaling_available_frequencies", "scaling_min_freq", "scaling_max_freq")
        files |= _clock_files(policy, names, jetson.cpu_khz)
        files[policy + "scaling_governor"] = "schedutil"
    for core, states in enumerate(facts.idle_states):
        files[f"{_CPU}cpu{core}/online"] = "1"
        for state, name in enumerate(states):
            folder = f"{_CPU}cpu{core}/cpuidle/state{state}/"
            files[folder + "name"], files[folder + "disable"] = name, "0"
    return files


def conf_files(jetson: SimulatedJetson, table: ModeTable) -> dict[str, str]:
    """The other files that the conf names, as the kernel has them before any mode is set.

    Masks and limits are 0, clocks at their top. Of two kernels' files only the release's own.
    """
    is_new = jetson.facts.l4t >= _FIRST_NEW_KERNEL
    files = {}
    for parameter in table.parameters.values():
        for argument, path in parameter.paths.items():
            if argument.endswith("_KNEXT"):
                continue
            own = parameter.paths.get(argument + "_KNEXT", path) if is_new else path
            if parameter.kind == "CLOCK" and "FREQ_TABLE" not in parameter.paths:
                files[own] = str(top_hz(jetson.facts, table, parameter.name, argument))
            elif parameter.kind != "CLOCK" and not argument.startswith(("CORE_", "GPU_PWR")):
                files[own] = "0"
    return files


def kernel_links(jetson: SimulatedJetson) -> dict[str, str]:
    """Links below /sys: a path to what it points to, relative to the link's own folder."""
    links = {
        f"{_CPU}cpu{core}/cpufreq": f"../cpufreq/policy{cores[0]}"
        for cores in jetson.policies
        for core in cores
    }
    if jetson.gpu_device:
        folder, _, device = jetson.gpu_device.rpartition("/")
        links[f"{folder}/{jetson.gpu_link}"] = device
    return links


def _clock_files(
    folder: str, names: tuple[str, str, str], table: tuple[int, ...]
) -> dict[str, str]:
    values = (" ".join(map(str, table)), str(min(table)), str(max(table)))
    return {folder + name: value for name, value in zip(names, values, strict=True)}
