"""From `farm resume` to the first attempt, with 100,000 finished trials and with eleven.

    python benchmarks/resume.py [--trials 100000] [--repeats 5]

Twenty boards share the plan, one of them (simulated) has a trial left. The clock runs from the
start of the process to the `started` that the store keeps of the attempt: Python's start,
imports, reading the run, SSH, the board's agent, the payload. The stored records have the size of
real ones (2.3 kB, three measurements each); telemetry and traces are files of their own.
"""

import argparse
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchmarks.cpu import own_cpu_s
from benchmarks.results import Row, Target, report
from farm.model.plan import Plan
from farm.pipeline.lab import Lab, open_lab
from farm.pipeline.runs import create_run, open_lab_store, plan_sweep
from farm.pipeline.sim import start_lab, stop_lab

BOARDS = 20
REPEATS = 10
LIMIT_S = 2.0
RECORD_BYTES = 2300
INVENTORY = """\
defaults:
  user: farm
  port: 22922
  identity_file: .farm/sim/client_key
  known_hosts: .farm/sim/known_hosts
boards:
  pc-00: {{profile: generic-linux, host: 127.0.9.1, simulation: {{}}}}
  pc-[01..{last:02}]: {{profile: generic-linux, host: "192.0.2.{{n:d}}"}}
"""
SWEEP = """\
name: resumed
boards: all
repeats: {repeats}
measure: {{window_s: 0.2, warmup_s: 0, idle_s: 0, power: off, telemetry: off}}
payloads:
  - payload: matmul
    axes: {{size: [{sizes}], threads: 1}}
"""
_ATTEMPT = """\
insert into attempts (run_key, attempt_id, trial_id, number, board, is_open, started, ended,
 outcome, verdict, source, record_document)
values (?, ?, ?, 1, ?, 0, ?, ?, 'ok', 'valid', 'simulated', ?)"""


def make_workspace(folder: Path, trials: int) -> Lab:
    """A workspace whose sweep `resumed` has about `trials` trials."""
    cells = max(1, trials // (BOARDS * REPEATS))
    repeats = REPEATS if trials >= BOARDS * REPEATS else 1
    (folder / "sweeps").mkdir(parents=True, exist_ok=True)
    (folder / "inventory.yaml").write_text(INVENTORY.format(last=BOARDS - 1))
    sizes = ", ".join(str(2 + number) for number in range(cells))
    text = SWEEP.format(sizes=sizes, repeats=repeats)
    (folder / "sweeps" / "resumed.yaml").write_text(text)
    return open_lab(folder)


def store_run(lab: Lab) -> tuple[str, str, int]:
    """A run of which all but one trial is finished: its id, that trial's, and how many are."""
    plan = plan_sweep(lab, "resumed")
    with open_lab_store(lab) as store:
        run_id = create_run(lab, store, plan)
    left = plan.lanes[0].trials[0].trial_id
    with closing(sqlite3.connect(_database(lab))) as connection, connection:
        key = connection.execute("select key from runs where run_id = ?", (run_id,)).fetchone()[0]
        connection.executemany(_ATTEMPT, _attempts(plan, key, left))
        connection.execute(
            "insert into measurements select run_key, attempt_id, name, 1.5, 'W', 'window', null"
            " from attempts, (select 'a' as name union select 'b' union select 'c')"
            " where run_key = ?",
            (key,),
        )
        connection.execute(
            "update trials set state = 'done', attempts = 1 where run_key = ? and trial_id <> ?",
            (key, left),
        )
    return run_id, left, len(plan.trials) - 1


def _attempts(plan: Plan, key: int, left: str) -> Iterator[tuple[object, ...]]:
    document = '{"x":"' + "r" * (RECORD_BYTES - 8) + '"}'  # a resume reads none of them
    for lane in plan.lanes:
        begin = datetime.now(UTC) - timedelta(seconds=3.0 * len(lane.trials))
        for number, trial in enumerate(lane.trials):
            if trial.trial_id != left:
                times = [begin + timedelta(seconds=3 * number + more) for more in (0, 2.4)]
                started, ended = (f"{one:%Y-%m-%d %H:%M:%S.%f}" for one in times)
                attempt = f"{trial.trial_id}-a1"
                yield key, attempt, trial.trial_id, lane.board, started, ended, document


def resume(lab: Lab, run_id: str, left: str) -> tuple[float, float]:
    """Seconds until the attempt began, and of CPU until the run's end; the trial is left again."""
    cpu, begin = own_cpu_s(), datetime.now(UTC)
    argv = [sys.executable, "-m", "farm", "resume", run_id, "--plain"]
    done = subprocess.run(
        [*argv, "-w", str(lab.workspace.root)], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise RuntimeError((done.stderr or done.stdout)[-500:])
    cpu_s = own_cpu_s() - cpu
    with closing(sqlite3.connect(_database(lab))) as connection, connection:
        row = connection.execute(
            "select a.started, a.run_key from attempts a join runs r on r.key = a.run_key"
            " where r.run_id = ? and a.trial_id = ?",
            (run_id, left),
        ).fetchone()
        for table in ("measurements", "attempts"):
            connection.execute(
                f"delete from {table} where run_key = ? and attempt_id = ?",
                (row[1], f"{left}-a1"),
            )
        connection.execute(
            "update trials set state = 'pending', attempts = 0 where run_key = ? and trial_id = ?",
            (row[1], left),
        )
    shutil.rmtree(_database(lab).parent / "runs" / run_id / "attempts", ignore_errors=True)
    started = datetime.fromisoformat(row[0]).replace(tzinfo=UTC)
    return (started - begin).total_seconds(), cpu_s


def _database(lab: Lab) -> Path:
    return lab.workspace.results_dir / "farm.db"


def measure(lab: Lab, repeats: int) -> Row:
    """Medians of `repeats` resumes, after one that warms the caches."""
    run_id, left, finished = store_run(lab)
    figures = [resume(lab, run_id, left) for _ in range(repeats + 1)][1:]
    wall_s, cpu_s = map(statistics.median, zip(*figures, strict=True))
    megabytes = _database(lab).stat().st_size / 1e6
    more = {"finished trials": float(finished), "database MB": megabytes}
    return Row(f"farm resume, {finished + 1:,} trials", wall_s, cpu_s, repeats, more=more)


def main() -> None:
    """Measure, print, keep."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="farm-benchmark-"))
    lab = make_workspace(folder, BOARDS)
    try:
        start_lab(lab)
        rows = [measure(lab, options.repeats)]
        shutil.rmtree(lab.workspace.results_dir)
        lab = make_workspace(folder, options.trials)
        rows.append(measure(lab, options.repeats))
    finally:
        stop_lab(lab)
        shutil.rmtree(folder, ignore_errors=True)
    targets = (Target(rows[-1].client, "wall_s", LIMIT_S),)
    is_good = report("from resume to the first attempt", rows, targets, file="resume")
    sys.exit(0 if is_good else 1)


if __name__ == "__main__":
    main()
