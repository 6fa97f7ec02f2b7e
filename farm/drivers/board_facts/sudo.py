"""sudo: what it complains of, and what ``sudo -n -l`` lists. Pure; nothing raises.

Tried on recordings (tests/recordings/linux/sudo) of sudo 1.8 and 1.9. The agent asks in the C
locale; a complaint in another language is still known by its ``sudo:``.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import Literal


class SudoComplaint(StrEnum):
    """Why sudo did not run a command; the most telling first."""

    NEEDS_TTY = "needs_tty"
    """``Defaults requiretty``: it wants a terminal, which farm has not."""
    NEEDS_PASSWORD = "needs_password"  # noqa: S105 - not a password
    """It would ask for one."""
    NOT_ALLOWED = "not_allowed"
    """No rule lets this user run the command."""
    NO_SUDO = "no_sudo"
    """There is no sudo on the board."""
    CANNOT = "cannot"
    """sudo itself cannot become root: mounted nosuid, a container without privileges."""
    UNKNOWN_OPTION = "unknown_option"
    """A sudo of another kind that does not know the option."""
    NO_COMMAND = "no_command"
    """sudo finds no such command in its own path."""
    OTHER = "other"
    """Words that are not known, e.g. of another language."""


_TEXTS = (
    ("must have a tty", SudoComplaint.NEEDS_TTY),
    ("a password is required", SudoComplaint.NEEDS_PASSWORD),
    ("a terminal is required", SudoComplaint.NEEDS_PASSWORD),
    ("no tty present", SudoComplaint.NEEDS_PASSWORD),
    ("no askpass program", SudoComplaint.NEEDS_PASSWORD),
    ("interactive authentication is required", SudoComplaint.NEEDS_PASSWORD),
    ("in the sudoers file", SudoComplaint.NOT_ALLOWED),
    ("is not allowed to ", SudoComplaint.NOT_ALLOWED),
    ("may not run sudo", SudoComplaint.NOT_ALLOWED),
    ("I'm afraid I can't do that", SudoComplaint.NOT_ALLOWED),  # sudo-rs
    ("sudo: not found", SudoComplaint.NO_SUDO),
    ("sudo: command not found", SudoComplaint.NO_SUDO),
    ("sudo: No such file or directory", SudoComplaint.NO_SUDO),
    ("effective uid is not 0", SudoComplaint.CANNOT),
    ("no new privileges", SudoComplaint.CANNOT),
    ("must be owned by uid 0", SudoComplaint.CANNOT),
    ("no valid sudoers sources found", SudoComplaint.CANNOT),
    ("invalid option", SudoComplaint.UNKNOWN_OPTION),
    ("unrecognized option", SudoComplaint.UNKNOWN_OPTION),
    (": command not found", SudoComplaint.NO_COMMAND),
)
_HARMLESS = re.compile(
    r"^sudo: (?:unable to resolve host|setrlimit\(|unable to send "  # mail, audit message
    r"|unable to (?:open|mkdir|stat|read|write(?: to)?) \S*/(?:ts|timestamp|lectured)\b"
    r"|\S+ is (?:world writable|mode [0-7]+, should be|owned by [ug]id \d+, should be))"
)
"""Warnings after which sudo goes on: name service, limits, its own state, a file it skips."""
_STATUS, _NO_SUDO_STATUS = 1, 127
"""sudo's own failures all end with 1; what a shell, or the agent, says where there is no sudo."""
_MAY_RUN = re.compile(r"^User .* may run the following commands", re.MULTILINE)
_RULE = re.compile(r"^\(([^)]*)\)\s*(.*)$")
_TAG = re.compile(r"^((?:NO)?[A-Z_]{4,20}):\s*")
_DIGEST = re.compile(r"^sha(?:224|256|384|512):\S+\s+")
_SPLIT = re.compile(r"(?<!\\),\s*")
_NESTED = 8  # spaces before what goes on with the line above
_SYSTEM = frozenset(
    {"/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin"}
)

Permission = Literal["free", "password", "no"]


@dataclass(frozen=True, slots=True)
class SudoRule:
    """One command of the list. `arguments`: a pattern, "" for none, None for any."""

    path: str
    arguments: str | None
    is_denied: bool
    needs_password: bool
    is_for_root: bool


