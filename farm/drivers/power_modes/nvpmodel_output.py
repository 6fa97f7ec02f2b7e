"""What ``nvpmodel -q`` and ``nvpmodel -m`` print, and what it means. Pure; nothing raises.

Tried on captures of L4T R32 to R38 (tests/recordings/jetson-*/nvpmodel). Lines are found by
search, never by number, because warnings come before, between and after them. Exit codes are
no part of it: they prove nothing (0 with errors and 255 without effect were both seen).
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

_QUERY = re.compile(
    r"NV Power Mode:[ \t]*(\S+)[ \t]*\r?\n[ \t]*(-?\d{1,9})[ \t]*\r?$", re.MULTILINE
)
_QUERY_NAME = re.compile(r"NV Power Mode:[ \t]*(\S+)[ \t]*\r?$", re.MULTILINE)
_FAN_MODE = re.compile(r"^NV Fan Mode:[ \t]*(\S+)[ \t]*\r?$", re.MULTILINE)
_VALUE = re.compile(
    r"PARAM (\S+): ARG (\S+): PATH (\S+): REAL_VAL: (\S*) CONF_VAL: (\S*)[ \t]*\r?$", re.MULTILINE
)
_FILE_ERROR = re.compile(
    r"Error (opening|reading|writing)(?: (\S{1,40}) to)? (/\S+): (\d{1,4})[ \t]*\r?$", re.MULTILINE
)
_ASKED_ID = re.compile(r"(?:bad power mode|changing to this power mode:) (\d{1,9})\b")
_ERROR = "NVPM ERROR:"


class Meaning(StrEnum):
    """What a text of nvpmodel, or of sudo in front of it, means; the most telling first."""

    SUDO_PASSWORD = "sudo_password"  # noqa: S105 - not a password
    """sudo wants a password or a terminal: there is no password-less sudo."""
    SUDO_REFUSED = "sudo_refused"
    """sudo does not let this user run this command, or there is no sudo."""
    BAD_MODE = "bad_mode"
    """The ID is not in this conf."""
    REBOOTING = "rebooting"
    """The question was answered with yes; the board goes down."""
    BAD_INPUT = "bad_input"
    """It asked to reboot, and stdin was empty or closed: nothing was changed."""
    DECLINED = "declined"
    """It asked to reboot, and the answer was not yes: nothing was changed."""
    REBOOT_NEEDED = "reboot_needed"
    """It asks to reboot; nothing is changed until it gets its yes."""
    READ_ONLY = "read_only"
    """A file was refused (30): it lies on a read-only file system."""
    NOT_ROOT = "not_root"
    """A file was refused (13): the tool needs root."""
    BUSY = "busy"
    """A mask was refused (16): the GPU is in use since the boot."""
    NO_DEVICE = "no_device"
    """A mask was refused (19): seen on leaving a 7 W mode of Orin Nano 4GB."""
    NOT_THERE = "not_there"
    """A file is not there (2): too early after the boot, or the conf of another board."""
    FAILED = "failed"
    """An error of another kind."""
    GPU_IN_USE = "gpu_in_use"
    """The GPU was used since the boot: a change of its mask needs a reboot."""
    NO_COMPLAINT = "no_complaint"
    """Nothing was complained of, which proves nothing: read back."""


SetOutcome = Literal["done", "needs_reboot", "rebooting", "bad_mode", "failed"]

_TEXTS = (
    ("a password is required", Meaning.SUDO_PASSWORD),
    ("a terminal is required", Meaning.SUDO_PASSWORD),
    ("no tty present", Meaning.SUDO_PASSWORD),
    ("must have a tty", Meaning.SUDO_PASSWORD),
    ("not in the sudoers file", Meaning.SUDO_REFUSED),
    ("is not allowed to execute", Meaning.SUDO_REFUSED),
    ("may not run sudo", Meaning.SUDO_REFUSED),
    ("sudo: not found", Meaning.SUDO_REFUSED),
    ("sudo: command not found", Meaning.SUDO_REFUSED),
    ("request for bad power mode", Meaning.BAD_MODE),
    ("NVPM WARN: rebooting", Meaning.REBOOTING),
    ("bad input!", Meaning.BAD_INPUT),
    ("Reboot required for changing", Meaning.REBOOT_NEEDED),
    ("DO YOU WANT TO REBOOT NOW?", Meaning.REBOOT_NEEDED),
    ("Golden image context is already created", Meaning.GPU_IN_USE),
)
_NUMBERS = {
    2: Meaning.NOT_THERE,
    13: Meaning.NOT_ROOT,
    30: Meaning.READ_ONLY,
    16: Meaning.BUSY,
    19: Meaning.NO_DEVICE,
}
"""Linux's error numbers, which the tool prints bare."""

