"""The payload that replays published figures, run as a board runs it."""

import csv
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from farm.model.board import Board
from farm.simulation.board_root import boot_files, build_board_root
from tests.simulation.lab_client import PROFILES

PROJECT = Path(__file__).parents[2]
PAYLOAD = PROJECT / "payloads" / "replay-cnn"
HELPERS = PROJECT / "farm" / "boardside" / "payload_helpers"
PUBLISHED = PROJECT / "farm" / "data" / "published"
GOP_PER_IMAGE = {"ResNet50": 7.72, "GoogleNetV1": 3.13}  # QuTiBench, table 10
MAXN_FP16 = {"model": "ResNet50", "precision": "FP16", "batch": 8, "threads": 0}


@dataclass
class Replay:
    """One run of the payload."""

    exit_status: int
    events: list[dict[str, Any]]

    def metric(self, name: str) -> float:
        found = [e["value"] for e in self.events if e["event"] == "metric" and e["name"] == name]
        assert len(found) == 1
        return float(found[0])

    def text(self, event: str, key: str) -> str:
        return "".join(e[key] for e in self.events if e["event"] == event)

    @property
    def window_s(self) -> float:
        begin, end = (
            next(e["t"] for e in self.events if e["event"] == name)
            for name in ("window_begin", "window_end")
        )
        return float(end - begin)


@pytest.fixture
def make_root(make_board: Callable[..., Board], tmp_path: Path) -> Callable[[str, str], Path]:
    def make(profile: str, mode: str = "") -> Path:
        root = tmp_path / profile
        build_board_root(root, make_board("board", profile), PROFILES[profile])
        if mode:
            (root / "var/lib/nvpmodel/status").write_text(f"pmode:{mode}\n")
        boot_files(root, PROFILES[profile], "boot")
        return root

    return make


def start(root: Path, params: dict[str, object], folder: Path) -> "subprocess.Popen[bytes]":
    (folder / "params.json").write_text(json.dumps(params))
    (folder / "events.jsonl").unlink(missing_ok=True)
    return subprocess.Popen(
        [sys.executable, str(PAYLOAD / "run.py")],
        env={
            "PATH": f"{root}/bin:/usr/bin:/bin",
            "FARM_ROOT": str(root),
            "FARM_PARAMS": str(folder / "params.json"),
            "FARM_EVENTS": str(folder / "events.jsonl"),
            "FARM_WINDOW_S": "0.3",
            "FARM_WARMUP_S": "0.01",
            "PYTHONPATH": str(HELPERS),
        },
    )


def replay(root: Path, params: dict[str, object], folder: Path) -> Replay:
    with start(root, params, folder) as process:
        status = process.wait(timeout=60)
    lines = (folder / "events.jsonl").read_text().splitlines()
    return Replay(status, [json.loads(line) for line in lines])


def cells() -> list[dict[str, str]]:
    with (PAYLOAD / "cells.csv").open() as file:
        return list(csv.DictReader(file))


def test_cells_are_the_published_rows() -> None:
    wanted = []
    for name in ("level3_resnet50.csv", "level3_googlenet.csv"):
        with (PUBLISHED / name).open() as file:
            wanted += list(csv.DictReader(file))
    found = cells()
    assert len(found) == len(wanted) == 112
    for cell, row in zip(found, wanted, strict=True):
        assert [cell[key] for key in ("model", "platform", "power_mode", "precision")] == [
            row[key] for key in ("model", "platform", "power_mode", "precision")
        ]
        assert (cell["batch"], cell["threads"]) == (row["batch"] or "0", row["threads"] or "0")
        gop = GOP_PER_IMAGE[cell["model"]]
        assert float(cell["gop_per_image"]) == gop
        rate = float(row["throughput_system_gops"]) / gop
        assert float(cell["images_per_s"]) == pytest.approx(rate, abs=6e-5)
        assert float(cell["latency_ms"]) == float(row["latency_system_ms"])
        assert float(cell["power_w"]) == float(row["power_w"])


class Printed(NamedTuple):
    """A row of the publication and the board and mode that it is of."""

    profile: str
    mode: str
    params: dict[str, object]
    images_at_once: int
    rate: float
    latency_ms: float


DPU = {"model": "ResNet50", "precision": "INT8", "batch": 0}


