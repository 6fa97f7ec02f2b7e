"""Wall times in Berlin, where clocks go forward on 2027-03-28 and back on 2026-10-25."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from farm.errors import ConfigError
from farm.planning.wall_clock import local_text, parse_instant

BERLIN = ZoneInfo("Europe/Berlin")
EVENING = datetime(2026, 11, 30, 21, 0, tzinfo=UTC)  # 22:00 there
BEFORE_SUMMER = datetime(2027, 3, 27, 21, 0, tzinfo=UTC)  # 22:00+01:00
BEFORE_WINTER = datetime(2026, 10, 24, 20, 0, tzinfo=UTC)  # 22:00+02:00


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "now", "expected"),
    [
        ("22:30", EVENING, "2026-11-30T21:30"),
        ("07:00", EVENING, "2026-12-01T06:00"),
        ("22:00", EVENING, "2026-12-01T21:00"),  # now is not to come
        ("21:59:30", EVENING, "2026-12-01T20:59:30"),
        ("+8h", EVENING, "2026-12-01T05:00"),
        ("+1h30m", EVENING, "2026-11-30T22:30"),
        ("+45s", EVENING, "2026-11-30T21:00:45"),
        ("2026-12-01T07:00", EVENING, "2026-12-01T06:00"),
        ("2026-12-01 07:00", EVENING, "2026-12-01T06:00"),
        ("2026-12-01T07:00Z", EVENING, "2026-12-01T07:00"),
        ("2026-12-01T07:00-05:00", EVENING, "2026-12-01T12:00"),
        # A night in which an hour is left out, and one that has an hour twice.
        ("07:00", BEFORE_SUMMER, "2027-03-28T05:00"),
        ("+8h", BEFORE_SUMMER, "2027-03-28T05:00"),
        ("07:00", BEFORE_WINTER, "2026-10-25T06:00"),
        ("+8h", BEFORE_WINTER, "2026-10-25T04:00"),
    ],
)
def test_a_time_is_the_next_of_its_kind(text: str, now: datetime, expected: str) -> None:
    found = parse_instant(text, now, BERLIN)
    assert (found.utc, found.note) == (utc(expected), "")


@pytest.mark.parametrize("text", ["02:30", "2027-03-28T02:30", "02:00", "02:59:59"])
def test_a_time_that_does_not_exist_is_the_change_of_clocks(text: str) -> None:
    found = parse_instant(text, BEFORE_SUMMER, BERLIN)
    assert found.utc == utc("2027-03-28T01:00")
    assert "does not exist on 2027-03-28" in found.note
    assert "03:00+02:00" in found.note


def test_a_time_that_exists_twice_is_the_first_that_is_to_come() -> None:
    first = parse_instant("02:30", BEFORE_WINTER, BERLIN)
    assert first.utc == utc("2026-10-25T00:30")
    assert "comes twice on 2026-10-25" in first.note
    assert "the first, 02:30+02:00" in first.note
    between = parse_instant("02:30", utc("2026-10-25T00:45"), BERLIN)
    assert between.utc == utc("2026-10-25T01:30")
    assert "the second, 02:30+01:00" in between.note
    assert parse_instant("02:30", utc("2026-10-25T01:45"), BERLIN).utc == utc("2026-10-26T01:30")


@pytest.fixture
def in_berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Europe/Berlin")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("in_berlin")
def test_without_a_zone_the_machine_knows_its_changes_of_clocks() -> None:
    for text, now in (("02:30", BEFORE_SUMMER), ("02:30", BEFORE_WINTER), ("07:00", EVENING)):
        assert parse_instant(text, now) == parse_instant(text, now, BERLIN)
    assert local_text(utc("2026-10-25T00:30")) == "02:30+02:00"


@pytest.mark.parametrize(
    "text", ["", "7", "25:00", "07:61", "tomorrow", "+", "+8", "8h", "2026-12-01", "-1h", "7:00x"]
)
def test_what_is_no_time_is_refused_with_the_forms(text: str) -> None:
    with pytest.raises(ConfigError, match="write 07:00"):
        parse_instant(text, EVENING, BERLIN)


@pytest.mark.parametrize(
    ("text", "why"), [("2026-11-30T21:59", "over"), ("+9999h", "year"), ("+0h", "over")]
)
def test_a_time_that_is_over_or_far_away_is_refused(text: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        parse_instant(text, EVENING, BERLIN)


def test_times_are_shown_with_their_offset() -> None:
    assert local_text(utc("2026-10-25T00:30"), zone=BERLIN) == "02:30+02:00"
    assert local_text(utc("2026-10-25T01:30"), zone=BERLIN) == "02:30+01:00"
    assert local_text(utc("2026-12-01T06:00"), zone=BERLIN, near=EVENING) == "07:00+01:00"
    later = local_text(utc("2026-12-02T06:00"), zone=BERLIN, near=EVENING)
    assert later == "2026-12-02 07:00+01:00"