_OUTCOMES: dict[Meaning, SetOutcome] = {
    Meaning.NO_COMPLAINT: "done",
    Meaning.GPU_IN_USE: "done",
    Meaning.BAD_MODE: "bad_mode",
    Meaning.REBOOTING: "rebooting",
    Meaning.BAD_INPUT: "needs_reboot",
    Meaning.DECLINED: "needs_reboot",
    Meaning.REBOOT_NEEDED: "needs_reboot",
}
_RANK = {meaning: rank for rank, meaning in enumerate(Meaning)}


@dataclass(frozen=True, slots=True)
class QueryAnswer:
    """What ``nvpmodel -q`` told. `id` is None when only the name was printed."""

    name: str
    id: int | None
    fan_mode: str | None = None


@dataclass(frozen=True, slots=True)
class ParamValue:
    """One line of ``nvpmodel -q --verbose``: what is, and what the conf wants."""

    param: str
    arg: str
    real: str
    conf: str


@dataclass(frozen=True, slots=True)
class FileError:
    """A file of the board that could not be used. `number` is Linux's error number."""

    action: str
    value: str
    path: str
    number: int


@dataclass(frozen=True, slots=True)
class SetReport:
    """What nvpmodel complained of.

    `meanings` has at least one, the most telling first; `asked_id` is the mode's ID where the
    text repeats it.
    """

    meanings: tuple[Meaning, ...]
    errors: tuple[str, ...] = ()
    files: tuple[FileError, ...] = ()
    asked_id: int | None = None

    @property
    def meaning(self) -> Meaning:
        """The most telling of the meanings."""
        return self.meanings[0]

    @property
    def outcome(self) -> SetOutcome:
        """What follows for a change of mode. "done" only means that nothing was complained of."""
        return _OUTCOMES.get(self.meaning, "failed")


def parse_query(text: str) -> QueryAnswer | None:
    """The mode that ``nvpmodel -q`` names, or None."""
    fan = _FAN_MODE.search(text)
    fan_mode = fan[1] if fan is not None else None
    found = _QUERY.search(text)
    if found is not None:
        return QueryAnswer(found[1], int(found[2]), fan_mode)
    named = _QUERY_NAME.search(text)
    return QueryAnswer(named[1], None, fan_mode) if named is not None else None


def parse_values(text: str) -> tuple[ParamValue, ...]:
    """The PARAM lines of ``nvpmodel -q --verbose``; what could not be read is not among them."""
    return tuple(
        ParamValue(param, arg, real, conf) for param, arg, _, real, conf in _VALUE.findall(text)
    )


def parse_set_output(text: str) -> SetReport:
    """What nvpmodel complained of, whatever its exit code was. Also right for ``-q`` and boot."""
    errors = tuple(
        line.strip().removeprefix(_ERROR).strip()
        for line in text.splitlines()
        if line.strip().startswith(_ERROR)
    )
    files = tuple(
        FileError(action, value, path, int(number))
        for action, value, path, number in _FILE_ERROR.findall(text)
    )
    asked = _ASKED_ID.search(text)
    return SetReport(
        meanings=_meanings(text, errors, files),
        errors=errors,
        files=files,
        asked_id=int(asked[1]) if asked else None,
    )


def _meanings(
    text: str, errors: tuple[str, ...], files: tuple[FileError, ...]
) -> tuple[Meaning, ...]:
    found = {meaning for words, meaning in _TEXTS if words in text}
    found |= {_NUMBERS.get(file.number, Meaning.FAILED) for file in files}
    is_asked = Meaning.REBOOT_NEEDED in found
    was_answered = found & {Meaning.REBOOTING, Meaning.BAD_INPUT}
    if is_asked and not was_answered and "no request for power mode" in text:
        found.add(Meaning.DECLINED)
    if errors and not found - {Meaning.GPU_IN_USE}:
        found.add(Meaning.FAILED)
    return tuple(sorted(found, key=_RANK.__getitem__)) or (Meaning.NO_COMPLAINT,)
