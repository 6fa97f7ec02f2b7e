"""Clients take turns: each is a process of its own and does one repeat when it is asked.

So noise of the machine falls on all of them. Imports, connecting (where connections are kept)
and checks of the result are outside the clock. Client CPU is user and system time of the
client's process, its children and its helpers.
"""

import importlib
import json
import os
import statistics
import subprocess
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from benchmarks.cpu import own_cpu_s, own_rss_mb, tree_cpu_s, tree_size
from benchmarks.lab import Fleet, PrivateSshd
from benchmarks.results import Row

Settings = Mapping[str, int | float | str]


@dataclass
class Client:
    """One way of doing something. Only `run` is measured; it may return figures of its own."""

    fleet: Fleet
    settings: Settings
    helpers: list[int] = field(default_factory=list)

    def setup(self) -> None:
        """Import, connect what is kept."""

    def run(self) -> Mapping[str, float] | None:
        """Do it once."""
        raise NotImplementedError

    def check(self) -> None:
        """Raise if the result of `run` is wrong; clean up for the next run."""

    def close(self) -> None:
        """Disconnect."""


class Worker:
    """The parent's end of one client's process. `client` is ``module:Class``."""

    def __init__(
        self, name: str, client: str, fleet_file: Path, settings: Settings, log: IO[str]
    ) -> None:
        self.name, self.error = name, ""
        self.replies: list[dict[str, float]] = []
        argv = [sys.executable, "-m", "benchmarks.turns", client, str(fleet_file)]
        self.process = subprocess.Popen(
            [*argv, json.dumps(dict(settings))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )

    def ask(self, word: str) -> dict[str, float]:
        """Have the client do `word`; nothing once it failed."""
        if self.error:
            return {}
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.write(f"{word}\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        reply = json.loads(line) if line else {"error": "its process died"}
        self.error = reply.pop("error", "")
        return {str(name): float(value) for name, value in reply.items()}

    def end(self) -> Row:
        """Close the client; its medians."""
        self.ask("close")
        self.process.communicate(timeout=30)
        if not self.replies:
            return Row(self.name, error=self.error or "no run")
        medians = {
            name: statistics.median(reply[name] for reply in self.replies)
            for name in self.replies[0]
        }
        wall, cpu = medians.pop("wall_s"), medians.pop("cpu_s")
        return Row(self.name, wall, cpu, len(self.replies), self.error, medians)


def take_turns(
    sshd: PrivateSshd,
    clients: Mapping[str, str],
    settings: Settings,
    *,
    repeats: int,
    warm_up: int = 1,
    budget_s: float = 60.0,
) -> list[Row]:
    """Each client `repeats` times (at least twice, then until its budget is used up)."""
    fleet_file = sshd.fleet.folder / "fleet.json"
    sshd.fleet.save(fleet_file)
    log_path = Path(os.environ.get("FARM_BENCHMARK_LOG", str(sshd.fleet.folder / "log")))
    with log_path.open("a") as log:
        workers = [
            Worker(name, client, fleet_file, settings, log) for name, client in clients.items()
        ]
        for worker in workers:
            worker.ask("setup")
        spent = dict.fromkeys(clients, 0.0)
        for turn in range(warm_up + repeats):
            for worker in workers:
                if spent[worker.name] > budget_s and len(worker.replies) >= 2:
                    continue
                begin = time.monotonic()
                reply = _measure(sshd, worker)
                spent[worker.name] += time.monotonic() - begin
                if turn >= warm_up and not worker.error:
                    worker.replies.append(reply)
        return [worker.end() for worker in workers]


def _measure(sshd: PrivateSshd, worker: Worker) -> dict[str, float]:
    processes, before = tree_size(sshd.process.pid), tree_cpu_s(sshd.process.pid)
    reply = worker.ask("run")
    end = time.monotonic() + 1.0
    while tree_size(sshd.process.pid) > processes and time.monotonic() < end:
        time.sleep(0.02)  # sessions that are ending still cost the server
    reply["server_cpu_s"] = tree_cpu_s(sshd.process.pid) - before
    return reply


def _serve(client: Client, words: IO[str], answers: IO[str]) -> None:
    for word in words:
        reply: dict[str, float | str] = {}
        try:
            match word.strip():
                case "setup":
                    client.setup()
                case "run":
                    reply = dict(_timed(client))
                case "close":
                    client.close()
        except Exception as error:  # noqa: BLE001  told to the parent as this client's failure
            traceback.print_exc()
            reply = {"error": f"{type(error).__name__}: {error}"[:200]}
        answers.write(json.dumps(reply) + "\n")
        answers.flush()
        if word.strip() == "close":
            return


def _timed(client: Client) -> dict[str, float]:
    helpers = sum(tree_cpu_s(pid) for pid in client.helpers)
    cpu, begin = own_cpu_s(), time.perf_counter()
    figures = client.run()
    wall_s, cpu_s = time.perf_counter() - begin, own_cpu_s() - cpu
    cpu_s += sum(tree_cpu_s(pid) for pid in client.helpers) - helpers
    client.check()
    return {"wall_s": wall_s, "cpu_s": cpu_s, "rss_mb": own_rss_mb(), **(figures or {})}


def main(arguments: Sequence[str]) -> None:
    """One client's process: words come on stdin, answers go to what stdout was."""
    client, fleet_file, settings = arguments
    # libraries may print: that goes to the log, never between the answers
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    module, _, name = client.partition(":")
    kind = getattr(importlib.import_module(module), name)
    _serve(kind(Fleet.load(Path(fleet_file)), json.loads(settings)), sys.stdin, answers)


if __name__ == "__main__":
    main(sys.argv[1:])