@dataclass(frozen=True, slots=True)
class SudoListing:
    """What ``sudo -n -l`` told: flags of ``Defaults`` that are on, and the rules in order."""

    defaults: frozenset[str]
    rules: tuple[SudoRule, ...]

    def permission(self, argv: Sequence[str]) -> Permission:
        """What the list says of running argv as root. The last rule that fits decides.

        "no" also where a rule is written in a way that is not understood here (regular
        expressions): ask sudo itself first.
        """
        told: Permission = "no"
        for rule in self.rules:
            if rule.is_for_root and _fits(rule, argv):
                told = "no" if rule.is_denied else "password" if rule.needs_password else "free"
        return told


def sudo_complaint(exit_status: int, stderr: str, stdout: str = "") -> SudoComplaint | None:
    """Why sudo did not run it; None when it did, or when the complaint is the command's own.

    A warning of sudo (``unable to resolve host``) stands before what the command says: unknown
    words are a refusal only where they are the last, and where nothing was printed besides.
    """
    if exit_status not in (_STATUS, _NO_SUDO_STATUS):
        return None
    lines = [line for line in stderr.splitlines() if line.strip() and not _HARMLESS.match(line)]
    its_own = [line for line in lines if "sudo" in line or line.startswith("Sorry, user ")]
    for words, meaning in _TEXTS:
        if any(words in line for line in its_own):
            return meaning if _may_end_so(meaning, exit_status) else None
    is_last = bool(lines) and lines[-1].startswith("sudo:") and not stdout.strip()
    return SudoComplaint.OTHER if is_last and exit_status == _STATUS else None


def _may_end_so(meaning: SudoComplaint, exit_status: int) -> bool:
    return exit_status == _STATUS or meaning is SudoComplaint.NO_SUDO


def complaint_line(stderr: str) -> str:
    """The line to show of what sudo said: its first that is no mere warning."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    telling = [line for line in lines if line.startswith("sudo:") and not _HARMLESS.match(line)]
    return next(iter(telling or lines[-1:]), "nothing")[:300]


def parse_sudo_listing(text: str) -> SudoListing:
    """Read the output of ``sudo -n -l``; what makes no sense is left out."""
    found = _MAY_RUN.search(text)
    head, tail = (text[: found.start()], text[found.end() :]) if found else (text, "")
    flags = {
        word.strip()
        for line in _joined(head)
        if line.startswith(" ")
        for word in line.split(",")
        if word.strip() and "=" not in word and not word.strip().startswith("!")
    }
    rules: list[SudoRule] = []
    for line in _joined(tail):
        rule = _RULE.match(line.strip())
        if rule is not None:
            rules += _rules(rule[1], rule[2])
    return SudoListing(frozenset(flags), tuple(rules))


def _joined(text: str) -> list[str]:
    lines: list[str] = []
    for line in text.splitlines():
        indent = len(line) - len(line.lstrip(" "))
        if indent >= _NESTED and lines:
            lines[-1] += " " + line.strip()
        elif line.strip():
            lines.append(line)
    return lines


def _rules(run_as: str, text: str) -> list[SudoRule]:
    users = [word.strip() for word in run_as.partition(":")[0].split(",")]
    is_for_root = bool({"root", "ALL", "#0"} & set(users)) and "!root" not in users
    needs_password = True
    rules: list[SudoRule] = []
    for part in _SPLIT.split(text):
        word = part.strip()
        while tag := _TAG.match(word):
            if tag[1] in ("NOPASSWD", "PASSWD"):
                needs_password = tag[1] == "PASSWD"
            word = word[tag.end() :]
        word = _DIGEST.sub("", word)
        is_denied = word.startswith("!")
        path, _, rest = word.lstrip("!").strip().partition(" ")
        arguments: str | None = re.sub(r"\\(.)", r"\1", rest.strip()) or None
        arguments = "" if arguments == '""' else arguments
        rules.append(SudoRule(path, arguments, is_denied, needs_password, is_for_root))
    return rules


def _fits(rule: SudoRule, argv: Sequence[str]) -> bool:
    if rule.path == "ALL":
        return True
    if not _is_path(rule.path, argv[0]):
        return False
    return rule.arguments is None or fnmatchcase(" ".join(argv[1:]), rule.arguments)


def _is_path(pattern: str, path: str) -> bool:
    """Also by name among the system's folders: /bin and /usr/bin are often one."""
    if pattern.endswith("/"):
        return f"{PurePosixPath(path).parent}/" == pattern
    if fnmatchcase(path, pattern):
        return True
    ours, theirs = PurePosixPath(path), PurePosixPath(pattern)
    is_system = str(theirs.parent) in _SYSTEM and str(ours.parent) in (*_SYSTEM, ".")
    return ours.name == theirs.name and is_system
