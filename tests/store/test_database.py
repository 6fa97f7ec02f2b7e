"""Runs: made, found, loaded, listed."""

from collections.abc import Callable
from datetime import UTC, timedelta, timezone

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from farm.errors import StoreError
from farm.model.attempt import Outcome, TrialState
from farm.model.plan import Cell, Lane, Plan, Trial
from farm.model.record import Source
from farm.model.sweep import Limits, MeasureRules, PayloadAxes, SettleRule, Sweep
from farm.store.database import Store
from tests.store.builders import NOW, make_plan, make_record, new_run, run_attempt, with_journal


def test_run_id_tells_when_and_what(store: Store) -> None:
    plan = make_plan(name="Night of the TX2!")
    run_id = new_run(store, plan)
    assert run_id.startswith("20261130-2215-night-of-the-tx2-")
    assert len(run_id.rsplit("-", 1)[1]) == 4
    assert new_run(store, plan) != run_id


def test_run_id_is_utc(store: Store) -> None:
    created = NOW.astimezone(timezone(timedelta(hours=-9)))
    run_id = store.create_run(make_plan(), inventory_digest="i", tool_version="1", created=created)
    assert run_id.startswith("20261130-2215-")
    assert store.run(run_id).created == NOW
    assert store.run(run_id).created.tzinfo is UTC


def test_a_plan_comes_back_equal(reopen: Callable[[], Store]) -> None:
    plan = make_plan()
    run_id = new_run(reopen(), plan)
    assert reopen().load_plan(run_id) == plan


def test_a_large_plan(store: Store) -> None:
    plan = make_plan(trials=2_000, boards=10)
    run_id = new_run(store, plan)
    progress = store.progress(run_id)
    assert len(progress) == 20_000
    assert list(progress) == [trial.trial_id for trial in plan.trials]
    assert store.load_plan(run_id) == plan
    assert store.run(run_id).counts == {TrialState.PENDING: 20_000}


def test_a_faulty_plan_leaves_nothing(store: Store) -> None:
    plan = make_plan(trials=2, boards=1)
    lane = plan.lanes[0]
    doubled = Plan(plan.sweep, plan.digest, (lane, lane), plan.estimate_s)
    with pytest.raises(StoreError):
        new_run(store, doubled)
    assert store.runs() == []


def test_one_cell_id_for_two_things_is_refused(store: Store) -> None:
    first, second = make_plan(trials=2, boards=1), make_plan(trials=2, boards=2)
    other = second.lanes[1].trials[0]
    cell = first.lanes[0].trials[0].cell
    clash = Cell(**{**{name: getattr(other.cell, name) for name in Cell.__slots__},
                    "cell_id": cell.cell_id})  # fmt: skip
    lane = Lane("board-1", "p", None, (Trial("other-r01", clash, 1, "board-1"),), 0, 0, 1.0)
    with pytest.raises(StoreError, match="two different things"):
        new_run(store, Plan(first.sweep, "d", (first.lanes[0], lane), 1.0))
    assert store.runs() == []


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
SCALARS = st.one_of(
    TEXT,
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False),
    st.booleans(),
)
PARAMETERS = st.dictionaries(TEXT, SCALARS, max_size=3)
FLOATS = st.floats(0, 1e9)


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    cells = [
        Cell(
            cell_id=f"cell{number}",
            target=draw(TEXT),
            is_any=draw(st.booleans()),
            profile=draw(TEXT),
            payload=draw(TEXT),
            payload_digest=draw(TEXT),
            level=draw(st.integers(0, 3)),
            power_mode=draw(TEXT),
            clocks=draw(st.sampled_from(["default", "locked"])),
            parameters=draw(PARAMETERS),
            priority=draw(st.integers(-(2**63), 2**63 - 1)),
        )
        for number in range(draw(st.integers(1, 4)))
    ]
    lanes = []
    for number in range(draw(st.integers(0, 3))):
        trials = tuple(
            Trial(f"l{number}t{index}", draw(st.sampled_from(cells)), index + 1, draw(TEXT))
            for index in range(draw(st.integers(0, 4)))
        )
        meter = draw(st.none() | TEXT)
        lanes.append(Lane(draw(TEXT), draw(TEXT), meter, trials, 2, 1, draw(FLOATS)))
    axes = draw(st.dictionaries(TEXT, st.lists(SCALARS, max_size=3).map(tuple), max_size=2))
    sweep = Sweep(
        name=draw(TEXT),
        payloads=(
            PayloadAxes(
                payload="p",
                axes=axes,
                include=(draw(PARAMETERS),),
                exclude=({**draw(PARAMETERS), "any": (1, 1.5, "a", True)},),
            ),
        ),
        seed=draw(st.integers()),
        measure=MeasureRules(window_s=2.5, settle=SettleRule(max_temperature_c=41.5)),
        limits=Limits(retries=0, reboot=True),
    )
    skipped = tuple(draw(st.lists(TEXT, max_size=2)))
    return Plan(sweep, draw(TEXT), tuple(lanes), draw(FLOATS), skipped)


