"""`make bench`: all benchmarks, one after the other; tables to stdout, figures to JSON.

    python benchmarks/run.py [--quick]

The folder is `benchmark-results/` (or FARM_BENCHMARK_RESULTS). Exit status 1: a target was missed.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

from benchmarks.results import FOLDER, machine

HERE = Path(__file__).parent
SCRIPTS = ("startup.py", "planning.py", "transport.py", "trial_cost.py")
QUICK = {"transport.py": ["--repeats", "2", "--only", "kept,stream"], "trial_cost.py": ["--quick"]}


def main() -> None:
    """Run them all, also when one fails."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a few minutes instead of fifteen")
    options = parser.parse_args()
    folder = FOLDER.absolute()
    print("## Machine\n")
    for name, value in machine().items():
        print(f"- {name}: {value}")
    print(f"- load: {os.getloadavg()[0]:.2f}", flush=True)
    missed = []
    for script in SCRIPTS:
        extra = QUICK.get(script, []) if options.quick else []
        environment = {**os.environ, "FARM_BENCHMARK_RESULTS": str(folder)}
        argv = [sys.executable, str(HERE / script), *extra]
        if subprocess.run(argv, env=environment, check=False).returncode != 0:
            missed.append(script)
    print(f"\nfigures: {folder}; missed targets or failed: {', '.join(missed) or 'none'}")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
