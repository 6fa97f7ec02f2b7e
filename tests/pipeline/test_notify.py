"""The inventory's ``notify:`` and what a run does with it."""

import asyncio
import json
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

from farm.config.builtin import builtin_folder
from farm.config.inventory import load_inventory_document
from farm.config.payloads import load_payloads
from farm.config.profiles import load_profiles
from farm.config.workspace import find_workspace
from farm.errors import ConfigError, DriverError
from farm.interfaces.sinks import Progress, RunEvent
from farm.model.attempt import TrialState
from farm.model.profile import BoardProfile
from farm.pipeline.lab import Lab
from farm.pipeline.notify import hook_faults, open_hooks, send_test
from farm.pipeline.runs import create_run, execute, open_lab_store, plan_sweep
from tests.servers.webhook import webhook

INVENTORY = """\
boards:
  a: {profile: generic-linux, host: 127.0.4.1, user: u}
  b: {profile: generic-linux, host: 127.0.4.2, user: u}
"""
SWEEP = "name: s\nboards: all\nrepeats: 1\npayloads: [{payload: mine}]\n"
MANIFEST = """\
name: mine
level: 1
summary: a test
command: [python3, run.py]
metrics: {rate: {unit: 1/s}}
"""


class View(Progress):
    def __init__(self) -> None:
        self.events: list[RunEvent] = []

    def event(self, event: RunEvent) -> None:
        self.events.append(event)

    def watts(self, board: str, power_w: float) -> None:
        pass


@cache
def profiles() -> Mapping[str, BoardProfile]:
    """Those that are built in: to read them takes longer than all the rest."""
    return load_profiles([builtin_folder("device_profiles")])


def lab_with(folder: Path, notify: str) -> Lab:
    for name in ("sweeps", "payloads/mine"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "inventory.yaml").write_text(INVENTORY + notify)
    (folder / "sweeps" / "s.yaml").write_text(SWEEP)
    (folder / "payloads" / "mine" / "payload.yaml").write_text(MANIFEST)
    (folder / "payloads" / "mine" / "run.py").write_text("print(1)\n")
    workspace = find_workspace(folder, {})
    inventory, document = load_inventory_document(workspace.inventory_path, profiles())
    payloads = load_payloads([folder / "payloads"])
    return Lab(workspace, inventory, document, profiles(), payloads)


@pytest.mark.parametrize(
    ("entry", "error"),
    [
        ("{kind: webhook}", r'inventory\.yaml:5:5: a webhook needs "url"'),
        ("{kind: command}", r'inventory\.yaml:5:5: a command hook needs "command"'),
        ("{kind: command, command: [x], options: {a: 1}}", r'inventory\.yaml:5:.*"a"'),
        ("{kind: webhook, url: 'env:X', options: {text: 1}}", r"inventory\.yaml:5:.*text_key"),
    ],
)
def test_an_entry_that_can_never_work_is_told_with_its_place(
    tmp_path: Path, entry: str, error: str
) -> None:
    with pytest.raises(ConfigError, match=error):
        open_hooks(lab_with(tmp_path, f"notify:\n  - {entry}\n"))


@pytest.mark.parametrize(
    ("entry", "error"),
    [
        ("{kind: webhook, url: 'https://chat.example/SECRET'}", r":5:26: \"url\" should be a ref"),
        ("{kind: webhook, on: [sunset], url: 'env:X'}", r":5:26: "),
        ("{kind: webhook, on: [], url: 'env:X'}", r":5:\d+: "),
        ("{url: 'env:X'}", r":5:5: .*kind"),
        ("webhook", r":5:5: "),
    ],
)
def test_a_wrong_entry_is_refused_with_the_inventory(
    tmp_path: Path, entry: str, error: str
) -> None:
    with pytest.raises(ConfigError, match=error) as caught:
        lab_with(tmp_path, f"notify:\n  - {entry}\n")
    assert "SECRET" not in str(caught.value)


def test_an_unknown_kind_lists_the_known(tmp_path: Path) -> None:
    lab = lab_with(tmp_path, "notify:\n  - {kind: pigeon}\n")
    with pytest.raises(DriverError, match="no notifier 'pigeon'; known: apprise, command, webho"):
        open_hooks(lab)


