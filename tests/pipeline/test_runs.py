"""Runs put together from a workspace, without driving a board."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from farm.errors import ConfigError, RunHeldError, StoreError
from farm.execution.system_clock import SystemClock
from farm.interfaces.sinks import Progress, RunEvent
from farm.model.attempt import TrialState
from farm.model.power_mode import PowerModeState
from farm.pipeline.equipment import equip
from farm.pipeline.lab import Lab, open_lab
from farm.pipeline.runs import RunEnd, create_run, execute, open_lab_store, plan_sweep
from farm.pipeline.runs import _originals as originals
from farm.store.database import Store
from tests.store.builders import NOW

INVENTORY = """\
boards:
  a: {profile: generic-linux, host: 127.0.4.1, user: u, meter: plug}
  b: {profile: generic-linux, host: 127.0.4.2, user: u, meter: plug}
  c: {profile: generic-linux, host: 127.0.4.3, user: u}
meters:
  plug: {kind: shelly, host: 127.0.5.1}
"""
SWEEP = "name: s\nboards: all\nrepeats: 1\npayloads: [{payload: mine}]\n"
MANIFEST = """\
name: mine
level: 1
summary: a test
command: [python3, run.py]
metrics: {rate: {unit: 1/s}}
"""


class NoView(Progress):
    def event(self, event: RunEvent) -> None:
        pass

    def watts(self, board: str, power_w: float) -> None:
        pass


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    monkeypatch.delenv("FARM_DATABASE_URL", raising=False)
    for folder in ("sweeps", "payloads/mine"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "inventory.yaml").write_text(INVENTORY)
    (tmp_path / "sweeps" / "s.yaml").write_text(SWEEP)
    (tmp_path / "payloads" / "mine" / "payload.yaml").write_text(MANIFEST)
    (tmp_path / "payloads" / "mine" / "run.py").write_text("print(1)\n")
    return open_lab(tmp_path)


@pytest.fixture
def store(lab: Lab) -> Iterator[Store]:
    with open_lab_store(lab) as opened:
        yield opened


def run(lab: Lab, store: Store, run_id: str) -> RunEnd:
    return asyncio.run(execute(lab, store, run_id, NoView()))


def test_boards_on_one_meter_share_its_feed(lab: Lab) -> None:
    equipment = equip(lab, plan_sweep(lab, "s"), SystemClock())
    assert set(equipment) == {"a", "b", "c"}
    assert equipment["a"].feed is equipment["b"].feed is not None
    assert equipment["c"].feed is None


def test_a_sweep_without_power_opens_no_meter(lab: Lab) -> None:
    path = lab.workspace.root / "sweeps" / "s.yaml"
    path.write_text(SWEEP + "measure: {power: 'off'}\n")
    equipment = equip(lab, plan_sweep(lab, "s"), SystemClock())
    assert [one.feed for one in equipment.values()] == [None] * 3


def test_a_wrong_option_of_a_meter_is_told_with_its_place(lab: Lab) -> None:
    root = lab.workspace.root
    wrong = INVENTORY.replace("127.0.5.1}", "127.0.5.1, options: {chanel: 1}}")
    (root / "inventory.yaml").write_text(wrong)
    changed = open_lab(root)
    with pytest.raises(ConfigError, match=r"inventory\.yaml:6:.*chanel"):
        equip(changed, plan_sweep(changed, "s"), SystemClock())


def test_a_board_that_left_the_inventory_stops_a_resume(lab: Lab, store: Store) -> None:
    run_id = create_run(lab, store, plan_sweep(lab, "s"))
    root = lab.workspace.root
    (root / "inventory.yaml").write_text(INVENTORY.replace("  c:", "  d:"))
    with pytest.raises(ConfigError, match=r"needs board 'c'"):
        run(open_lab(root), store, run_id)


@pytest.mark.parametrize(("change", "word"), [("print(2)\n", "has changed"), (None, "is gone")])
def test_a_changed_payload_stops_a_resume(
    lab: Lab, store: Store, change: str | None, word: str
) -> None:
    run_id = create_run(lab, store, plan_sweep(lab, "s"))
    root = lab.workspace.root
    if change is None:
        (root / "payloads" / "mine").rename(root / "away")
    else:
        (root / "payloads" / "mine" / "run.py").write_text(change)
    with pytest.raises(ConfigError, match=word):
        run(open_lab(root), store, run_id)
    assert {one.state for one in store.progress(run_id).values()} == {TrialState.PENDING}


def test_a_run_that_another_process_works_on_is_refused(lab: Lab, store: Store) -> None:
    run_id = create_run(lab, store, plan_sweep(lab, "s"))
    with store.lock_run(run_id), pytest.raises(RunHeldError):
        run(lab, store, run_id)


def test_a_run_with_nothing_left_ends_at_once(lab: Lab, store: Store) -> None:
    run_id = create_run(lab, store, plan_sweep(lab, "s"))

    async def decide_all() -> None:
        journal = store.journal(run_id)
        for trial in store.load_plan(run_id).trials:
            await journal.set_trial_state(trial.trial_id, TrialState.UNSUPPORTED, "no")
        await journal.close()

    asyncio.run(decide_all())
    end = run(lab, store, run_id)
    assert end.counts == {TrialState.UNSUPPORTED: 3}
    assert end.is_complete
    assert store.run(run_id).state == "finished"


def test_looking_at_results_makes_no_store(lab: Lab) -> None:
    with pytest.raises(StoreError):
        open_lab_store(lab, create=False)
    assert not lab.workspace.results_dir.exists()


@pytest.mark.parametrize(
    ("counts", "is_complete"),
    [
        ({TrialState.DONE: 2, TrialState.UNSUPPORTED: 1}, True),
        ({}, True),
        ({TrialState.DONE: 2, TrialState.FAILED: 1}, False),
        ({TrialState.DONE: 2, TrialState.PENDING: 1}, False),
        ({TrialState.DONE: 2, TrialState.SKIPPED: 1}, True),
    ],
)
def test_a_run_is_complete_when_nothing_is_left_to_explain(
    counts: dict[TrialState, int], is_complete: bool
) -> None:
    assert RunEnd("r", counts, ()).is_complete is is_complete


def test_a_board_that_was_put_back_has_no_original_state_to_restore(
    lab: Lab, store: Store
) -> None:
    run_id = create_run(lab, store, plan_sweep(lab, "s"))
    state = PowerModeState(name="MAXN", id=0)

    async def record() -> None:
        journal = store.journal(run_id)
        data = {"state": state.model_dump(mode="json")}
        for kind, board in (
            ("original_state", "a"),
            ("original_state", "b"),
            ("restored", "a"),
            ("restore_failed", "b"),
        ):
            journal.record(RunEvent(NOW, kind, board, data=data if "original" in kind else {}))
        await journal.close()

    asyncio.run(record())
    assert originals(store, run_id) == {"b": state}
