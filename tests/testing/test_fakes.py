"""The fakes keep the promises of what they stand for."""

import asyncio
from pathlib import Path

import pytest

from farm.errors import LeaseHeldError, LinkLostError, UnsupportedPowerModeError
from farm.interfaces.agent import Job
from farm.model.trace import MeterMiss, MeterReading, MissKind
from farm.testing.fakes import FakeBoardAgent, FakeClock, FakeMeter, FakePowerController, FakeRun


def job(number: int = 1) -> Job:
    return Job(attempt_id=f"a{number}", payload_digest="d", argv=("run",), params={})


async def test_sleepers_wake_in_the_order_of_virtual_time() -> None:
    clock, woken = FakeClock(), []

    async def sleeper(seconds: float, name: str) -> None:
        await clock.sleep(seconds)
        woken.append((name, clock.monotonic()))

    await asyncio.gather(sleeper(3600, "late"), sleeper(1, "early"), sleeper(60, "middle"))
    assert woken == [("early", 1001.0), ("middle", 1060.0), ("late", 4600.0)]
    assert (clock.now().hour, clock.now().minute) == (21, 0)


async def test_a_cancelled_sleeper_moves_no_time() -> None:
    clock = FakeClock()
    task = asyncio.create_task(clock.sleep(1e6))
    await asyncio.sleep(0)
    task.cancel()
    await clock.sleep(5)
    assert clock.monotonic() == 1005.0


async def test_time_can_be_moved_by_hand() -> None:
    clock = FakeClock(is_automatic=False)
    task = asyncio.create_task(clock.sleep(10))
    await asyncio.sleep(0)
    clock.advance(9)
    await asyncio.sleep(0)
    assert not task.done()
    clock.advance(1)
    await task


async def test_meter_holds_its_value_counts_and_misses() -> None:
    clock = FakeClock(is_automatic=False)
    meter = FakeMeter(clock, lambda t: t - 990.0)
    assert isinstance(await meter.read(), MeterMiss)
    await meter.open()
    meter.faults = [MissKind.TIMEOUT]
    missed = await meter.read()
    clock.advance(3.7)
    reading = await meter.read()
    assert isinstance(missed, MeterMiss)
    assert missed.kind is MissKind.TIMEOUT
    assert isinstance(reading, MeterReading)
    assert reading.power_w == 13.0
    assert reading.energy_wh == pytest.approx((11 + 12 + 13) / 3600)


async def test_power_controller_sets_and_restores() -> None:
    controller = FakePowerController()
    original = await controller.current()
    applied = await controller.apply("maxq", "locked")
    assert (applied.name, applied.has_changed, applied.read_back.is_locked) == ("MAXQ", True, True)
    assert not (await controller.apply("current", "locked")).has_changed
    with pytest.raises(UnsupportedPowerModeError, match="MAXN, MAXQ"):
        await controller.apply("10W", "default")
    await controller.restore(original)
    assert await controller.current() == original


async def test_starting_twice_is_one_attempt(tmp_path: Path) -> None:
    clock = FakeClock()
    agent = FakeBoardAgent(clock, lambda _: FakeRun(window_s=30, stdout=b"hi"))
    first = await agent.start(job())
    clock.advance(5)
    again = await agent.start(job())
    assert (first.phase, again.phase) == ("running", "running")
    done = await agent.wait("a1")
    assert done.exit is not None
    assert done.exit.end_s - done.exit.begin_s == 31
    assert clock.monotonic() == pytest.approx(1031, abs=0.01)
    await agent.collect(done.exit, tmp_path)
    assert (tmp_path / "stdout.log").read_bytes() == b"hi"
    assert (tmp_path / "events.jsonl").read_text().count("window_") == 2
    await agent.remove(["a1"])
    assert (await agent.status("a1")).phase == "absent"


async def test_a_board_that_reboots_loses_what_ran_and_keeps_what_was_finished() -> None:
    agent = FakeBoardAgent(FakeClock(), lambda job: FakeRun(is_lost=job.attempt_id == "a2"))
    await agent.start(job(1))
    assert (await agent.wait("a1")).phase == "finished"
    await agent.start(job(2))
    lost = await agent.wait("a2")
    assert (lost.phase, lost.exit, agent.boot_id) == ("lost", None, "boot-2")
    assert (await agent.status("a1")).phase == "finished"


async def test_a_stopped_attempt_is_finished() -> None:
    agent = FakeBoardAgent(FakeClock())
    await agent.start(job())
    await agent.stop("a1")
    status = await agent.status("a1")
    assert status.exit is not None
    assert (status.exit.ended_by, status.exit.signal) == ("stop", 15)


async def test_scripted_failures_come_once() -> None:
    agent = FakeBoardAgent(FakeClock())
    agent.fail["wait"].append(LinkLostError("wait", "gone"))
    await agent.start(job())
    with pytest.raises(LinkLostError):
        await agent.wait("a1")
    assert (await agent.wait("a1")).phase == "finished"


async def test_one_run_holds_the_lease() -> None:
    clock = FakeClock(is_automatic=False)
    agent = FakeBoardAgent(clock)
    await agent.take_lease("r1", "me", 60)
    with pytest.raises(LeaseHeldError, match="held by me"):
        await agent.take_lease("r2", "you", 60)
    clock.advance(61)
    assert (await agent.take_lease("r2", "you", 60)).run_id == "r2"