@pytest.mark.parametrize(
    "row",
    [
        Printed("jetson-tx2", "0000", MAXN_FP16, 8, 94.3251, 84.79),
        Printed("jetson-tx2", "0003", {**MAXN_FP16, "batch": 1}, 1, 60.1218, 16.52),
        Printed(
            *("jetson-tx2", "0001", {**MAXN_FP16, "precision": "FP32", "batch": 4}),
            *(4, 37.4067, 106.84),
        ),
        # Whole batches only, also when one takes longer than the window is asked to last.
        Printed("jetson-tx2", "0000", {**MAXN_FP16, "batch": 128}, 128, 104.8536, 1211.85),
        Printed("zcu104", "", {**DPU, "threads": 8}, 8, 122.8044, 64.88),
        # The printed latency is longer than the pace: batches overlap.
        Printed("zcu104", "", {**DPU, "threads": 2}, 2, 101.8769, 19.69),
    ],
    ids=["maxn", "maxp", "maxq", "long-batch", "zcu104", "overlap"],
)
def test_replayed_figures_are_the_printed_ones(
    make_root: Callable[..., Path], tmp_path: Path, row: Printed
) -> None:
    root = make_root(row.profile, row.mode)
    done = replay(root, row.params, tmp_path)
    for _ in range(2):  # a busy machine may wake us late
        if abs(done.metric("throughput") / row.rate - 1) < 0.01:
            break
        done = replay(root, row.params, tmp_path)
    assert done.exit_status == 0
    throughput = done.metric("throughput")
    assert throughput == pytest.approx(row.rate, rel=0.01)
    gop = GOP_PER_IMAGE[str(row.params["model"])]
    assert done.metric("throughput_gops") == pytest.approx(gop * throughput)
    assert done.metric("images") % row.images_at_once == 0
    assert done.metric("images") / done.window_s == pytest.approx(throughput, rel=0.01)
    assert done.window_s >= 0.3
    # It comes from the payload's clock, so a busy machine makes it longer, never shorter.
    assert row.latency_ms <= done.metric("latency") <= 1000 * (done.window_s + 2)
    assert "replayed, not computed" in done.text("note", "text")
    assert not (root / "run/farm-sim/load.json").exists()


def test_load_is_asked_for_while_it_runs(make_root: Callable[..., Path], tmp_path: Path) -> None:
    root = make_root("jetson-tx2", "0000")
    load = root / "run/farm-sim/load.json"
    params = {**MAXN_FP16, "batch": 128}
    with start(root, params, tmp_path) as process:
        while process.poll() is None and not load.exists():
            os.sched_yield()
        asked = json.loads(load.read_text())
        assert process.wait(timeout=60) == 0
    assert asked["watts"] == 13.82
    assert asked["pid"] == process.pid
    assert asked["since_s"] > 0


@pytest.mark.parametrize(
    ("profile", "params", "reason"),
    [
        ("jetson-tx2", {**MAXN_FP16, "precision": "INT8"}, "no such row was published: batch=8"),
        ("jetson-tx2", {**MAXN_FP16, "threads": 1}, "no such row was published"),
        ("zcu104", MAXN_FP16, "no such row was published"),
        ("jetson-nano", MAXN_FP16, "no figures were published for this board: NVIDIA Jetson Nano"),
    ],
)
def test_what_was_not_published_is_unsupported(
    make_root: Callable[..., Path],
    tmp_path: Path,
    profile: str,
    params: dict[str, object],
    reason: str,
) -> None:
    done = replay(make_root(profile), params, tmp_path)
    assert done.exit_status == 77
    assert reason in done.text("unsupported", "reason")
    assert not any(event["event"] == "window_begin" for event in done.events)


def test_real_boards_are_unsupported(make_root: Callable[..., Path], tmp_path: Path) -> None:
    root = make_root("jetson-tx2")
    (root / "etc/farm-simulated").unlink()
    done = replay(root, MAXN_FP16, tmp_path)
    assert done.exit_status == 77
    assert "simulated boards only" in done.text("unsupported", "reason")


def test_stale_parameters_end_in_an_error(make_root: Callable[..., Path], tmp_path: Path) -> None:
    assert start(make_root("jetson-tx2"), {"model": "ResNet50"}, tmp_path).wait(timeout=60) == 1
