"""Every command on a workspace with stored results: what it prints, what it refuses, its code."""

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from typer.main import get_command

from farm.cli.main import app
from tests.cli.lab_files import HOSTILE, farm, make_workspace, store_run

CONTROL = {*map(chr, range(32)), *map(chr, range(0x7F, 0xA0)), "\u202e"} - {"\n"}


@pytest.fixture(autouse=True)
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No workspace of the developer's may be found."""
    monkeypatch.delenv("FARM_WORKSPACE", raising=False)
    monkeypatch.delenv("FARM_DATABASE_URL", raising=False)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    return make_workspace(tmp_path / "lab")


@pytest.fixture
def run_id(lab: Path) -> str:
    return store_run(lab)


def command_names() -> list[str]:
    names = []
    for name, command in sorted(get_command(app).commands.items()):  # type: ignore[attr-defined]
        below = getattr(command, "commands", None)
        names += [f"{name} {one}" for one in sorted(below)] if below else [name]
    return names


@pytest.mark.parametrize("command", command_names())
def test_every_command_has_help_that_tells_what_it_does(command: str) -> None:
    answer = farm(*command.split(), "--help")
    assert answer.code == 0
    assert "Usage: farm " in answer.out or "Usage: root " in answer.out
    assert len(answer.out.splitlines()) > 5


def test_help_lists_the_commands_and_the_version_is_told() -> None:
    answer = farm("--help")
    for name in ("init", "plan", "run", "resume", "results", "compare", "report", "demo"):
        assert name in answer.out
    assert farm("-h").out == answer.out
    assert farm("--version").out.startswith("farm ")
    assert farm("nonsense").code == 2


