"""The matrix product payload computes for real, and says so."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROJECT = Path(__file__).parents[2]
PAYLOAD = PROJECT / "payloads" / "matmul"
HELPERS = PROJECT / "farm" / "boardside" / "payload_helpers"
PARAMS = {"size": 16, "threads": 1, "dtype": "float64", "engine": "python"}


def run(folder: Path, *, path: str = "", **params: object) -> tuple[int, list[dict[str, Any]]]:
    """Exit status and events."""
    (folder / "params.json").write_text(json.dumps({**PARAMS, **params}))
    done = subprocess.run(
        [sys.executable, str(PAYLOAD / "run.py")],
        env={
            "FARM_PARAMS": str(folder / "params.json"),
            "FARM_EVENTS": str(folder / "events.jsonl"),
            "FARM_WINDOW_S": "0.2",
            "FARM_WARMUP_S": "0.01",
            "PYTHONPATH": f"{HELPERS}:{path}",
        },
        check=False,
        timeout=60,
    )
    lines = (folder / "events.jsonl").read_text().splitlines()
    return done.returncode, [json.loads(line) for line in lines]


def metrics(events: list[dict[str, Any]]) -> dict[str, float]:
    return {event["name"]: event["value"] for event in events if event["event"] == "metric"}


@pytest.mark.parametrize("threads", [1, min(2, os.cpu_count() or 1)])
def test_pure_python(tmp_path: Path, threads: int) -> None:
    status, events = run(tmp_path, threads=threads)
    found = metrics(events)
    begin, end = (
        next(e["t"] for e in events if e["event"] == f"window_{which}")
        for which in ("begin", "end")
    )
    assert status == 0
    assert end - begin >= 0.2
    assert found["iterations"] >= threads
    rate = 2 * 16**3 * found["iterations"] / (end - begin) / 1e9
    assert found["gflops"] == pytest.approx(rate, rel=0.2)
    assert found["has_numpy"] == 0
    assert 0 < found["time"] <= 1000 * (end - begin)
    assert any("engine: python" in e.get("text", "") for e in events)


def test_numpy(tmp_path: Path) -> None:
    status, events = run(tmp_path, engine="numpy", dtype="float32", size=64)
    assert status == 0
    assert metrics(events)["has_numpy"] == 1
    assert any("engine: numpy " in e.get("text", "") for e in events)


@pytest.mark.parametrize(
    ("params", "reason"),
    [
        ({"threads": 4096}, "4096 threads, but"),
        ({"engine": "numpy"}, "no NumPy here"),
        ({"engine": "auto", "dtype": "float32"}, "float64 only"),
    ],
)
def test_unsupported(tmp_path: Path, params: dict[str, object], reason: str) -> None:
    # A package of that name which cannot be imported stands for a board without NumPy.
    (tmp_path / "numpy.py").write_text("raise ImportError('not installed')\n")
    status, events = run(tmp_path, path=str(tmp_path), **params)
    assert status == 77
    assert reason in events[-1]["reason"]
    assert metrics(events) == {}


def test_wrong_products_are_noticed(tmp_path: Path) -> None:
    (tmp_path / "numpy.py").write_text(
        "__version__ = '0'\n"
        "class array(list):\n"
        "    def __init__(self, rows, dtype): list.__init__(self, rows)\n"
        "    def dot(self, other): return self\n"
    )
    status, events = run(tmp_path, path=str(tmp_path), engine="numpy")
    assert status == 1
    assert metrics(events) == {}
