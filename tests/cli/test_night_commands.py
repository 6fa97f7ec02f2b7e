"""`--at` and `--finish-by` on the command line, and what the views show of them."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from farm.cli.live import RunView
from farm.cli.plan_view import span_text
from farm.interfaces.sinks import RunEvent
from tests.cli.lab_files import farm, make_workspace, store_run
from tests.cli.test_live import HandClock, ended, make_plan


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("FARM_DATABASE_URL", raising=False)
    return make_workspace(tmp_path / "lab")


def test_a_plan_says_until_when_and_from_what_it_knows_that(lab: Path) -> None:
    text = farm("plan", "small", "-w", lab).out
    assert "begun now, it ends" in text
    assert "estimated from defaults: 8 trials" in text
    store_run(lab)
    text = farm("plan", "small", "-w", lab).out
    assert "this lab's history of the same cells" in text


def test_what_is_left_out_is_shown_and_counted(lab: Path) -> None:
    asked = ("plan", "small", "-w", lab, "--at", "+1h", "--finish-by")
    text = farm(*asked, "+6m").out
    assert "trials left out to finish by" in text
    made = json.loads(farm(*asked, "+6m", "--json").out)
    kept = {trial["trial"] for lane in made["lanes"] for trial in lane["trials"]}
    assert len(kept) + len(made["left_out"]) == 8
    assert not kept & set(made["left_out"])
    assert all(trial.endswith("-r02") for trial in made["left_out"])
    assert made["estimate"]["low_s"] < made["estimate"]["mid_s"] < made["estimate"]["high_s"]
    start, end = (datetime.fromisoformat(made[key]) for key in ("start_at", "finish_by"))
    assert end - start == timedelta(minutes=6)
    safe = json.loads(farm(*asked, "+6m", "--safe", "--json").out)
    assert len(safe["left_out"]) > len(made["left_out"])
    assert safe["estimate"]["high_s"] <= 360
    everything = json.loads(farm(*asked, "+9h", "--json").out)
    assert everything["left_out"] == []


@pytest.mark.parametrize("option", ["--at", "--finish-by"])
def test_times_that_are_none_make_no_run(lab: Path, option: str) -> None:
    answer = farm("run", "small", "-w", lab, option, "tomorrow")
    assert answer.code == 2
    assert "write 07:00" in answer.err
    assert not (lab / "results").exists()


def test_a_view_counts_down_to_the_start_and_takes_the_pace_from_there() -> None:
    clock = HandClock()
    view = RunView(make_plan({"a": 10}), {}, clock)
    begin = datetime.now(UTC) + timedelta(hours=2)
    view.event(RunEvent(begin, "waiting", data={"begin": begin.isoformat()}))
    assert "begins " in view.head()
    assert "in 120 min" in view.head() or "in 2 h 00 min" in view.head()
    clock.now_s += 7200
    view.event(RunEvent(begin, "begins"))
    assert "begins" not in view.head()
    assert view.eta_s() == pytest.approx(600)
    clock.now_s += 60
    view.event(ended("a", 1))
    assert view.eta_s() == pytest.approx(540)
    assert "ETA " in view.head()


def test_a_view_of_what_is_left_counts_what_was_done() -> None:
    view = RunView(
        make_plan({"a": 4, "b": 0}), {}, HandClock(), decided={"a": (6, 1), "b": (5, 0)}
    )
    assert (view.ended, view.total) == (11, 15)
    assert (view.rows["a"].bad, view.rows["b"].state) == (1, "finished")
    assert view.eta_s() == pytest.approx(240)


def test_a_span_names_its_offset_once_unless_clocks_change() -> None:
    assert span_text("05:40+01:00", "06:20+01:00") == "05:40\N{EN DASH}06:20+01:00"
    assert span_text("02:40+02:00", "02:20+01:00") == "02:40+02:00\N{EN DASH}02:20+01:00"
    assert span_text("06:20+01:00", "06:20+01:00") == "06:20+01:00"
