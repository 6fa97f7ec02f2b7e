"""Messages to people while a run goes on: when, what, and that they harm nothing."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from farm.errors import ConfigError, NotifyError, StoreError
from farm.execution.fleet import run_fleet
from farm.execution.notices import (
    LONGEST_TEXT,
    MOST_NOTICES,
    Hook,
    Notices,
    RunFacts,
    duration_text,
)
from farm.interfaces.notifier import Notice, Notifier
from farm.interfaces.sinks import RunEvent
from farm.model.attempt import Outcome
from farm.model.notify import NotifyOn, NotifySpec
from farm.testing.fakes import FakeClock, FakeRun
from tests.execution.lab import Lab, MemoryJournal, NoView

ALL = tuple(NotifyOn)
FACTS = RunFacts("run-1", "night", "/results/run-1", "rack")
BAD = FakeRun(exit_status=1)


class ListNotifier(Notifier):
    def __init__(self, act: Callable[[], object] = lambda: None) -> None:
        self.notices: list[Notice] = []
        self.act = act

    async def send(self, notice: Notice) -> None:
        self.notices.append(notice)
        await asyncio.sleep(0)
        self.act()

    @property
    def events(self) -> list[str]:
        return [notice.event for notice in self.notices]


class HangingNotifier(Notifier):
    def __init__(self) -> None:
        self.was_cancelled = False

    async def send(self, notice: Notice) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            self.was_cancelled = True


def hook(notifier: Notifier, *on: NotifyOn, timeout_s: float = 100) -> Hook:
    spec = NotifySpec(kind="list", on=on or ALL, timeout_s=timeout_s)
    return Hook("notify 1 (list)", spec, lambda: notifier)


def raising(error: Exception) -> Callable[[], object]:
    def act() -> object:
        raise error

    return act


def notices(folder: Path, *hooks: Hook) -> tuple[Notices, MemoryJournal]:
    journal = MemoryJournal(folder)
    return Notices(NoView(), hooks, FACTS, journal, FakeClock()), journal


def trial_end(state: str, board: str = "a", text: str = "") -> RunEvent:
    now = FakeClock().now()
    return RunEvent(now, "trial_end", board, "t-1", "", text, {"state": state})


async def test_the_first_failure_is_told_once(tmp_path: Path) -> None:
    told = ListNotifier()
    sent, _ = notices(tmp_path, hook(told))
    for state in ("done", "pending", "failed", "failed", "unsupported"):
        sent.event(trial_end(state, text="exit status 1\x1b[2J\u202e"))
    await sent.close()
    (notice,) = told.notices
    assert notice.event == "first_failure"
    assert notice.facts["board"] == "a"
    assert "exit status 1?[2J?" in notice.text


async def test_each_board_out_of_the_run_is_told_once_and_a_flood_is_bounded(
    tmp_path: Path,
) -> None:
    told = ListNotifier()
    sent, _ = notices(tmp_path, hook(told, NotifyOn.QUARANTINED))
    for number in range(200):
        event = RunEvent(FakeClock().now(), "quarantined", f"b{number // 2}", text="x" * 9999)
        sent.event(event)
    await sent.close()
    assert len({notice.facts["board"] for notice in told.notices}) == MOST_NOTICES
    assert len(told.notices) == MOST_NOTICES
    assert all(len(notice.text) <= LONGEST_TEXT for notice in told.notices)


async def test_the_end_tells_totals_place_and_how_to_go_on(tmp_path: Path) -> None:
    told = ListNotifier()
    sent, _ = notices(tmp_path, hook(told, NotifyOn.END))
    sent.event(trial_end("failed"))  # not asked for
    sent.ended("finished", {"done": 3, "failed": 2, "pending": 0, "invalid": 1}, [])
    await sent.close()
    (notice,) = told.notices
    assert notice.title == "farm: night finished: 3 done, 2 failed, 0 pending, 1 invalid"
    assert notice.facts["trials"] == 5
    assert notice.facts["command"] == "farm runs show run-1"
    assert "/results/run-1" in notice.text
    assert "rack" in notice.text


@pytest.mark.parametrize(
    ("counts", "faults", "command"),
    [
        ({"done": 3, "failed": 0, "pending": 0}, [], "farm results run-1"),
        ({"done": 3, "failed": 1, "pending": 0}, [], "farm runs show run-1"),
        ({"done": 3, "failed": 1, "pending": 2}, ["a: off"], "farm resume run-1"),
        ({}, ["the disk is full"], "farm resume run-1"),
    ],
)
async def test_the_end_points_to_the_next_step(
    tmp_path: Path, counts: dict[str, int], faults: list[str], command: str
) -> None:
    told = ListNotifier()
    sent, _ = notices(tmp_path, hook(told))
    sent.ended("finished", counts, faults)
    await sent.close()
    assert told.notices[0].facts["command"] == command
    assert all(fault in told.notices[0].text for fault in faults)


async def test_what_goes_wrong_with_a_message_is_an_event_and_no_more(tmp_path: Path) -> None:
    good, hanging = ListNotifier(), HangingNotifier()

    def missing() -> Notifier:
        raise ConfigError("the secret env:X: the environment has no variable X")

    spec = NotifySpec(kind="gone", on=ALL)
    sent, journal = notices(
        tmp_path,
        hook(ListNotifier(raising(NotifyError("said no")))),
        hook(ListNotifier(raising(ZeroDivisionError("SECRET")))),
        hook(hanging, timeout_s=0.01),
        Hook("notify 4 (gone)", spec, missing),
        hook(good),
    )
    sent.ended("finished", {"done": 1}, ["board a: off"])
    await sent.close()
    assert good.events == ["end"]
    assert "board a: off" in good.notices[0].text
    assert hanging.was_cancelled
    assert set(journal.texts("notify_failed")) == {
        "notify 1 (list): said no",
        "notify 1 (list): internal error: ZeroDivisionError",
        "notify 1 (list): no end within 0.01 s",
        "notify 4 (gone): the secret env:X: the environment has no variable X",
    }


async def test_a_store_that_refuses_the_event_harms_nothing(tmp_path: Path) -> None:
    sent, journal = notices(tmp_path, hook(ListNotifier(raising(NotifyError("said no")))))
    journal.record = raising(StoreError("disk full"))  # type: ignore[method-assign, assignment]  # a store that is full
    sent.ended("finished", {}, [])
    await sent.close()


async def test_a_user_who_stops_does_not_wait_for_messages(tmp_path: Path) -> None:
    hanging = HangingNotifier()
    sent, journal = notices(tmp_path, hook(hanging))
    sent.event(trial_end("failed"))
    await asyncio.sleep(0)
    sent.abandon()
    await sent.close()
    assert hanging.was_cancelled
    assert journal.texts("notify_failed") == []


async def test_a_run_goes_its_way_whatever_its_messages_do(tmp_path: Path) -> None:
    outcomes: list[list[tuple[str, Outcome]]] = []
    for act in (None, raising(NotifyError("no"))):
        lab = Lab(tmp_path / str(len(outcomes)))
        lab.add("a", lambda _: BAD)
        told = ListNotifier(act or (lambda: None))
        services = lab.services()
        hooks = (hook(told), hook(HangingNotifier(), timeout_s=0.01)) if act else (hook(told),)
        sent = Notices(NoView(), hooks, FACTS, lab.journal, lab.clock)
        object.__setattr__(services, "progress", sent)
        await run_fleet(lab.plan(), lab.equipment(), services, {}, [])
        await sent.close()
        assert told.events == ["first_failure"]
        outcomes.append([(one.attempt_id, one.outcome) for one in lab.journal.records])
    assert outcomes[0] == outcomes[1]
    assert len(outcomes[0]) == 4


def test_durations_are_words() -> None:
    assert [duration_text(one) for one in (12, 200, 26_000)] == [
        "12 s",
        "3 min 20 s",
        "7 h 13 min",
    ]
