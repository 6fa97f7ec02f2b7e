"""`make bench`: all benchmarks, one after the other; tables to stdout, figures to JSON.

    python benchmarks/run.py [--quick] [--docs]

The folder is `results/benchmarks/` (or FARM_BENCHMARK_RESULTS). `--docs` puts what was printed
into docs/benchmarks.md. Exit status 1: a target was missed, or a script failed.
"""

import argparse
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.results import FOLDER, machine

HERE = Path(__file__).parent
DOCUMENT = HERE.parent / "docs" / "benchmarks.md"
MARK = "<!-- figures: written by `python benchmarks/run.py --docs` -->"
SCRIPTS = (
    "startup.py",
    "planning.py",
    "resume.py",
    "transport.py",
    "exec_200.py",
    "trial_cost.py",
)
QUICK = {
    "resume.py": ["--repeats", "3"],
    "transport.py": ["--repeats", "2", "--only", "kept,stream"],
    "trial_cost.py": ["--quick"],
}


def machine_text() -> str:
    """What and when, as a list."""
    facts = {
        "date": datetime.now(UTC).date().isoformat(),
        **machine(),
        "load average at the start": f"{os.getloadavg()[0]:.2f}",
    }
    return "".join(f"- {name}: {value}\n" for name, value in facts.items())


def run_script(script: str, extra: list[str]) -> Iterator[str]:
    """The script's lines as they come. Raises CalledProcessError at the end if it says no."""
    environment = {**os.environ, "FARM_BENCHMARK_RESULTS": str(FOLDER.absolute())}
    argv = [sys.executable, "-u", str(HERE / script), *extra]
    with subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield from process.stdout
        except BaseException:
            process.kill()  # and with it the namespaces that it made
            raise
    if process.returncode != 0:
        raise subprocess.CalledProcessError(process.returncode, argv)


def main() -> None:
    """Run them all, also when one fails."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a few minutes instead of fifteen")
    parser.add_argument("--docs", action="store_true", help="write docs/benchmarks.md")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    text = [machine_text()]
    print(text[0])
    missed = []
    for script in SCRIPTS:
        text.append(f"\n## {script}\n")
        print(text[-1], flush=True)
        try:
            for line in run_script(script, QUICK.get(script, []) if options.quick else []):
                text.append(line)
                print(line, end="", flush=True)
        except subprocess.CalledProcessError:
            missed.append(script)
    print(f"\nfigures: {FOLDER.absolute()}")
    print(f"missed targets or failed: {', '.join(missed) or 'none'}")
    if options.docs:
        head = DOCUMENT.read_text().partition(MARK)[0]
        DOCUMENT.write_text(f"{head}{MARK}\n\n{''.join(text)}")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
