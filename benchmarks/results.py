"""Tables of one run, ratios within it, and the JSON that is kept of it."""

import json
import os
import platform
import subprocess
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

FOLDER = Path(os.environ.get("FARM_BENCHMARK_RESULTS", "results/benchmarks"))


@dataclass(slots=True)
class Row:
    """One client's medians. `wall_s`, `cpu_s` (the client's) and what else it told."""

    client: str
    wall_s: float = 0.0
    cpu_s: float = 0.0
    runs: int = 0
    error: str = ""
    more: dict[str, float] = field(default_factory=dict)

    def value(self, figure: str) -> float:
        """`wall_s`, `cpu_s` or one of `more`."""
        return float(getattr(self, figure)) if figure in {"wall_s", "cpu_s"} else self.more[figure]


@dataclass(frozen=True, slots=True)
class Target:
    """`figure` of `client` divided by that of `against` is at most `at_most`.

    Without `against` the figure itself is; `at_least` turns the comparison.
    """

    client: str
    figure: str
    at_most: float = 0.0
    against: str = ""
    at_least: float = 0.0

    def check(self, rows: Sequence[Row]) -> tuple[str, bool]:
        """The line to show, and whether it holds."""
        by_name = {row.client: row for row in rows if row.runs}
        names = [name for name in (self.client, self.against) if name]
        if absent := [name for name in names if name not in by_name]:
            return f"{self.client} {self.figure}: no figures of {', '.join(absent)}", False
        value = by_name[self.client].value(self.figure)
        what = f"{self.client} {self.figure}"
        if self.against:
            value /= by_name[self.against].value(self.figure)
            what += f" / {self.against}"
        holds = value <= self.at_most if not self.at_least else value >= self.at_least
        bound = f"<= {self.at_most:g}" if not self.at_least else f">= {self.at_least:g}"
        return f"{what} = {value:.3g}, target {bound}: {'met' if holds else 'MISSED'}", holds


def report(title: str, rows: Sequence[Row], targets: Sequence[Target] = (), *, file: str) -> bool:
    """Print the table and the targets, append both to `file`.json; whether all hold."""
    extra = sorted({name for row in rows for name in row.more})
    print(f"\n### {title}\n")
    print("| " + " | ".join(["client", "wall s", "client CPU s", "runs", *extra]) + " |")
    print("|" + "---|" * (4 + len(extra)))
    for row in rows:
        if row.error:
            print(f"| {row.client} | failed: {row.error} |" + " |" * (2 + len(extra)))
            continue
        cells = [row.client, f"{row.wall_s:.4g}", f"{row.cpu_s:.3g}", str(row.runs)]
        cells += [f"{row.more[name]:.4g}" if name in row.more else "" for name in extra]
        print("| " + " | ".join(cells) + " |")
    checks = [target.check(rows) for target in targets]
    if checks:
        print()
    for text, _ in checks:
        print(f"- {text}")
    _append(file, title, rows, [text for text, _ in checks])
    return all(holds for _, holds in checks)


def machine() -> dict[str, str]:
    """What the figures were measured on."""
    cpu = [
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    ]
    memory_kb = int(Path("/proc/meminfo").read_text().split()[1])
    ssh = subprocess.run(["ssh", "-V"], capture_output=True, text=True, check=False)
    return {
        "cpu": f"{len(cpu)} x {cpu[0] if cpu else platform.machine()}",
        "memory": f"{memory_kb / 2**20:.0f} GiB",
        "kernel": platform.release(),
        "python": platform.python_version(),
        "ssh": (ssh.stderr or ssh.stdout).strip(),
    }


def _append(file: str, title: str, rows: Sequence[Row], checks: Sequence[str]) -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / f"{file}.json"
    kept = json.loads(path.read_text()) if path.exists() else []
    kept.append(
        {
            "title": title,
            "time": datetime.now(UTC).isoformat(timespec="seconds"),
            "machine": machine(),
            "load": os.getloadavg()[0],
            "rows": [asdict(row) for row in rows],
            "targets": list(checks),
        }
    )
    path.write_text(json.dumps(kept, indent=1) + "\n")
