"""What a payload said in its event file: bytes in, window, metrics and problems out.

The file comes from a board and is hostile: lines may be garbage, cut, huge, or of the wrong
types. Nothing here raises for its content; what does not hold becomes a problem with a code.
Line formats: docs/agent-protocol.md, "What a payload gets". Times: board boot-time seconds.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite

from farm.analysis.reasons import ReasonCode, reason
from farm.model.measurement import Measurement, Reason, Window
from farm.model.payload import PayloadManifest

MEASURED = "measured"
"""The name of the window that power and metrics refer to; other windows are ignored."""

MAX_LINE_BYTES = 65536
MAX_LINES = 200_000
MAX_METRICS = 1000
MAX_NOTES = 100
MAX_TEXT = 1000


@dataclass(frozen=True, slots=True)
class PayloadEvents:
    """The usable content of an event file. `window` is None unless it is there exactly once."""

    window: Window | None
    metrics: Mapping[str, Measurement]
    notes: tuple[str, ...] = ()
    unsupported_reason: str | None = None
    problems: tuple[Reason, ...] = ()


@dataclass(slots=True)
class _Collected:
    marks: list[tuple[str, float]] = field(default_factory=list)
    metrics: dict[str, Measurement] = field(default_factory=dict)
    repeated: list[str] = field(default_factory=list)
    wrong_units: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    unsupported: str | None = None
    garbled: int = 0
    first_garbled: str = ""


def parse_events(data: bytes, manifest: PayloadManifest) -> PayloadEvents:
    """Read an event file. Promised metrics that are absent or not finite become problems.

    Metrics that the manifest does not promise are kept with scope ``attempt``.
    """
    found = _Collected()
    lines = data.split(b"\n", MAX_LINES)
    for number, line in enumerate(lines, start=1):
        if line.strip():
            _take_line(line, number, found, manifest)
    window, window_problems = _window(found.marks, needs_window(manifest))
    return PayloadEvents(
        window=window,
        metrics=found.metrics,
        notes=tuple(found.notes),
        unsupported_reason=found.unsupported,
        problems=(*window_problems, *_metric_problems(found, manifest), *_garbled(found)),
    )


def needs_window(manifest: PayloadManifest) -> bool:
    """Whether the payload promises numbers that only mean something over a window."""
    has_window_metric = any(metric.scope == "window" for metric in manifest.metrics.values())
    return manifest.inferences is not None or has_window_metric


def inferences(events: PayloadEvents, manifest: PayloadManifest) -> float | None:
    """The number of inferences in the window, if the payload counts them and told it."""
    if manifest.inferences is None:
        return None
    told = events.metrics.get(manifest.inferences)
    return told.value if told is not None else None


def _take_line(line: bytes, number: int, found: _Collected, manifest: PayloadManifest) -> None:
    event: object = None
    if len(line) <= MAX_LINE_BYTES and number <= MAX_LINES:
        try:
            event = json.loads(line.decode("utf-8"))
        except (ValueError, RecursionError):  # UnicodeDecodeError is a ValueError
            event = None
    if not isinstance(event, dict) or not _take_event(event, found, manifest):
        found.garbled += 1
        if found.garbled == 1:
            found.first_garbled = f"line {number}: {line[:60]!r}"


def _take_event(
    event: Mapping[object, object], found: _Collected, manifest: PayloadManifest
) -> bool:
    """Take one event; False if it does not have the form that its kind demands."""
    kind = event.get("event")
    if kind in ("window_begin", "window_end"):
        return _take_mark(event, str(kind), found)
    if kind == "metric":
        return _take_metric(event, found, manifest)
    if kind == "note":
        text = event.get("text")
        if isinstance(text, str) and len(found.notes) < MAX_NOTES:
            found.notes.append(_clean(text))
        return isinstance(text, str)
    if kind == "unsupported":
        found.unsupported = _clean(str(event.get("reason", "")))
        return True
    return isinstance(kind, str)  # progress, and what later versions add


def _take_mark(event: Mapping[object, object], kind: str, found: _Collected) -> bool:
    time_s = _number(event.get("t"))
    name = event.get("name", MEASURED)
    if time_s is None or time_s < 0 or not isinstance(name, str):
        return False
    if name == MEASURED and len(found.marks) < 4:  # noqa: PLR2004 - two marks are right, four tell
        found.marks.append((kind, time_s))
    return True


def _take_metric(
    event: Mapping[object, object], found: _Collected, manifest: PayloadManifest
) -> bool:
    name, value = event.get("name"), _number(event.get("value"))
    if not isinstance(name, str) or not 0 < len(name) <= MAX_TEXT or value is None:
        return False
    name = _clean(name)
    promised = manifest.metrics.get(name)
    unit = event.get("unit", promised.unit if promised else "")
    if not isinstance(unit, str):
        return False
    if promised is not None and unit != promised.unit:
        found.wrong_units[name] = _clean(unit)
        return True
    if name in found.metrics:
        found.repeated.append(name)
    elif len(found.metrics) >= MAX_METRICS and promised is None:
        return False
    scope = promised.scope if promised else "attempt"
    found.metrics[name] = Measurement(
        value=value,
        unit=_clean(unit),
        scope=scope,
        window=MEASURED if scope == "window" else None,
    )
    return True


def _clean(text: str) -> str:
    """Bounded, and without the lone surrogates that no file or database takes."""
    return text[:MAX_TEXT].encode("utf-8", "replace").decode("utf-8")


def _number(value: object) -> float | None:
    """A finite number; JSON's true, NaN and integers beyond a float are none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if isfinite(number) else None