@given(plan=plans())
@settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_any_plan_comes_back_equal(store: Store, plan: Plan) -> None:
    run_id = new_run(store, plan)
    loaded = store.load_plan(run_id)
    assert loaded == plan
    for trial, wanted in zip(loaded.trials, plan.trials, strict=True):
        types = {key: type(value) for key, value in trial.cell.parameters.items()}
        assert types == {key: type(value) for key, value in wanted.cell.parameters.items()}


def test_a_number_too_large_for_a_column_is_a_store_error(store: Store) -> None:
    plan = make_plan(trials=1, boards=1)
    cell = plan.lanes[0].trials[0].cell
    huge = Cell(**{**{name: getattr(cell, name) for name in Cell.__slots__},
                   "priority": 2**70})  # fmt: skip
    lane = Lane("b", "p", None, (Trial("t-r01", huge, 1, "b"),), 0, 0, 1.0)
    with pytest.raises(StoreError):
        new_run(store, Plan(plan.sweep, "d", (lane,), 1.0))
    new_run(store)  # the writer goes on


def test_find_run(store: Store) -> None:
    with pytest.raises(StoreError, match="no runs yet"):
        store.find_run("last")
    with pytest.raises(StoreError, match="there are none yet"):
        store.find_run("x")
    first, second = new_run(store, make_plan(name="a")), new_run(store, make_plan(name="b"))
    assert store.find_run("last") == second
    assert store.find_run(first) == first
    assert store.find_run("20261130-2215-a") == first
    with pytest.raises(StoreError, match="begins 2 runs") as ambiguous:
        store.find_run("2026")
    assert first in str(ambiguous.value)
    assert second in str(ambiguous.value)
    with pytest.raises(StoreError, match="no run '2027'; there are: ") as unknown:
        store.find_run("2027")
    assert first in str(unknown.value)
    with pytest.raises(StoreError, match="no run ''"):
        store.find_run("")


def test_a_wildcard_finds_no_run(store: Store) -> None:
    new_run(store)
    for hostile in ("%", "_", "' OR 1=1 --", "../.."):
        with pytest.raises(StoreError, match="no run"):
            store.find_run(hostile)


def test_runs_tell_state_counts_and_source(store: Store) -> None:
    run_id = new_run(store)
    empty = new_run(store, make_plan(trials=0))
    before = store.run(run_id)
    assert (before.state, before.source) == ("running", None)
    with_journal(store, run_id, lambda j: run_attempt(j, make_record(run_id)))
    with_journal(
        store,
        run_id,
        lambda j: run_attempt(
            j,
            make_record(run_id, "c01000001-r02", outcome=Outcome.FAILED, board="board-1"),
            TrialState.FAILED,
        ),
    )
    store.set_run_state(run_id, "interrupted")
    first, second = store.runs()
    assert first == store.run(run_id)
    assert first.counts == {TrialState.DONE: 1, TrialState.FAILED: 1, TrialState.PENDING: 6}
    assert first.source is Source.SIMULATED
    assert (first.state, first.heartbeat) == ("interrupted", NOW)
    assert (first.tool_version, first.inventory_digest) == ("0.1", "0123456789abcdef")
    assert (second.run_id, second.counts) == (empty, {})


def test_unknown_runs_and_states_are_refused(store: Store) -> None:
    run_id = new_run(store)
    with pytest.raises(StoreError, match="no such state"):
        store.set_run_state(run_id, "paused")
    for call in (store.load_plan, store.run, store.progress, store.results, store.journal,
                 store.last_holder):  # fmt: skip
        with pytest.raises(StoreError, match="no run 'nope'"):
            call("nope")


def test_paths_stay_in_the_results_folder(store: Store) -> None:
    run_id = new_run(store)
    for hostile in ("../../etc", "a/b", ".", "..", "", "a\0b", "-rf"):
        with pytest.raises(StoreError, match="folder's name"):
            store.attempt_folder(run_id, hostile)
        with pytest.raises(StoreError, match="folder's name"):
            store.run_folder(hostile)


def test_a_closed_store_refuses_writes(store: Store) -> None:
    run_id = new_run(store)
    store.close()
    store.close()
    with pytest.raises(StoreError, match="closed"):
        store.set_run_state(run_id, "finished")
