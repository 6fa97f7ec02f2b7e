"""Nights with outages drawn at random, in virtual time: what must hold after each of them."""

import asyncio
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from farm.execution.fleet import run_fleet
from farm.execution.recovery_counts import Spent
from farm.model.attempt import Outcome, TrialState
from farm.model.sweep import Limits, RecoveryLimits
from farm.testing.fake_outlet import FakeOutlet
from farm.testing.fakes import FakeRun
from tests.execution.lab import Lab
from tests.execution.test_twins import cells, plan_of

GOOD = FakeRun(metrics={"throughput": (50.0, "images/s")})
LIMITS = Limits(
    retries=2,
    connect_retries=2,
    recovery=RecoveryLimits(power_cycles_per_board=1, power_cycles_per_night=2, rest_s=300),
)
BOARDS = ("a", "b", "c")


@dataclass(frozen=True)
class Outage:
    """These boards are away from `after_s` on for `for_s`; a power cut also reboots them."""

    boards: tuple[str, ...]
    after_s: float
    for_s: float
    is_power: bool


OUTAGES = st.builds(
    Outage,
    st.lists(st.sampled_from(BOARDS), min_size=1, max_size=3, unique=True).map(tuple),
    st.floats(0, 600),
    st.sampled_from([1.0, 20.0, 120.0, 1000.0, 9000.0, 1e9]),
    st.booleans(),
)


async def have(lab: Lab, outage: Outage, away: Counter[str]) -> None:
    await lab.clock.sleep(outage.after_s)
    for name in outage.boards:
        away[name] += 1
        lab.boards[name].transport.is_cut = True
    await lab.clock.sleep(outage.for_s)
    for name in outage.boards:
        away[name] -= 1
        if outage.is_power:
            lab.boards[name].agent.reboot()
        lab.boards[name].transport.is_cut = away[name] > 0


def add(lab: Lab, name: str, away: Counter[str]) -> FakeOutlet:
    """A board behind an outlet, by which a hang ends."""
    board = lab.add(name, lambda _: GOOD)

    def on_change(is_on: bool) -> None:
        board.transport.is_cut = not is_on or away[name] > 1
        if is_on:
            board.agent.reboot()

    board.outlet = outlet = FakeOutlet(on_change)
    return outlet


@settings(max_examples=8, deadline=None, derandomize=True)
@given(outages=st.lists(OUTAGES, max_size=4), is_any=st.booleans())
def test_after_any_night(outages: list[Outage], is_any: bool) -> None:
    async def night(folder: Path) -> None:
        lab, away = Lab(folder, limits=LIMITS), Counter[str]()
        outlets = {name: add(lab, name, away) for name in BOARDS}
        plan = plan_of(
            lab, *(cells(name, 3, is_any=is_any, first=10 * at) for at, name in enumerate(BOARDS))
        )
        tasks = [asyncio.create_task(have(lab, outage, away)) for outage in outages]
        end = await run_fleet(plan, lab.equipment(), lab.services(), {}, [])
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

        assert all(outlet.is_now_on for outlet in outlets.values())
        spent = Spent(lab.journal.events)
        assert max(spent.power_cycles.values(), default=0) <= 1
        assert spent.power_cycles.total() <= 2
        good = Counter(
            record.trial_id for record in lab.journal.records if record.outcome is Outcome.OK
        )
        assert not good or max(good.values()) == 1
        states = {t.trial_id: lab.journal.states.get(t.trial_id) for t in plan.trials}
        assert set(states.values()) <= {TrialState.DONE, TrialState.PENDING, TrialState.FAILED}
        done = {trial for trial, state in states.items() if state is TrialState.DONE}
        assert done == set(good)
        if TrialState.PENDING in states.values():
            assert any(lane.fault for lane in end.lanes)
        if not is_any:
            assert not lab.journal.moved
        if not outages:
            assert len(done) == len(plan.trials)

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(night(Path(folder)))
