"""Heartbeats, and what a host notices of its own sleep and of steps of its time of day."""

import asyncio

import pytest

from farm.analysis.clock import clock_problems
from farm.analysis.reasons import ReasonCode
from farm.errors import RunHeldError, StoreError
from farm.model.measurement import ClockExchange
from farm.pipeline.life_signs import ClockWatch, HostClocks, SystemClocks, show_life


class HandClocks(HostClocks):
    def __init__(self) -> None:
        self.awake_s, self.slept_s, self.utc_s = 100.0, 7.0, 1.7e9

    def monotonic(self) -> float:
        return self.awake_s

    def boottime(self) -> float:
        return self.awake_s + self.slept_s

    def utc(self) -> float:
        return self.utc_s

    def wait(self, seconds: float) -> None:
        self.awake_s += seconds
        self.utc_s += seconds

    def suspend(self, seconds: float) -> None:
        self.slept_s += seconds
        self.utc_s += seconds


class Watch:
    def __init__(self, clocks: HostClocks) -> None:
        self.told: list[tuple[str, str]] = []
        self.watch = ClockWatch(clocks, lambda kind, text: self.told.append((kind, text)))

    def look(self) -> list[tuple[str, str]]:
        self.told.clear()
        self.watch.look()
        return list(self.told)


def test_a_suspend_is_told_once_with_how_long() -> None:
    clocks = HandClocks()
    watch = Watch(clocks)
    clocks.wait(5)
    assert watch.look() == []
    clocks.suspend(3600)
    clocks.wait(5)
    ((kind, text),) = watch.look()
    assert kind == "host_suspended"
    assert "3600 s" in text
    clocks.wait(5)
    assert watch.look() == []


@pytest.mark.parametrize(("step_s", "words"), [(3600.0, "forward by 3600"), (-90.0, "back by 90")])
def test_a_step_of_the_time_of_day_is_told(step_s: float, words: str) -> None:
    clocks = HandClocks()
    watch = Watch(clocks)
    clocks.utc_s += step_s
    ((kind, text),) = watch.look()
    assert kind == "clock_stepped"
    assert words in text
    assert watch.look() == []


def test_slewing_and_both_at_once() -> None:
    clocks = HandClocks()
    watch = Watch(clocks)
    clocks.utc_s += 0.5
    assert watch.look() == []
    clocks.suspend(60)
    clocks.utc_s -= 60  # it woke with the time at which it fell asleep
    assert [kind for kind, _ in watch.look()] == ["host_suspended", "clock_stepped"]


def test_the_kernels_clocks_agree_while_awake() -> None:
    assert Watch(SystemClocks()).look() == []


async def test_beats_go_on_through_a_store_that_fails_until_another_host_has_the_run() -> None:
    outcomes: list[Exception | None] = [None, StoreError("away"), StoreError("away"), None]
    clocks, told, beats = HandClocks(), [], 0

    def beat() -> None:
        nonlocal beats
        beats += 1
        if beats > len(outcomes):
            raise RunHeldError("taken over")
        if (outcome := outcomes[beats - 1]) is not None:
            raise outcome

    async def sleep(seconds: float) -> None:
        if beats == 2:
            clocks.suspend(30)
        clocks.wait(seconds)
        await asyncio.sleep(0)

    with pytest.raises(RunHeldError, match="taken over"):
        await show_life(beat, lambda kind, text: told.append(kind), clocks, sleep)
    assert beats == 5
    assert told == ["host_suspended"]


def test_a_measurement_across_a_sleep_is_not_trusted() -> None:
    clocks = HandClocks()

    def ask(board_ahead_s: float) -> ClockExchange:
        sent_s, board_s = clocks.monotonic(), clocks.boottime() + board_ahead_s
        clocks.wait(0.004)
        return ClockExchange(
            host_sent_s=sent_s, board_s=board_s, host_received_s=clocks.monotonic()
        )

    before = ask(5000.002)
    clocks.wait(60)
    awake = ask(5000.002)
    assert clock_problems([before], [awake], are_boot_ids_equal=True) == ()
    clocks.suspend(10)
    (problem,) = clock_problems([before], [ask(5000.002)], are_boot_ids_equal=True)
    assert problem.code == ReasonCode.CLOCK_DRIFT
