"""What one trial costs the host beside the payload itself, against a loop of scp, ssh and scp.

    python benchmarks/trial_cost.py [--quick] [--boards 1,10,50]

The payload is empty: ten small files, a line on stdout, one number as its result. farm pushes
it once, runs each trial detached, collects stdout, events and exit record, and commits. The
loop does what such scripts do, for each trial: copy the files, run them, copy stdout and
result back, through one kept OpenSSH master a board; boards go on side by side. Both keep
their results on the same disk, and both speak to the same sshd.

farm's cost is the marginal one: two runs of different length, their difference divided by the
trials that one has more. So its start, its logins and its preflight count for neither.
"""

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.clients.openssh import Masters
from benchmarks.cpu import tree_cpu_s
from benchmarks.lab import Fleet, PrivateSshd, enter_namespaces
from benchmarks.results import Row, Target, report

RUN_SH = """\
. ./part-1.sh
echo "an empty trial, parameter $part"
if [ -n "$FARM_SH" ]; then . "$FARM_SH"; farm_metric answer 42 1
else echo '{"answer": 42}' >result.json; fi
"""

PAYLOAD_YAML = """\
name: empty
level: 0
summary: does nothing, for the cost of a trial
command: [sh, run.sh]
files: ["**"]
metrics:
  answer: {unit: "1", summary: always 42, scope: attempt}
"""

SWEEP_YAML = """\
name: cost
boards: all
repeats: {repeats}
payloads:
  - payload: empty
measure: {{window_s: 0.001, warmup_s: 0, idle_s: 0, power: "off", telemetry: "off"}}
limits: {{time_s: 60, retries: 0}}
"""

LOOP_SH = """\
set -e
for n in $(seq "$TRIALS"); do
    scp -q -r {options} {payload} {host}:{there}/$n
    ssh {options} {host} 'cd {there}/'$n' && sh run.sh >stdout.log 2>stderr.log'
    mkdir -p {here}/$n
    scp -q {options} "{host}:{there}/$n/stdout.log" "{host}:{there}/$n/result.json" {here}/$n/
done
"""
"""The loop that farm stands for; sync is left out, as such loops leave it out."""

# (boards, trials a board of the short run, of the long run, of the loop)
SIZES = ((1, 20, 120, 20), (10, 20, 120, 10), (50, 4, 24, 4))
QUICK = ((1, 10, 40, 10), (10, 3, 13, 3))


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds of wall and host CPU, and the peak of resident memory in MB."""

    wall_s: float
    cpu_s: float
    rss_mb: float = 0.0


def write_payload(folder: Path) -> Path:
    """The empty payload of ten files."""
    folder.mkdir(parents=True)
    (folder / "payload.yaml").write_text(PAYLOAD_YAML)
    (folder / "run.sh").write_text(RUN_SH)
    for number in range(1, 9):
        (folder / f"part-{number}.sh").write_text(f"part={number}\n" + "# filler\n" * 100)
    return folder


def run_process(argv: Sequence[str], environment: dict[str, str], folder: Path) -> Cost:
    """A process and its children, to the end. Raises RuntimeError with the end of its output."""
    log_path = folder / "log"
    with log_path.open("wb") as log:
        begin = time.perf_counter()
        process = subprocess.Popen(
            list(argv),
            env=environment,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
        _, status, usage = os.wait4(process.pid, 0)
        wall_s = time.perf_counter() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        tail = log_path.read_text(errors="replace")[-1500:]
        raise RuntimeError(f"{argv[0]}: exit {process.returncode}: {tail}")
    return Cost(wall_s, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def loop_cost(fleet: Fleet, place: Path, trials: int) -> Cost:
    """The shell loop, one process a board side by side; the masters' CPU counts."""
    payload = write_payload(place / "payload")
    masters = Masters(fleet)
    try:
        for host in fleet.hosts:
            (fleet.folder / f"loop-{host}").mkdir()
        before = sum(map(tree_cpu_s, masters.pids))
        script = " & ".join(
            f"sh {shlex.quote(str(_loop_script(fleet, masters, host, payload, place)))}"
            for host in fleet.hosts
        )
        waits = "for job in $(jobs -p); do wait $job || exit 1; done"
        environment = {**os.environ, "TRIALS": str(trials)}
        cost = run_process(["bash", "-c", f"{script} & {waits}"], environment, place)
        helpers = sum(map(tree_cpu_s, masters.pids)) - before
    finally:
        masters.close()
    results = list(place.glob("results-*/*/result.json"))
    if len(results) != trials * len(fleet.hosts):
        raise RuntimeError(f"the loop brought back {len(results)} results")
    return Cost(cost.wall_s, cost.cpu_s + helpers)


