"""``jetson_clocks`` of L4T R32: lock the clocks to the present power mode's top, and back.

    jetson_clocks [--show | --store [FILE] | --restore [FILE] | --fan]

Needs root, as on the boards. A lock does not survive a reboot.
"""

import os

from farm.simulation.board_commands.board_files import (
    BoardFacts,
    BoardFiles,
    is_root,
    number_ranges,
    say,
)
from farm.simulation.board_commands.nvpmodel_conf import load_mode_table, stored_mode_id

_FAN = "/sys/devices/pwm-fan/target_pwm"
_FAN_CONTROL = "/sys/devices/pwm-fan/temp_control"
_EMC_CAP = "/sys/kernel/nvpmodel_emc_cap/emc_iso_cap"
_DEFAULT_STORE = "l4t_dfs.conf"


def main(argv: list[str]) -> int:
    """Run the command; its exit status."""
    if not is_root():
        say("Error: Run this script(/usr/bin/jetson_clocks) as a root user")
        return 1
    files = BoardFiles.here()
    facts = files.facts()
    option = argv[0] if argv else ""
    if option == "--show":
        return _show(files, facts)
    if option == "--store":
        return _store(files, facts, _store_file(files, argv))
    if option == "--restore":
        return _restore(files, _store_file(files, argv))
    if option in {"", "--fan"}:
        return _lock(files, facts, has_fan=option == "--fan")
    say(f"Unknown option: {option}")
    return 1


def _cpu(core: int) -> str:
    return f"/sys/devices/system/cpu/cpu{core}"


def _gpu(facts: BoardFacts) -> str:
    return f"/sys/devices/{facts.gpu}/devfreq/{facts.gpu}"


def _show(files: BoardFiles, facts: BoardFacts) -> int:
    say(f"SOC family:{facts.soc}  Machine:{facts.machine}")
    online = files.online_cores(len(facts.idle_states))
    say(f"Online CPUs: {number_ranges(online)}")
    say("CPU Cluster Switching: Disabled")
    is_busy = files.live_state().busy_cores > 0.5 * len(online)
    for core, names in enumerate(facts.idle_states):
        say(_cpu_line(files, core, names, is_online=core in online, is_busy=is_busy))
    low, high = files.read(_gpu(facts) + "/min_freq"), files.read(_gpu(facts) + "/max_freq")
    now = high if files.live_state().is_loaded else low
    say(f"GPU MinFreq={low} MaxFreq={high} CurrentFreq={now}")
    cap = int(files.read(_EMC_CAP)) or facts.emc_max_hz
    override = files.read(facts.emc_lock)
    say(f"EMC MinFreq={facts.emc_min_hz} MaxFreq={cap} CurrentFreq={cap} FreqOverride={override}")
    say(f"Fan: speed={files.read(_FAN)}")
    table = load_mode_table(files)
    mode = table.mode(stored_mode_id(files, table))
    say(f"NV Power Mode: {mode.name if mode else ''}")
    return 0


def _cpu_line(
    files: BoardFiles, core: int, names: tuple[str, ...], *, is_online: bool, is_busy: bool
) -> str:
    folder = _cpu(core) + "/cpufreq"
    low = files.read(folder + "/scaling_min_freq")
    high = files.read(folder + "/scaling_max_freq")
    states = " ".join(
        f"{name}={1 - int(files.read(f'{_cpu(core)}/cpuidle/state{number}/disable'))}"
        for number, name in enumerate(names)
    )
    return (
        f"cpu{core}: Online={int(is_online)} Governor=schedutil MinFreq={low} MaxFreq={high} "
        f"CurrentFreq={high if is_busy else low} IdleStates: {states} "
    )


def _lock(files: BoardFiles, facts: BoardFacts, *, has_fan: bool) -> int:
    for core in range(len(facts.idle_states)):  # offline ones too, as captures show
        folder = _cpu(core) + "/cpufreq"
        files.write(folder + "/scaling_min_freq", files.read(folder + "/scaling_max_freq"))
        for number in range(len(facts.idle_states[core])):
            files.write(f"{_cpu(core)}/cpuidle/state{number}/disable", "1")
    files.write(_gpu(facts) + "/min_freq", files.read(_gpu(facts) + "/max_freq"))
    files.write(f"/sys/devices/{facts.gpu}/railgate_enable", "0")
    files.write(facts.emc_lock, "1")
    if has_fan:
        files.write(_FAN, "255")
        files.write(_FAN_CONTROL, "0")
    return 0


def _stored_paths(facts: BoardFacts) -> list[str]:
    """What a store file holds, in its order."""
    cores = range(len(facts.idle_states))
    paths = [_cpu(core) + "/online" for core in cores]
    paths += [_cpu(core) + "/cpufreq/scaling_min_freq" for core in cores]
    paths += [
        f"{_cpu(core)}/cpuidle/state{number}/disable"
        for core in cores
        for number in range(len(facts.idle_states[core]))
    ]
    paths += [_gpu(facts) + "/min_freq", f"/sys/devices/{facts.gpu}/railgate_enable"]
    return [*paths, facts.emc_lock, _FAN, _FAN_CONTROL]


def _store_file(files: BoardFiles, argv: list[str]) -> str:
    """The store file's real path: as given, else in the caller's home (root's under sudo)."""
    given = argv[1] if len(argv) > 1 else ""
    if not given:
        home = os.environ.get("HOME") or str(files.path("/root"))
        return os.path.join(home, _DEFAULT_STORE)  # noqa: PTH118 -- a word of output, not a path
    if given.startswith(("/root/", "/var/", "/etc/", "/run/")):
        return str(files.path(given))
    return given


def _store(files: BoardFiles, facts: BoardFacts, file: str) -> int:
    with open(file, "w", encoding="utf-8") as target:  # noqa: PTH123 -- relative to our folder
        target.writelines(f"{path}:{files.read(path)}\n" for path in _stored_paths(facts))
    return 0


def _restore(files: BoardFiles, file: str) -> int:
    try:
        with open(file, encoding="utf-8") as source:  # noqa: PTH123
            lines = source.read().splitlines()
    except OSError:
        say(f"Error: Restore file {file} not found!")
        return 1
    for line in lines:
        path, _, value = line.rpartition(":")
        if path.startswith("/sys/"):
            files.write(path, value)
    files.sum_up_online()
    return 0