def test_a_new_workspace_plans_its_first_sweep(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    answer = farm("init", folder)
    assert answer.code == 0
    assert "wrote" in answer.out
    assert json.loads((folder / ".farm" / "schema" / "inventory.json").read_text())
    plan = json.loads(farm("plan", "first", "-w", folder, "--json").out)
    assert [lane["board"] for lane in plan["lanes"]] == ["tx2-01"]
    assert len(plan["lanes"][0]["trials"]) == 6
    again = farm("init", folder)
    assert again.code == 2
    assert "there is a workspace here already" in again.err


@pytest.mark.parametrize("kind", ["inventory", "sweep", "payload", "profile"])
def test_schemas_are_json(kind: str) -> None:
    assert json.loads(farm("schema", kind).out)["properties"]


def test_an_unknown_schema_is_refused() -> None:
    answer = farm("schema", "invntory")
    assert answer.code == 2
    assert "inventory" in answer.err


def test_boards_are_listed_and_selected(lab: Path) -> None:
    text = farm("boards", "list", "-w", lab).out
    assert "tx2-01" in text
    assert "simulated" in text
    found = json.loads(farm("boards", "list", "tx2-02", "-w", lab, "--json").out)
    assert [board["name"] for board in found] == ["tx2-02"]
    answer = farm("boards", "list", "tx9-01", "-w", lab)
    assert answer.code == 2
    assert "tx2-01" in answer.err


def test_meters_are_listed_with_what_they_feed(lab: Path) -> None:
    lines = farm("meters", "list", "-w", lab).out.splitlines()
    (line,) = [line for line in lines if "plug-02" in line]
    assert "tx2-02" in line
    found = json.loads(farm("meters", "list", "-w", lab, "--json").out)
    assert [meter["name"] for meter in found] == ["plug-01", "plug-02"]


def test_payloads_are_listed_and_shown(lab: Path) -> None:
    text = farm("payloads", "list", "-w", lab).out
    assert "matmul" in text
    assert "replay-cnn" in text
    listed = json.loads(farm("payloads", "list", "-w", lab, "--json").out)
    shown = json.loads(farm("payloads", "show", "matmul", "-w", lab).out)
    assert shown in listed
    answer = farm("payloads", "show", "matmull", "-w", lab)
    assert answer.code == 2
    assert "matmul" in answer.err


def test_a_payload_folder_is_checked(tmp_path: Path) -> None:
    good = Path(__file__).parents[2] / "payloads" / "matmul"
    assert farm("payloads", "check", good).code == 0
    bad = tmp_path / "bad"
    bad.mkdir()
    (bad / "payload.yaml").write_text("name: bad\nlevle: 1\n")
    answer = farm("payloads", "check", bad)
    assert answer.code == 2
    assert "levle" in answer.err
    assert answer.out == ""
    assert farm("payloads", "check", tmp_path / "none").code == 2


def test_a_plan_is_a_table_or_json(lab: Path) -> None:
    text = farm("plan", "small", "-w", lab).out
    assert "small: 8 trials of 4 cells on 2 boards" in text
    plan = json.loads(farm("plan", "small", "-w", lab, "--json").out)
    assert plan["sweep"] == "small"
    assert sum(len(lane["trials"]) for lane in plan["lanes"]) == 8
    again = json.loads(farm("plan", lab / "sweeps" / "small.yaml", "-w", lab, "--json").out)
    assert again == plan


def test_a_wrong_sweep_name_is_answered_with_the_nearest(lab: Path) -> None:
    answer = farm("plan", "smal", "-w", lab)
    assert answer.code == 2
    assert "smal" in answer.err
    assert "small" in answer.err.replace("'smal'", "")


def test_an_error_in_a_file_tells_where(lab: Path) -> None:
    (lab / "sweeps" / "small.yaml").write_text("name: small\nbords: all\n")
    answer = farm("plan", "small", "-w", lab)
    assert answer.code == 2
    assert "small.yaml:2:1" in answer.err
    assert "boards" in answer.err


@pytest.mark.parametrize(
    "command",
    [
        *[["boards", "list"], ["meters", "list"], ["payloads", "list"], ["plan", "first"]],
        *[["run", "first"], ["resume"], ["runs", "list"], ["runs", "show"], ["results"]],
        *[["compare", "last", "published"], ["report"], ["logs", "last"], ["sim", "up"]],
        *[["sim", "down"]],
    ],
)
def test_without_a_workspace_every_command_says_how_to_make_one(command: list[str]) -> None:
    answer = farm(*command)
    assert answer.code == 2
    assert answer.out == ""
    assert "farm init" in answer.err


@pytest.mark.parametrize(
    "command",
    [["runs", "show"], ["results"], ["report"], ["resume"], ["logs", "last"], ["runs", "list"]],
)
def test_in_an_empty_workspace_nothing_is_made_and_the_next_step_is_told(
    lab: Path, command: list[str]
) -> None:
    answer = farm(*command, "-w", lab)
    assert answer.code == 1
    assert answer.out == ""
    assert "farm run" in answer.err
    assert not (lab / "results").exists()


def test_runs_are_listed_and_shown(lab: Path, run_id: str) -> None:
    text = farm("runs", "list", "-w", lab).out
    assert run_id in text
    (listed,) = json.loads(farm("runs", "list", "-w", lab, "--json").out)
    assert listed["trials"] == {"done": 6, "failed": 1, "pending": 1}
    shown = farm("runs", "show", "-w", lab).out
    assert "6 done, 1 failed, 1 pending" in shown
    assert "exit status 3" in shown
    assert f"farm resume {run_id}" in shown
    data = json.loads(farm("runs", "show", run_id, "-w", lab, "--json").out)
    assert [one["state"] for one in data["unfinished"]] == ["failed", "pending"]


@pytest.mark.parametrize("command", [["runs", "show"], ["results"], ["report"], ["logs"]])
def test_an_unknown_run_is_answered_with_those_there_are(
    lab: Path, run_id: str, command: list[str]
) -> None:
    answer = farm(*command, "2019-nothing", "-w", lab)
    assert answer.code == 1
    assert "2019-nothing" in answer.err
    assert run_id in answer.err


def test_an_ambiguous_run_is_answered_with_the_candidates(lab: Path, run_id: str) -> None:
    other = store_run(lab)
    answer = farm("results", run_id[:8], "-w", lab)
    assert answer.code == 1
    assert run_id in answer.err
    assert other in answer.err
    assert farm("results", run_id, "-w", lab).code == 0


def test_results_as_table_by_cell_and_by_trial(lab: Path, run_id: str) -> None:
    cells = farm("results", run_id, "-w", lab).out
    assert "GFLOP/s" in cells
    assert "simulated" in cells
    assert "the same in all cells of jetson-tx2, matmul" in cells
    trials = farm("results", run_id, "-w", lab, "--trials").out
    assert trials.count("gflops=") == 6
    assert "exit status 3" in trials


def test_results_as_json_and_csv_are_nothing_else(lab: Path, run_id: str) -> None:
    as_json = farm("results", run_id, "-w", lab, "--json").out
    data = json.loads(as_json)
    assert [one["schema"] for one in data] == [1] * 8
    assert farm("results", run_id, "-w", lab, "--format", "json").out == as_json
    rows = list(csv.DictReader(io.StringIO(farm("results", "-w", lab, "--format", "csv").out)))
    assert [row["trial"] for row in rows] == [one["trial"] for one in data]


def test_results_go_to_files(lab: Path, run_id: str, tmp_path: Path) -> None:
    for kind in ("json", "csv", "parquet"):
        target = tmp_path / f"out.{kind}"
        answer = farm("results", run_id, "-w", lab, "--format", kind, "-o", target)
        assert (answer.code, answer.out) == (0, "")
    assert len(json.loads((tmp_path / "out.json").read_text())) == 8
    assert len(pd.read_parquet(tmp_path / "out.parquet")) == 8
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 9


def test_parquet_needs_a_file(lab: Path, run_id: str) -> None:
    answer = farm("results", run_id, "-w", lab, "--format", "parquet")
    assert answer.code == 2
    assert "--output" in answer.err


@pytest.mark.parametrize("kind", ["json", "csv", "parquet"])
def test_a_file_that_cannot_be_written_is_a_message(lab: Path, run_id: str, kind: str) -> None:
    target = lab / "inventory.yaml" / f"out.{kind}"
    answer = farm("results", run_id, "-w", lab, "--format", kind, "-o", target)
    assert answer.code == 1
    assert str(target) in answer.err


def test_two_runs_are_compared(lab: Path, run_id: str) -> None:
    faster = store_run(lab, speed=7.0)
    answer = farm("compare", run_id, faster, "-w", lab)
    assert answer.code == 0
    assert "gflops" in answer.out
    data = json.loads(farm("compare", run_id, faster, "-w", lab, "--json").out)
    assert {row["source"] for row in data} == {"simulated"}
    for row in data:
        assert row["only_in"] is None
        speed = next(one for one in row["differences"] if one["unit"] == "GFLOP/s")
        assert speed["second"] - speed["first"] == pytest.approx(speed["difference"])
        assert speed["second"] > speed["first"] > 0


def test_a_run_without_published_cells_says_so(lab: Path, run_id: str) -> None:
    answer = farm("compare", run_id, "published", "-w", lab)
    assert answer.code == 0
    assert "No cell of the run" in answer.out
    assert json.loads(farm("compare", run_id, "published", "-w", lab, "--json").out) == []


def test_a_report_is_one_file(lab: Path, run_id: str, tmp_path: Path) -> None:
    answer = farm("report", "-w", lab)
    path = lab / "results" / "runs" / run_id / "report.html"
    assert answer.out == f"wrote {path}\n"
    assert "Simulated figures" in path.read_text("utf-8")
    assert farm("report", "-w", lab, "-o", tmp_path / "a" / "b.html").code == 0
    assert (tmp_path / "a" / "b.html").stat().st_size > 10_000
    answer = farm("report", "-w", lab, "-o", lab / "inventory.yaml" / "r.html")
    assert answer.code == 1
    assert "r.html" in answer.err


def test_logs_are_named_or_printed(lab: Path, run_id: str) -> None:
    named = farm("logs", run_id, "--files", "-w", lab).out.splitlines()
    assert len(named) == 7
    attempt, path = named[0].split("  ")
    assert Path(path).read_text().startswith("hello from")
    printed = farm("logs", run_id, attempt.rpartition("-a")[0], "-w", lab).out
    assert printed.splitlines()[0] == f"--- {attempt}"
    assert "second line" in printed


def test_what_boards_wrote_never_drives_the_terminal(lab: Path) -> None:
    run_id = store_run(lab, text=HOSTILE)
    trial = json.loads(farm("results", "-w", lab, "--json").out)[0]["trial"]
    outputs = [
        farm("runs", "show", "-w", lab).out,
        farm("runs", "show", "-w", lab, "--json").out,
        farm("results", "-w", lab).out,
        farm("results", "-w", lab, "--trials").out,
        farm("results", "-w", lab, "--json").out,
        farm("logs", run_id, trial, "-w", lab).out,
    ]
    for text in outputs[:1] + outputs[2:4] + outputs[5:]:
        assert not CONTROL & set(text), sorted(CONTROL & set(text))
    assert "\x1b" not in outputs[1] + outputs[4]
    assert "[red]no[/nothing]" in outputs[0]


def run_farm(*arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if key != "FARM_WORKSPACE"}
    root = Path(__file__).parents[2]
    return subprocess.run(
        [sys.executable, "-m", "farm", *map(str, arguments)],
        cwd=cwd,
        env={**environment, "PYTHONPATH": str(root), "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def test_as_a_process_errors_are_one_message_on_stderr_and_a_code(lab: Path) -> None:
    store_run(lab)
    sub = lab / "some" / "where"
    sub.mkdir(parents=True)
    done = run_farm("results", f"no{HOSTILE}", cwd=sub)  # found from a folder below
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("farm: no run ")
    assert not CONTROL & set(done.stderr)
    assert len(done.stderr.splitlines()) == 1
    done = run_farm("plan", "nothing-like-it", cwd=lab)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_a_reader_that_leaves_early_is_no_error(lab: Path) -> None:
    store_run(lab)
    read_end, write_end = os.pipe()
    os.close(read_end)
    root = Path(__file__).parents[2]
    with os.fdopen(write_end, "wb") as pipe:
        done = subprocess.run(
            [sys.executable, "-m", "farm", "results", "--json", "-w", str(lab)],
            stdout=pipe,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(root)},
            timeout=100,
            check=False,
        )
    assert b"Traceback" not in done.stderr
    assert b"Exception" not in done.stderr
