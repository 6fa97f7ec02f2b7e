"""``jetson_clocks --show``, in the form of each release. From R35 on in text order."""

from farm.simulation.board_commands.board_files import (
    BoardFacts,
    BoardFiles,
    number_ranges,
    say,
)
from farm.simulation.board_commands.nvpmodel_conf import (
    ModeTable,
    file_of,
    load_mode_table,
    stored_mode_id,
)

R35, R36, R38, R39 = 35, 36, 38, 39

_ENGINES = ("DLA0_CORE", "DLA0_FALCON", "DLA1_CORE", "DLA1_FALCON", "PVA0_VPS", "PVA0_AXI")


def show(files: BoardFiles, facts: BoardFacts) -> int:
    """Print everything; the tool's exit status. Raises OSError, ValueError."""
    say(f"SOC family:{facts.soc}  Machine:{facts.machine}")
    _show_cpus(files, facts)
    _show_gpu(files, facts)
    _show_emc(files, facts)
    table = load_mode_table(files)
    if facts.l4t >= R35:
        _show_engines(files, facts, table)
    _show_fan(files, facts)
    mode = table.mode(stored_mode_id(files, table))
    say(f"NV Power Mode: {mode.name if mode else ''}")
    return 0


def _show_cpus(files: BoardFiles, facts: BoardFacts) -> None:
    count = len(facts.idle_states)
    online = files.online_cores(count)
    listed = f"Online CPUs: {number_ranges(online)}"
    if facts.l4t >= R39:
        offline = [core for core in range(count) if core not in online]
        listed += f", Offline CPUs: {number_ranges(offline)}"
    say(listed)
    if facts.l4t < R35:
        say("CPU Cluster Switching: Disabled")
    is_busy = files.live_state().busy_cores > 0.5 * len(online)
    cores = range(count) if facts.l4t < R35 else sorted(range(count), key=str)
    for core in cores:
        say(_cpu_line(files, facts, core, is_online=core in online, is_busy=is_busy))


def _cpu_line(
    files: BoardFiles, facts: BoardFacts, core: int, *, is_online: bool, is_busy: bool
) -> str:
    folder = f"/sys/devices/system/cpu/cpu{core}"
    low = files.read(folder + "/cpufreq/scaling_min_freq")
    high = files.read(folder + "/cpufreq/scaling_max_freq")
    states = " ".join(
        f"{name}={1 - int(files.read(f'{folder}/cpuidle/state{number}/disable'))}"
        for number, name in enumerate(facts.idle_states[core])
    )
    name = f"cpu{core}:"
    if facts.l4t in {R36, R39}:  # padded there, and not on R38
        name = name.ljust(6)
    told = "" if facts.l4t >= R39 else f"Online={int(is_online)} "
    return (
        f"{name} {told}Governor=schedutil MinFreq={low} MaxFreq={high} "
        f"CurrentFreq={high if is_busy else low} IdleStates: {states} "
    )


def _show_gpu(files: BoardFiles, facts: BoardFacts) -> None:
    low, high = (
        files.read(facts.gpu_clocks + "/min_freq"),
        files.read(f"{facts.gpu_clocks}/max_freq"),
    )
    now = high if files.live_state().is_loaded else low
    say(f"{facts.gpu} MinFreq={low} MaxFreq={high} CurrentFreq={now}")
    if facts.l4t == R38:
        top = facts.tops_hz["gpu-nvd-0"]
        say(f"gpu-nvd-0 MinFreq=0 MaxFreq={top} CurrentFreq={top}")
    elif facts.l4t >= R36:
        mask = int(files.read("/sys/devices/platform/gpu.0/tpc_pg_mask"))
        say(f"Active GPU TPCs: {facts.tpcs - mask.bit_count()}")


def _show_emc(files: BoardFiles, facts: BoardFacts) -> None:
    cap = int(files.read(facts.emc_cap)) or facts.emc_max_hz
    override = files.read(facts.emc_lock)
    if facts.l4t >= R39:
        low = cap if override == "1" else facts.emc_min_hz
        say(f"EMC MinFreq={low} MaxFreq={cap} CurrentFreq={cap}")
        return
    say(f"EMC MinFreq={facts.emc_min_hz} MaxFreq={cap} CurrentFreq={cap} FreqOverride={override}")


def _show_engines(files: BoardFiles, facts: BoardFacts, table: ModeTable) -> None:
    """The accelerators' clocks, where the board has them and nvpmodel caps them."""
    if facts.l4t == R38:
        say("PVA0_VPS0: Online=0 MinFreq=0 MaxFreq=1215000000 CurrentFreq=0")
    for name in _ENGINES:
        if name in table.parameters:
            cap = files.read(file_of(files, table.parameters[name], "MAX_FREQ"))
            shown = "PVA0_VPS0" if name == "PVA0_VPS" else name
            label = f"{shown}:".ljust(12 if name.startswith("DLA") else 10)
            say(f"{label} Online=1 MinFreq=0 MaxFreq={cap} CurrentFreq={cap}")


def _show_fan(files: BoardFiles, facts: BoardFacts) -> None:
    speed, control = (files.read(path) for path in facts.fan)
    if facts.l4t < R35:
        say(f"Fan: speed={speed}")
    elif facts.l4t < R36:
        say(f"FAN Dynamic Speed control=active {facts.fan_label}={speed}")
    else:
        say(f"FAN Dynamic Speed Control=nvfancontrol {facts.fan_label}={speed}")
    if facts.l4t >= R39:
        say(f"FAN Dynamic Speed Control=nvfancontrol {facts.fan_label}_enable={control}")
