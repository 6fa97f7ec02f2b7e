"""How long `farm --help` takes, against an empty Python, and which heavy libraries it loads.

python benchmarks/startup.py [--repeats 7]
"""

import argparse
import json
import statistics
import subprocess
import sys
import time

from benchmarks.cpu import own_cpu_s
from benchmarks.results import Row, Target, report

HEAVY = (
    "asyncssh",
    "aiohttp",
    "alembic",
    "cryptography",
    "matplotlib",
    "numpy",
    "pandas",
    "pyarrow",
    "pydantic",
    "rich",
    "sqlalchemy",
)
"""Each costs 50 ms or more; `farm --help` needs none of them but typer's own rich."""

_LOADED = (
    "import contextlib, io, json, sys\n"
    "sys.argv = ['farm', '--help']\n"
    "from farm.cli.main import main\n"
    "with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):\n"
    "    main()\n"
    f"print(json.dumps([name for name in {HEAVY!r} if name in sys.modules]))\n"
)

COMMANDS = {
    "farm --help": [sys.executable, "-m", "farm", "--help"],
    "python -c pass": [sys.executable, "-c", "pass"],
    "import typer": [sys.executable, "-c", "import typer"],
    "import asyncssh": [sys.executable, "-c", "import asyncssh"],
    "import pandas": [sys.executable, "-c", "import pandas"],
}


def measure(argv: list[str]) -> tuple[float, float]:
    """Wall and CPU seconds of a process."""
    cpu, begin = own_cpu_s(), time.perf_counter()
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.decode()[-300:])
    return time.perf_counter() - begin, own_cpu_s() - cpu


def main() -> None:
    """Measure, print, keep."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    figures: dict[str, list[tuple[float, float]]] = {name: [] for name in COMMANDS}
    rows = []
    for turn in range(options.repeats + 1):
        for name, argv in COMMANDS.items():
            figure = measure(argv)
            if turn:
                figures[name].append(figure)
    for name, values in figures.items():
        wall_s, cpu_s = map(statistics.median, zip(*values, strict=True))
        rows.append(Row(name, wall_s, cpu_s, len(values)))
    loaded = subprocess.run(
        [sys.executable, "-c", _LOADED], capture_output=True, text=True, check=True
    )
    heavy = json.loads(loaded.stdout)
    is_good = report(
        "start of the command",
        rows,
        (Target("farm --help", "wall_s", 0.3),),
        file="startup",
    )
    print(f"- heavy libraries loaded by `farm --help`: {', '.join(heavy) or 'none'}")
    sys.exit(0 if is_good else 1)


if __name__ == "__main__":
    main()