def test_a_missing_library_or_secret_is_told_and_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FARM_TEST_ABSENT", raising=False)
    monkeypatch.setenv("FARM_TEST_PRESENT", "json://127.0.0.1/SECRET")
    monkeypatch.setitem(sys.modules, "apprise", None)
    monkeypatch.delitem(sys.modules, "farm.drivers.notifiers.apprise", raising=False)
    hooks = open_hooks(
        lab_with(
            tmp_path,
            "notify:\n  - {kind: webhook, url: 'env:FARM_TEST_ABSENT'}\n"
            "  - {kind: apprise, url: 'env:FARM_TEST_PRESENT'}\n",
        )
    )
    first, second = hook_faults(hooks)
    assert first.startswith("notify 1 (webhook): the secret env:FARM_TEST_ABSENT:")
    assert second.endswith("run `pip install 'jetfarm[notify]'`")


def test_a_file_with_an_address_lies_beside_the_inventory(tmp_path: Path) -> None:
    lab = lab_with(tmp_path, "notify:\n  - {kind: webhook, url: 'file:secrets/hook'}\n")
    assert lab.inventory.notify[0].url == f"file:{tmp_path}/secrets/hook"


async def test_a_test_message_goes_by_every_hook(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with webhook() as hooked:
        monkeypatch.setenv("FARM_TEST_HOOK", hooked.url)
        lab = lab_with(
            tmp_path,
            "notify:\n"
            "  - {kind: webhook, on: [quarantined], url: 'env:FARM_TEST_HOOK', timeout_s: 100}\n"
            "  - {kind: command, command: ['false'], timeout_s: 100}\n",
        )
        sent = await send_test(lab)
    assert sent == [
        ("notify 1 (webhook)", ""),
        ("notify 2 (command)", "notify 2 (command): false: exit status 1"),
    ]
    assert hooked.bodies[0]["event"] == "test"


async def test_the_end_of_a_run_is_told_and_no_hook_touches_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A good hook, a hanging server and a failing command, in one run of decided trials."""
    monkeypatch.delenv("FARM_DATABASE_URL", raising=False)
    out = tmp_path / "told.json"
    async with webhook() as hooked, webhook() as hanging:
        hanging.is_hanging = True
        monkeypatch.setenv("FARM_TEST_HOOK", hooked.url)
        monkeypatch.setenv("FARM_TEST_HANGING", hanging.url)
        lab = lab_with(
            tmp_path,
            "notify:\n"
            "  - {kind: webhook, url: 'env:FARM_TEST_HOOK', timeout_s: 100}\n"
            "  - {kind: webhook, url: 'env:FARM_TEST_HANGING', timeout_s: 0.5}\n"
            "  - {kind: command, command: [/bin/sh, -c, 'exit 7'], timeout_s: 100}\n"
            f"  - {{kind: command, command: [/bin/sh, -c, 'cat > {out}'], timeout_s: 100}}\n"
            "  - {kind: command, on: [first_failure], command: ['false']}\n",
        )
        with open_lab_store(lab) as store:
            run_id = create_run(lab, store, plan_sweep(lab, "s"))
            journal = store.journal(run_id)
            for trial in store.load_plan(run_id).trials:
                await journal.set_trial_state(trial.trial_id, TrialState.UNSUPPORTED, "no")
            await journal.close()
            view = View()
            end = await execute(lab, store, run_id, view)
            faults = [event.text for event in store.events(run_id, kinds=("notify_failed",))]
            state = store.run(run_id).state
            log = (store.run_folder(run_id) / "farm.jsonl").read_text()
    assert end.is_complete
    assert state == "finished"
    (body,) = hooked.bodies
    assert (body["event"], body["state"], body["unsupported"]) == ("end", "finished", 2)
    assert body["run"] == run_id
    assert json.loads(out.read_text())["command"] == f"farm results {run_id}"
    assert sorted(faults) == [
        "notify 2 (webhook): no end within 0.5 s",
        "notify 3 (command): /bin/sh: exit status 7",
    ]
    assert [event.text for event in view.events if event.kind == "notify_failed"]
    assert "exit status 7" in log
    assert "SECRET" not in log + "".join(faults)


def test_notify_is_no_part_of_a_runs_identity(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FARM_DATABASE_URL", raising=False)
    digests = []
    for notify in ("", "notify: [{kind: command, command: [x]}]\n"):
        lab = lab_with(tmp_path, notify)
        with open_lab_store(lab) as store:
            run_id = create_run(lab, store, plan_sweep(lab, "s"))
            digests.append(store.run(run_id).inventory_digest)
    assert digests[0] == digests[1]


def test_a_run_without_hooks_makes_no_message(tmp_path: Path) -> None:
    lab = lab_with(tmp_path, "")
    assert open_hooks(lab) == ()
    assert asyncio.run(send_test(lab)) == []
