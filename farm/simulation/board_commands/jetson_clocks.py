"""``jetson_clocks``: lock the clocks to the present power mode's top, and back.

    jetson_clocks [--show | --store [FILE] | --restore [FILE] | --fan]

Needs root, as on the boards. A lock does not survive a reboot.
"""

import os

from farm.simulation.board_commands.board_files import BoardFacts, BoardFiles, is_root, say
from farm.simulation.board_commands.clocks_show import R35, R38, show

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
        return show(files, facts)
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


def _lock(files: BoardFiles, facts: BoardFacts, *, has_fan: bool) -> int:
    if files.has_quirk("lock_without_effect"):
        return 0
    count = len(facts.idle_states)
    # The old script locked offline cores too; newer captures show them as they were.
    for core in range(count) if facts.l4t < R35 else files.online_cores(count):
        folder = _cpu(core) + "/cpufreq"
        files.write(folder + "/scaling_min_freq", files.read(folder + "/scaling_max_freq"))
    for core, names in enumerate(facts.idle_states):
        for number in range(len(names)):
            files.write(f"{_cpu(core)}/cpuidle/state{number}/disable", "1")
    files.write(facts.gpu_clocks + "/min_freq", files.read(facts.gpu_clocks + "/max_freq"))
    if facts.railgate:
        files.write(facts.railgate, "0")
    files.write(facts.emc_lock, "1")
    speed, control = facts.fan
    if has_fan:
        files.write(speed, "255")
        files.write(control, "0")
    if facts.l4t == R38:  # Thor's GPU driver talks, and the script does
        say("Enabled persistence mode for GPU 00000000:01:00.0.")
        say("All done.")
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
    paths += [facts.gpu_clocks + "/min_freq", *([facts.railgate] if facts.railgate else [])]
    return [*paths, facts.emc_lock, *facts.fan]


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