def _window(
    marks: list[tuple[str, float]], is_needed: bool
) -> tuple[Window | None, tuple[Reason, ...]]:
    kinds = [kind for kind, _ in marks]
    if not marks:
        missing = reason(ReasonCode.WINDOW_MISSING, "the payload marked no measured window")
        return None, (missing,) if is_needed else ()
    if kinds.count("window_begin") > 1 or kinds.count("window_end") > 1:
        text = "the payload marked the measured window more than once"
        return None, (reason(ReasonCode.WINDOW_REPEATED, text),)
    if len(kinds) == 1:
        text = f"the measured window has a {kinds[0].removeprefix('window_')} only"
        return None, (reason(ReasonCode.WINDOW_INCOMPLETE, text),)
    times = dict(marks)
    begin_s, end_s = times["window_begin"], times["window_end"]
    if end_s <= begin_s:
        text = f"the measured window ends {begin_s - end_s:.3f} s before it begins"
        return None, (reason(ReasonCode.WINDOW_BACKWARDS, text),)
    return Window(name=MEASURED, begin_s=begin_s, end_s=end_s), ()


def _metric_problems(found: _Collected, manifest: PayloadManifest) -> list[Reason]:
    problems: list[Reason] = []
    for name, metric in manifest.metrics.items():
        if name in found.wrong_units:
            text = f"{name} came in {found.wrong_units[name]!r}, promised is {metric.unit!r}"
            problems.append(reason(ReasonCode.METRIC_UNIT, text))
        elif name not in found.metrics:
            text = f"{name} was promised and did not come"
            problems.append(reason(ReasonCode.METRIC_MISSING, text))
    if found.repeated:
        names = ", ".join(sorted(set(found.repeated))[:5])
        text = f"told more than once, the last counts: {names}"
        problems.append(reason(ReasonCode.METRIC_REPEATED, text[:MAX_TEXT]))
    return problems


def _garbled(found: _Collected) -> tuple[Reason, ...]:
    if not found.garbled:
        return ()
    text = f"{found.garbled} event lines could not be read; {found.first_garbled}"
    return (reason(ReasonCode.EVENTS_GARBLED, text),)