def _loop_script(fleet: Fleet, masters: Masters, host: str, payload: Path, place: Path) -> Path:
    here = place / f"results-{host}"
    options = [*fleet.ssh_config, "-o", f"ControlPath={masters.socket(host)}"]
    path = place / f"loop-{host}.sh"
    path.write_text(
        LOOP_SH.format(
            options=shlex.join(options),
            payload=payload,
            host=host,
            there=fleet.folder / f"loop-{host}",
            here=here,
        )
    )
    return path


def farm_cost(fleet: Fleet, place: Path, trials: int) -> Cost:
    """`farm run` in a workspace of its own: `trials` repeats on each board."""
    write_payload(place / "payloads" / "empty")
    (place / "sweeps").mkdir()
    (place / "sweeps" / "cost.yaml").write_text(SWEEP_YAML.format(repeats=trials))
    lines = [
        "defaults:",
        "  profile: generic-linux",
        f"  user: {fleet.user}",
        f"  port: {fleet.port}",
        f"  identity_file: {fleet.client_key}",
        f"  known_hosts: {fleet.folder / 'known_hosts'}",
        "boards:",
    ]
    for number, host in enumerate(fleet.hosts):
        # all boards are one machine: each needs a work folder of its own
        work = fleet.folder / "work" / place.name / str(number)
        lines.append(f"  board-{number:02d}: {{host: {host}, work_dir: {work}}}")
    (place / "inventory.yaml").write_text("\n".join(lines) + "\n")
    argv = [sys.executable, "-m", "farm", "run", "cost", "--plain", "--workspace", str(place)]
    return run_process(argv, dict(os.environ), place)


def compare(boards: int, short: int, long: int, loop: int) -> tuple[Row, Row]:
    """Both ways on one sshd: figures a trial."""
    with PrivateSshd(boards) as sshd:
        places = Path(tempfile.mkdtemp(prefix="farm-trial-cost-"))
        try:
            costs = []
            for name, trials in (("short", short), ("long", long)):
                (places / name).mkdir()
                costs.append(farm_cost(sshd.fleet, places / name, trials))
            (places / "loop").mkdir()
            by_loop = loop_cost(sshd.fleet, places / "loop", loop)
        finally:
            shutil.rmtree(places)
    more = (long - short) * boards
    farm = Row(
        "farm",
        (costs[1].wall_s - costs[0].wall_s) / more,
        (costs[1].cpu_s - costs[0].cpu_s) / more,
        more,
        more={"rss_mb": costs[1].rss_mb, "whole_run_s": costs[1].wall_s},
    )
    all_loops = loop * boards
    shell = Row("shell loop", by_loop.wall_s / all_loops, by_loop.cpu_s / all_loops, all_loops)
    return farm, shell


def main() -> None:
    """Each size of fleet."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer trials, up to 10 boards")
    parser.add_argument("--boards", default="", help="sizes of fleet, by comma")
    options = parser.parse_args()
    enter_namespaces()
    wanted = [int(part) for part in options.boards.split(",") if part]
    is_good = True
    for boards, short, long, loop in QUICK if options.quick else SIZES:
        if wanted and boards not in wanted:
            continue
        targets = [
            Target("farm", "wall_s", 0.30, "shell loop"),
            Target("farm", "cpu_s", 0.15, "shell loop"),
            Target("farm", "rss_mb", 300.0),
        ]
        title = f"an empty trial, {boards} board{'s' if boards > 1 else ''} (seconds a trial)"
        is_good &= report(title, compare(boards, short, long, loop), targets, file="trial_cost")
    sys.exit(0 if is_good else 1)


if __name__ == "__main__":
    main()
