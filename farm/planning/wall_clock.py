"""Times as people write them -> instants, right across changes of daylight saving time. Pure.

``07:00`` (the next one), ``+8h``, ``+1h30m``, ``2026-12-01T07:00``, or with an offset.

A wall time that a change of clocks skips is taken for the moment of the change; one that comes
twice for the first of both that is still to come. The note says so.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta, tzinfo

from farm.errors import ConfigError

_LENGTH = re.compile(r"\+(?:(\d{1,4})h)?(?:(\d{1,5})m)?(?:(\d{1,6})s)?")
_CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))?")
_LONGEST = timedelta(days=366)
_FORMS = "write 07:00, +8h, +90m, or 2026-12-01T07:00"


@dataclass(frozen=True, slots=True)
class Instant:
    """A moment in UTC. `note` tells where the wall clock left a choice; else it is ""."""

    utc: datetime
    note: str = ""


def parse_instant(text: str, now: datetime, zone: tzinfo | None = None) -> Instant:
    """The moment that `text` means at `now`.

    Args:
        text: a wall time, a length from now, or a date and time (ISO 8601).
        now: aware.
        zone: of wall times without an offset; None is this machine's.

    Raises:
        ConfigError: no such time, or it is over.
    """
    now = now.astimezone(UTC)
    found = _relative(text, now) or _next_clock(text, now, zone) or _dated(text, now, zone)
    if found is None:
        raise ConfigError(f"{text!r} is no time: {_FORMS}")
    if not now < found.utc <= now + _LONGEST:
        where = "over" if found.utc <= now else "more than a year away"
        raise ConfigError(
            f"{text!r} is {where}: it is {local_text(now, zone=zone, is_dated=True)}"
        )
    return found


def local_text(
    instant: datetime,
    *,
    zone: tzinfo | None = None,
    near: datetime | None = None,
    is_dated: bool = False,
) -> str:
    """``07:00+01:00``, with its date unless that is the day of `near` or the day after."""
    local = instant.astimezone(zone)
    offset = local.strftime("%z")
    clock = f"{local:%H:%M}{offset[:3]}:{offset[3:5]}"
    if near is not None and not is_dated:
        is_dated = not 0 <= (local.date() - near.astimezone(zone).date()).days <= 1
    return f"{local:%Y-%m-%d} {clock}" if is_dated else clock


def _relative(text: str, now: datetime) -> Instant | None:
    match = _LENGTH.fullmatch(text.strip())
    if match is None or not any(match.groups()):
        return None
    hours, minutes, seconds = (int(group or 0) for group in match.groups())
    return Instant(now + timedelta(hours=hours, minutes=minutes, seconds=seconds))


def _next_clock(text: str, now: datetime, zone: tzinfo | None) -> Instant | None:
    match = _CLOCK.fullmatch(text.strip())
    if match is None:
        return None
    try:
        hour, minute, second = (int(group or 0) for group in match.groups())
        clock = time(hour, minute, second)
    except ValueError:
        return None
    today = now.astimezone(zone).date()
    for days in range(3):
        found = _resolve(datetime.combine(today + timedelta(days=days), clock), now, zone)
        if found.utc > now:
            return found
    return None


def _dated(text: str, now: datetime, zone: tzinfo | None) -> Instant | None:
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    if len(text.strip()) <= len("2026-12-01"):
        return None  # a date alone: midnight before or after it?
    if found.tzinfo is not None:
        return Instant(found.astimezone(UTC))
    return _resolve(found, now, zone)


def _resolve(wall: datetime, now: datetime, zone: tzinfo | None) -> Instant:
    """The instant of a wall time without offset; of two the first that is after `now`."""
    first, second = _utc(wall, 0, zone), _utc(wall, 1, zone)
    if first == second:
        return Instant(first)
    if first > second:  # PEP 495: in a gap the offsets stand the other way round
        change = _change(second, first, zone)
        note = (
            f"{wall:%H:%M} does not exist on {wall:%Y-%m-%d}: clocks are put forward; "
            f"taken as {local_text(change, zone=zone)}"
        )
        return Instant(change, note)
    chosen = first if first > now else second
    which = "first" if chosen == first else "second"
    note = (
        f"{wall:%H:%M} comes twice on {wall:%Y-%m-%d}: clocks are put back; "
        f"taken as the {which}, {local_text(chosen, zone=zone)}"
    )
    return Instant(chosen, note)


def _utc(wall: datetime, fold: int, zone: tzinfo | None) -> datetime:
    # Without a zone Python asks the C library, which knows this machine's changes of clocks; not
    # by `astimezone`, which takes a time in a gap for the other side of it.
    return datetime.fromtimestamp(wall.replace(fold=fold, tzinfo=zone).timestamp(), UTC)


def _change(low: datetime, high: datetime, zone: tzinfo | None) -> datetime:
    """The first second between the two at which the offset is that of `high`."""
    after = high.astimezone(zone).utcoffset()
    while high - low > timedelta(seconds=1):
        middle = low + (high - low) / 2
        if middle.astimezone(zone).utcoffset() == after:
            high = middle
        else:
            low = middle
    return high.replace(microsecond=0)
