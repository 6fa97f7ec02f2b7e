"""`farm demo`, whole: what it prints, keeps and reports, and that nothing of it stays running."""

import json
import os
import re
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.servers.sim_workspace import SimWorkspace

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

WATTS_WITHIN, THROUGHPUT_WITHIN = 0.02, 0.01


@dataclass(frozen=True)
class Demo:
    """A demo that has ended."""

    workspace: SimWorkspace
    text: str
    results: list[dict[str, object]]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    out = tmp_path_factory.mktemp("demo") / "lab"
    done = subprocess.run(
        [sys.executable, "-m", "farm", "demo", "--out", str(out), "--plain"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
        env={**os.environ, "COLUMNS": "200"},
    )
    text = done.stdout + done.stderr
    assert done.returncode == 0, text
    workspace = SimWorkspace(out, ())
    return Demo(workspace, text, workspace.results())


def test_every_trial_is_done_and_valid(demo: Demo) -> None:
    """The rows that are not are shown whole."""
    assert len(demo.results) == 50
    bad = [
        (one["board"], one["payload"], one["parameters"], one["state"], one["verdict"])
        for one in demo.results
        if (one["state"], verdict_of(one)) != ("done", "valid")
    ]
    assert bad == []


def verdict_of(result: dict[str, object]) -> object:
    verdict = result["verdict"]
    return verdict["status"] if isinstance(verdict, dict) else None


def test_there_are_boards_of_several_types(demo: Demo) -> None:
    profiles = Counter(dict(board_profiles(demo)).values())
    assert profiles["jetson-tx2"] >= 3
    assert profiles["zcu104"] >= 1
    assert profiles.total() - profiles["jetson-tx2"] - profiles["zcu104"] >= 2


def board_profiles(demo: Demo) -> set[tuple[str, str]]:
    return {(str(one["board"]), str(one["profile"])) for one in demo.results}


def test_every_figure_is_marked_as_simulated_and_measured_at_a_meter(demo: Demo) -> None:
    assert {one["source"] for one in demo.results} == {"simulated"}
    for one in demo.results:
        power = one["power"]
        assert isinstance(power, dict)
        assert power["mean_w"] > power["idle_w"] > 0
        assert power["fresh_updates"] > 0
        assert power["energy_j"] == pytest.approx(power["mean_w"] * power["window_s"])


def test_watts_and_speed_are_the_published_ones(demo: Demo) -> None:
    words = demo.workspace.command("compare", "last", "published", "--json")
    done = subprocess.run(words, capture_output=True, check=True, timeout=60)
    rows = json.loads(done.stdout)
    by_board = Counter(row["board"] for row in rows)
    assert by_board == {"tx2-01": 6, "tx2-02": 6, "tx2-03": 6, "zcu104-01": 3}
    for row in rows:
        assert row["n"] == 2
        assert row["source"] == "simulated"
        assert row["watts"]["ratio"] == pytest.approx(1.0, abs=WATTS_WITHIN), row
        assert row["images_per_s"]["ratio"] == pytest.approx(1.0, abs=THROUGHPUT_WITHIN), row


def test_the_power_modes_of_the_tx2s_were_proven_and_undone(demo: Demo) -> None:
    modes: Counter[str] = Counter()
    for one in demo.results:
        mode = one["power_mode"]
        assert isinstance(mode, dict)
        if one["profile"] == "jetson-tx2":
            modes[mode["name"]] += 1
    assert modes == {"MAXN": 12, "MAXP_CORE_ALL": 12, "MAXQ": 12}
    assert demo.text.count("restored") == 6


def test_the_report_is_one_file_that_loads_nothing(demo: Demo) -> None:
    (path,) = demo.workspace.root.glob("results/runs/*/report.html")
    assert f"report: {path}" in demo.text
    page = path.read_text()
    assert len(page) > 10_000
    assert "<script" not in page.lower()
    assert "@import" not in page
    attributes = re.findall(
        r"""(?:src|href|srcset|data|action|poster)\s*=\s*["']?([^"'\s>]+)""", page, re.IGNORECASE
    )
    loads = attributes + re.findall(r"""url\(\s*["']?([^"')]+)""", page)
    assert [one for one in loads if not one.startswith(("#", "data:"))] == []
    assert "simulated" in page
    for board, _ in board_profiles(demo):
        assert board in page


def test_no_process_of_the_lab_is_left(demo: Demo) -> None:
    assert processes_of(demo.workspace.root) == []


def test_the_lab_comes_up_again_and_leaves_no_process(demo: Demo) -> None:
    root = demo.workspace.root
    text = demo.workspace.farm("sim", "up")
    pid = re.search(r"pid (\d+)", text)
    assert pid is not None
    assert pid[1] in processes_of(root)
    assert f"(pid {pid[1]})" in demo.workspace.farm("sim", "up")
    assert "simulated lab down" in demo.workspace.farm("sim", "down")
    assert processes_of(root) == []
    assert "was not up" in demo.workspace.farm("sim", "down")


def processes_of(root: Path) -> list[str]:
    """Processes that have the workspace in their command line or environment."""
    found = []
    for path in Path("/proc").iterdir():
        if path.name.isdigit() and path.name != str(os.getpid()):
            try:
                words = (path / "cmdline").read_bytes() + (path / "environ").read_bytes()
            except OSError:  # gone meanwhile
                continue
            if str(root).encode() in words:
                found.append(path.name)
    return found
