"""`farm boards exec` on 200 boards against a pool of threads of libssh2, in host CPU.

    python benchmarks/exec_200.py [--boards 200] [--repeats 3]

Client CPU is all of a client's process and nothing of the servers. Ratios hold within one run.
"""

import argparse
import sys

from benchmarks.lab import PrivateSshd, enter_namespaces
from benchmarks.results import Target, report
from benchmarks.turns import take_turns

CLIENTS = {
    "farm boards exec": "benchmarks.clients.farm_exec:Exec",
    "libssh2, 32 threads": "benchmarks.clients.ssh2_peer:Pool",
    "farm, transport alone": "benchmarks.clients.farm_client:FanOut",
    "asyncssh": "benchmarks.clients.asyncssh_peer:FanOut",
}
TARGETS = (Target("farm boards exec", "cpu_s", 2.0, "libssh2, 32 threads"),)


def main() -> None:
    """One table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--boards", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    enter_namespaces()
    with PrivateSshd(options.boards) as sshd:
        rows = take_turns(sshd, CLIENTS, {}, repeats=options.repeats)
    for row in rows:
        row.more["cpu_ms_per_board"] = row.cpu_s / options.boards * 1e3
    title = f"`true` on {options.boards} boards, each over a fresh connection"
    sys.exit(0 if report(title, rows, TARGETS, file="exec_200") else 1)


if __name__ == "__main__":
    main()
