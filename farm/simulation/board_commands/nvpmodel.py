"""``nvpmodel`` of a Jetson TX2 or Nano on L4T R32: every mode changes live, no reboot asked.

    nvpmodel -q [--verbose] | -p --verbose | -m ID

As on the boards, the exit status says little: without root it prints error lines and ends
with 0. Verbose lines go to stdout, errors to stderr.
"""

import argparse
import errno

from farm.simulation.board_commands.board_files import BoardFiles, complain, is_root, say
from farm.simulation.board_commands.nvpmodel_conf import (
    CONF_FILE,
    Mode,
    ModeTable,
    apply_mode,
    load_mode_table,
    shown_value,
    stored_mode_id,
)

_FAILED = 255


def main(argv: list[str]) -> int:
    """Run the command; its exit status."""
    parser = argparse.ArgumentParser(prog="nvpmodel")
    parser.add_argument("-q", "--query", action="store_true")
    parser.add_argument("-p", "--parse", action="store_true")
    parser.add_argument("-m", "--mode", type=int)
    parser.add_argument("-f", "--file")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args(argv)
    files = BoardFiles.here()
    table = load_mode_table(files)
    if options.mode is not None:
        return _set_mode(files, table, options.mode)
    if options.query:
        return _query(files, table, is_verbose=options.verbose)
    if options.parse:
        return _print_table(table) if options.verbose else 0
    complain("NVPM ERROR: optMask is 1, no request for power mode")
    return _FAILED


def _query(files: BoardFiles, table: ModeTable, *, is_verbose: bool) -> int:
    mode = table.mode(stored_mode_id(files, table))
    if mode is None:
        complain("NVPM ERROR: could not get the current power mode")
        return _FAILED
    if is_verbose:
        say(f"NVPM VERB: Config file: {CONF_FILE}")
        say(f"NVPM VERB: parsing done for {CONF_FILE}")
    say(f"{'NVPM VERB: Current mode: ' if is_verbose else ''}NV Power Mode: {mode.name}")
    say(str(mode.mode_id))
    if is_verbose:
        _print_values(files, table, mode)
    elif not is_root() and "EMC" in table.parameters:
        _complain_access("read", "EMC", "MAX_FREQ", table)
    return 0


def _print_values(files: BoardFiles, table: ModeTable, mode: Mode) -> None:
    for parameter, argument, value in mode.settings:
        path = table.parameters[parameter].paths[argument]
        if parameter == "EMC" and not is_root():
            _complain_access("read", parameter, argument, table)
            continue
        say(
            f"NVPM VERB: PARAM {parameter}: ARG {argument}: PATH {path}: "
            f"REAL_VAL: {files.read(path)} CONF_VAL: {shown_value(value)}"
        )


def _set_mode(files: BoardFiles, table: ModeTable, mode_id: int) -> int:
    mode = table.mode(mode_id)
    if mode is None:
        complain(f"NVPM ERROR: request for bad power mode {mode_id}")
        return _FAILED
    if not is_root():
        parameter, argument, value = mode.settings[0]
        _complain_access("write", parameter, argument, table, value)
        complain("NVPM ERROR: failed to set power mode!")
        complain("NVPM ERROR: optMask is 1, no request for power mode")
        return 0
    apply_mode(files, table, mode)
    return 0


def _print_table(table: ModeTable) -> int:
    default = table.mode(table.default_id)
    say(f"NVPM VERB: PM_CONFIG: DEFAULT={default.name if default else ''}({table.default_id})")
    for parameter in table.parameters.values():
        say(f"NVPM VERB: PARAM TYPE={parameter.kind} NAME={parameter.name}")
        for argument, path in parameter.paths.items():
            say(f"NVPM VERB: {argument} {path}")
    say("NVPM VERB:")
    for mode in table.modes:
        say(f"NVPM VERB: POWER_MODEL: ID={mode.mode_id} NAME={mode.name}")
        for setting in mode.settings:
            say(f"NVPM VERB: {setting.parameter} {setting.argument} {shown_value(setting.value)}")
        say("NVPM VERB:")
    return 0


def _complain_access(
    verb: str, parameter: str, argument: str, table: ModeTable, value: str = ""
) -> None:
    """The lines of a file that only root may open."""
    path = table.parameters[parameter].paths[argument]
    complain(f"NVPM ERROR: Error opening {path}: {errno.EACCES}")
    tail = f" VAL: {shown_value(value)}" if value else ""
    complain(f"NVPM ERROR: failed to {verb} PARAM {parameter}: ARG {argument}: PATH: {path}{tail}")
