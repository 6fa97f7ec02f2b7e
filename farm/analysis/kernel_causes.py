"""Kernel messages (text, board boot time in seconds) -> known causes of a spoilt attempt. Pure.

Understood: ``dmesg`` (also ``-r``, ``-x``, ``-H``, ``-T``), syslog lines with or without the
kernel's own stamp, ``journalctl -k`` in any short form, ``/dev/kmsg``. A line without boot time
belongs where the line before it belongs; before any stamp it counts, because it may.

The kernel stamps with its raw clock, which drifts from the boot-time clock that farm uses: see
`slack_s`. So what hit the attempt just before may be told of this one, too. Lines are a board's,
hence hostile: lengths, numbers and control characters are bounded.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from farm.analysis.kernel_patterns import HARMLESS, PATTERNS, RANK, WORDS, sentence
from farm.model.kernel import KernelCause

MOST_CAUSES = 24
LONGEST_LINE = 300
LONGEST_READ = 1000
"""Of a longer line only the beginning is looked at. The kernel cuts at 1024 (LOG_LINE_MAX)."""
SLACK_S = 2.0
DRIFT = 100e-6
"""Assumed: crystals are within 100 ppm, and the kernel's stamps are not disciplined by NTP."""
KILL_TO_END_S = 5.0
"""How long after the kernel's kill the payload's end may be noted (assumed; a full core dump
or a big process's memory takes seconds)."""

_STAMP = re.compile(r"(?:\[ {0,12}|^ {0,12})(\d{1,9}\.\d{3,9})\]")
_KMSG = re.compile(r"^\d{1,4},\d{1,12},(\d{1,15}),[^;]{0,40};")
_KERNEL = re.compile(r"(?:^|\s)kernel: ?")
_STAMP_WITHIN = 160
_UNSHOWN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069"
                      "\ud800-\udfff]")  # fmt: skip


@dataclass(frozen=True, slots=True)
class PayloadEnd:
    """How the payload ended, to tell whether the kernel's kill was its end.

    `names` are what its processes may be called; the kernel keeps 15 characters of a name.
    """

    names: frozenset[str]
    end_s: float | None = None
    was_killed: bool = False


@dataclass(frozen=True, slots=True)
class KernelLine:
    """One line: the board's boot time in seconds, if it has one, and the message alone."""

    at_s: float | None
    message: str
    line: str


def kernel_causes(
    text: str,
    begin_s: float | None = None,
    end_s: float | None = None,
    payload: PayloadEnd | None = None,
) -> tuple[KernelCause, ...]:
    """The known causes in a kernel log within a window of board boot time, the likeliest first.

    Never raises for what the text holds. Lines that say the same count as one cause.
    """
    found: dict[tuple[str, str], KernelCause] = {}
    for one in lines_within(text, begin_s, end_s):
        cause = _cause(one)
        if cause is None:
            continue
        key = (cause.code, cause.text)
        known = found.get(key)
        if known is not None:
            found[key] = known.model_copy(update={"count": known.count + 1})
        elif len(found) < MOST_CAUSES:
            found[key] = cause
    causes = _without_echoes(list(found.values()))
    if payload is not None:
        causes = [_attributed(cause, payload) for cause in causes]
    return tuple(
        sorted(causes, key=lambda cause: (cause.is_payload is not True, RANK[cause.code]))
    )


def lines_within(
    text: str, begin_s: float | None = None, end_s: float | None = None
) -> Iterator[KernelLine]:
    """The lines of a kernel log within a window, those without boot time after their leader."""
    is_within = True
    for line in re.split(r"\r?\n|\r", text):
        if not line.strip():
            continue
        one = _line(line)
        if one.at_s is not None:
            is_within = _is_within(one.at_s, begin_s, end_s)
        if is_within:
            yield one


def slack_s(at_s: float) -> float:
    """How far a kernel stamp may be from the boot-time clock, in seconds, `at_s` after boot."""
    return SLACK_S + DRIFT * abs(at_s)


def plain_line(line: str) -> str:
    """The line bounded, without characters that drive a terminal."""
    return _UNSHOWN.sub("?", line[:LONGEST_LINE].expandtabs(4).strip())


def _is_within(at_s: float, begin_s: float | None, end_s: float | None) -> bool:
    slack = slack_s(at_s)
    return (begin_s is None or at_s >= begin_s - slack) and (
        end_s is None or at_s <= end_s + slack
    )


def _line(line: str) -> KernelLine:
    read = line[:LONGEST_READ]
    stamp = _STAMP.search(read, 0, _STAMP_WITHIN)
    kmsg = None if stamp else _KMSG.match(read)
    match, at_s = stamp or kmsg, None
    if stamp:
        at_s = float(stamp.group(1))
    elif kmsg:
        at_s = int(kmsg.group(1)) / 1e6
    message = read[match.end() :] if match else read
    named = _KERNEL.search(message, 0, _STAMP_WITHIN)
    if named:  # syslog's and the journal's "HOST kernel: "
        message = message[named.end() :]
    return KernelLine(at_s, message.strip(), plain_line(line))


def _cause(one: KernelLine) -> KernelCause | None:
    if not WORDS.search(one.message) or HARMLESS.search(one.message):
        return None
    for pattern in PATTERNS:
        match = pattern.regex.search(one.message)
        if match is None:
            continue
        parts = {name: plain_line(value) for name, value in match.groupdict(default="").items()}
        pid = parts.get("pid", "")
        return KernelCause(
            code=pattern.code,
            text=sentence(pattern, parts),
            line=one.line,
            at_s=one.at_s,
            process=parts.get("process", ""),
            pid=int(pid) if pid else None,
        )
    return None


def _without_echoes(causes: list[KernelCause]) -> list[KernelCause]:
    """Without lines of the same kill: who called the killer, the state of the memory then."""
    if not any(cause.code == "out_of_memory" and cause.pid is not None for cause in causes):
        return causes
    return [
        cause
        for cause in causes
        if cause.code != "memory_pressure"
        and not (cause.code == "out_of_memory" and cause.pid is None)
    ]


def _attributed(cause: KernelCause, payload: PayloadEnd) -> KernelCause:
    """Whether a process that the kernel killed, or that crashed, was the payload's.

    It was when it bears the payload's name or when the payload was killed at that time; it is
    unknown when nothing is known of that time.
    """
    if not cause.process:
        return cause
    is_named = cause.process in {name[:15] for name in payload.names}
    if not payload.was_killed or cause.at_s is None or payload.end_s is None:
        is_payload = True if is_named else None
    else:
        since_s = payload.end_s - cause.at_s
        slack = slack_s(cause.at_s)
        is_payload = -slack <= since_s <= KILL_TO_END_S + slack
    return cause.model_copy(update={"is_payload": is_payload})
