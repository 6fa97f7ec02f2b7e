"""``nvpmodel`` of a simulated Jetson.

    nvpmodel -q [--verbose] | -p --verbose [-f FILE] | -m ID

As on the boards, the exit status says little: without root it prints error lines and ends
with 0. Verbose lines, warnings and the reboot question go to stdout, errors to stderr.
"""

import argparse
import errno
import time

from farm.simulation.board_commands.board_files import (
    BoardFacts,
    BoardFiles,
    complain,
    is_root,
    say,
)
from farm.simulation.board_commands.nvpmodel_conf import (
    CONF_FILE,
    Mode,
    ModeTable,
    Setting,
    apply_mode,
    file_of,
    load_mode_table,
    masks,
    parse_mode_table,
    shown_value,
    stored_mode_id,
)
from farm.simulation.board_commands.nvpmodel_reboot import ask_to_reboot, must_ask

SLOW_QUERY_S = 5.0
"""How long a query hangs while the GPU is full: a limit of 4 s was seen to be too short."""

_FAILED = 255
_THOR_L4T = 38


def main(argv: list[str]) -> int:
    """Run the command; its exit status."""
    files = BoardFiles.here()
    status = _run(files, argv)
    return 0 if files.has_quirk("exit_zero_with_errors") else status


def _run(files: BoardFiles, argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="nvpmodel")
    parser.add_argument("-q", "--query", action="store_true")
    parser.add_argument("-p", "--parse", action="store_true")
    parser.add_argument("-m", "--mode", type=int)
    parser.add_argument("-f", "--file")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args(argv)
    facts = files.facts()
    if options.parse:
        return _print_table(files, facts, options.file) if options.verbose else 0
    table = load_mode_table(files)
    if options.mode is not None:
        return _set_mode(files, facts, table, options.mode)
    if options.query:
        return _query(files, facts, table, is_verbose=options.verbose)
    complain("NVPM ERROR: optMask is 1, no request for power mode")
    return _FAILED


def _query(files: BoardFiles, facts: BoardFacts, table: ModeTable, *, is_verbose: bool) -> int:
    if files.has_quirk("slow_query") and files.live_state().is_loaded:
        time.sleep(SLOW_QUERY_S)
    mode = table.mode(stored_mode_id(files, table))
    if mode is None:
        complain("NVPM ERROR: could not get the current power mode")
        return _FAILED
    if is_verbose:
        say(f"NVPM VERB: Config file: {CONF_FILE}")
        say(f"NVPM VERB: parsing done for {CONF_FILE}")
    if files.has_quirk("fan_warning"):
        say("NVPM WARN: fan mode is not set!")
    elif facts.fan_mode:
        say(f"NV Fan Mode:{facts.fan_mode}")
    say(f"{'NVPM VERB: Current mode: ' if is_verbose else ''}NV Power Mode: {mode.name}")
    say(str(mode.mode_id))
    if is_verbose:
        _print_values(files, facts, table, mode)
    elif not is_root() and "EMC" in table.parameters and facts.l4t != _THOR_L4T:
        _complain(files, table, Setting("EMC", "MAX_FREQ", ""), "opening", errno.EACCES)
    return 0


def _print_values(files: BoardFiles, facts: BoardFacts, table: ModeTable, mode: Mode) -> None:
    for setting in mode.settings:
        if setting.parameter == "EMC" and not is_root():
            _complain(files, table, setting._replace(value=""), "opening", errno.EACCES)
            continue
        path = file_of(files, table.parameters[setting.parameter], setting.argument)
        say(
            f"NVPM VERB: PARAM {setting.parameter}: ARG {setting.argument}: PATH {path}: "
            f"REAL_VAL: {files.read(path)} CONF_VAL: {shown_value(setting.value, facts.l4t)}"
        )


def _set_mode(files: BoardFiles, facts: BoardFacts, table: ModeTable, mode_id: int) -> int:
    mode = table.mode(mode_id)
    if mode is None:
        complain(f"NVPM ERROR: request for bad power mode {mode_id}")
        return _FAILED
    if not is_root():
        _complain(files, table, mode.settings[0], "opening", errno.EACCES)
        return _give_up(0)
    if _is_refused(files, table, mode):
        _complain(files, table, (masks(mode) or mode.settings)[0], "writing", errno.ENODEV)
        return _give_up(_FAILED)
    if must_ask(files, facts, table, mode):
        return ask_to_reboot(files, facts, mode)
    try:
        apply_mode(files, table, mode)
    except OSError as error:  # a root that is read-only
        complain(f"NVPM ERROR: Error opening {files.on_board(error.filename)}: {error.errno}")
        return _give_up(_FAILED)
    return 0


def _is_refused(files: BoardFiles, table: ModeTable, mode: Mode) -> bool:
    """Quirks: no other mode is accepted, or only the way back to the default is not."""
    if mode.mode_id == stored_mode_id(files, table):
        return False
    is_back = mode.mode_id == table.default_id and files.has_quirk("refuse_return")
    return is_back or files.has_quirk("refuse_mode")


def _give_up(status: int) -> int:
    complain("NVPM ERROR: failed to set power mode!")
    complain("NVPM ERROR: optMask is 1, no request for power mode")
    return status


def _print_table(files: BoardFiles, facts: BoardFacts, file: str | None) -> int:
    if file is None or file.startswith("/etc/"):
        table = parse_mode_table(files.read(file or CONF_FILE))
    else:
        with open(file, encoding="utf-8") as source:  # noqa: PTH123 -- relative to our folder
            table = parse_mode_table(source.read())
    default = table.mode(table.default_id)
    say(f"NVPM VERB: PM_CONFIG: DEFAULT={default.name if default else ''}({table.default_id})")
    for parameter in table.parameters.values():
        say(f"NVPM VERB: PARAM TYPE={parameter.kind} NAME={parameter.name}")
        for argument, path in parameter.paths.items():
            say(f"NVPM VERB: {argument} {path}")
    say("NVPM VERB:")
    for mode in table.modes:
        say(f"NVPM VERB: POWER_MODEL: ID={mode.mode_id} NAME={mode.name}")
        for name, argument, value in mode.settings:
            say(f"NVPM VERB: {name} {argument} {shown_value(value, facts.l4t)}")
        say("NVPM VERB:")
    return 0


def _complain(
    files: BoardFiles, table: ModeTable, setting: Setting, action: str, number: int
) -> None:
    """The two lines of a file that could not be used; without a value it was to be read."""
    path = file_of(files, table.parameters[setting.parameter], setting.argument)
    what = f"writing {setting.value} to" if action == "writing" else action
    complain(f"NVPM ERROR: Error {what} {path}: {number}")
    verb = "write" if setting.value else "read"
    tail = f" VAL: {shown_value(setting.value, 0)}" if setting.value else ""
    complain(
        f"NVPM ERROR: failed to {verb} PARAM {setting.parameter}: ARG {setting.argument}: "
        f"PATH: {path}{tail}"
    )
