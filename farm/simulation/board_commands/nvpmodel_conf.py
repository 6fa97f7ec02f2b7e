"""The power mode table of a Jetson: reading ``nvpmodel.conf``, and putting a mode into force."""

import re
from typing import NamedTuple

from farm.simulation.board_commands.board_files import BoardFacts, BoardFiles

CONF_FILE = "/etc/nvpmodel.conf"
STATUS_FILE = "/var/lib/nvpmodel/status"

_SECTION = re.compile(r"<\s*(PARAM|POWER_MODEL|PM_CONFIG)\b([^>]*)>")


class Parameter(NamedTuple):
    """One PARAM section: TYPE (FILE, CLOCK or HWMON), name, the path behind each argument.

    An argument that ends in ``_KNEXT`` names the file of the newer kernel.
    """

    kind: str
    name: str
    paths: dict[str, str]


class Setting(NamedTuple):
    """One line of a mode: parameter, argument, value as written."""

    parameter: str
    argument: str
    value: str


class Mode(NamedTuple):
    """One POWER_MODEL section."""

    mode_id: int
    name: str
    settings: list[Setting]


class ModeTable(NamedTuple):
    """The whole file, in its order."""

    parameters: dict[str, Parameter]
    modes: list[Mode]
    default_id: int

    def mode(self, mode_id: int) -> Mode | None:
        """The mode with that id, or None."""
        return next((mode for mode in self.modes if mode.mode_id == mode_id), None)


def parse_mode_table(text: str) -> ModeTable:
    """Read the conf's text. Raises ValueError for a line that does not belong anywhere."""
    table = ModeTable({}, [], 0)
    default_id = 0
    section: Parameter | Mode | None = None
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.split("#", 1)[0].strip()
        if not line:
            continue
        match = _SECTION.fullmatch(line)
        if match is None:
            _add_line(section, line.split(), number)
            continue
        attributes = dict(part.split("=", 1) for part in match[2].split())
        section = None
        if match[1] == "PM_CONFIG":
            default_id = int(attributes["DEFAULT"])
        elif match[1] == "PARAM":
            section = Parameter(attributes["TYPE"], attributes["NAME"], {})
            table.parameters[section.name] = section
        else:
            section = Mode(int(attributes["ID"]), attributes["NAME"], [])
            table.modes.append(section)
    return table._replace(default_id=default_id)


def load_mode_table(files: BoardFiles) -> ModeTable:
    """The board's own table. Raises OSError, ValueError."""
    return parse_mode_table(files.read(CONF_FILE))


def stored_mode_id(files: BoardFiles, table: ModeTable) -> int:
    """The id in the status file, or the table's default when it is missing or bad."""
    try:
        match = re.search(r"pmode:(\d{4})(?!\S)", files.read(STATUS_FILE))
    except OSError:
        return table.default_id
    mode_id = int(match[1]) if match else -1
    return table.default_id if table.mode(mode_id) is None else mode_id


def masks(mode: Mode) -> list[Setting]:
    """The settings that switch parts of the GPU off."""
    return [setting for setting in mode.settings if setting.argument.endswith("_PG_MASK")]


def file_of(files: BoardFiles, parameter: Parameter, argument: str) -> str:
    """The file behind an argument: the newer kernel's where the board has that."""
    newer = parameter.paths.get(argument + "_KNEXT")
    return newer if newer and files.exists(newer) else parameter.paths[argument]


def store_mode(files: BoardFiles, facts: BoardFacts, mode: Mode) -> None:
    """Remember the mode for the next boot, as the boards of that release do. Raises OSError."""
    fan = f" fmode:fan_mode_{facts.fan_mode}" if facts.fan_mode else ""
    files.write(STATUS_FILE, f"pmode:{mode.mode_id:04d}{fan}")


def apply_mode(files: BoardFiles, table: ModeTable, mode: Mode, *, has_masks: bool = True) -> None:
    """Write the mode's settings in their order, then the status file. Raises OSError.

    Without `has_masks` the GPU's masks stay as they are.
    """
    facts = files.facts()
    for setting in mode.settings:
        if setting.argument.endswith("_PG_MASK") and not has_masks:
            continue
        parameter = table.parameters[setting.parameter]
        value = setting.value
        if parameter.kind == "CLOCK":
            value = str(_clock(files, facts, table, setting))
        files.write(file_of(files, parameter, setting.argument), value)
    files.sum_up_online()
    store_mode(files, facts, mode)


def shown_value(value: str, l4t: int) -> str:
    """A conf value as the tool prints it: -1, "no cap", shows as the largest number it has."""
    largest = 2**63 - 1 if l4t >= 36 else 2**31 - 1  # noqa: PLR2004 -- L4T R36
    return str(largest) if value == "-1" else value


def top_hz(facts: BoardFacts, table: ModeTable, name: str, argument: str) -> int:
    """The highest clock of an engine without a table of frequencies.

    Where the chip's own is not known it is the largest cap that any mode sets.
    """
    caps = (
        int(setting.value)
        for mode in table.modes
        for setting in mode.settings
        if (setting.parameter, setting.argument) == (name, argument)
    )
    return facts.tops_hz.get(name) or max(caps, default=0)


def _clock(files: BoardFiles, facts: BoardFacts, table: ModeTable, setting: Setting) -> int:
    """What a clock's file shows after the setting: -1 gives the highest there is.

    With a table of frequencies the nearest of it; 0 gives the lowest. Nearest fits every snap
    seen on boards: 2000000 -> 2035200, 1120000000 -> 1134750000 (TX2), 918000 -> 921600,
    640000000 -> 614400000 (Nano), 1200000 -> 1190400 (Xavier).
    """
    parameter, wanted = table.parameters[setting.parameter], int(setting.value)
    if "FREQ_TABLE" not in parameter.paths:
        if wanted >= 0:
            return wanted
        return top_hz(facts, table, setting.parameter, setting.argument)
    listed = files.read(file_of(files, parameter, "FREQ_TABLE"))
    frequencies = [int(word) for word in listed.split()]
    if wanted < 0:
        return max(frequencies)
    return min(frequencies, key=lambda frequency: abs(frequency - wanted))


def _add_line(section: Parameter | Mode | None, words: list[str], number: int) -> None:
    if isinstance(section, Parameter) and len(words) == 2:  # noqa: PLR2004 -- ARG path
        section.paths[words[0]] = words[1]
    elif isinstance(section, Mode) and len(words) == 3:  # noqa: PLR2004 -- PARAM ARG value
        section.settings.append(Setting(*words))
    else:
        msg = f"line {number} is neither a section nor part of one: {' '.join(words)}"
        raise ValueError(msg)
