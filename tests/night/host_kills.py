"""A run of a sweep whose host is killed at random moments and resumed, again and again."""

import random
import signal
import subprocess
import time

from tests.servers.sim_workspace import SimWorkspace

SWEEP = """\
name: kill
payloads:
  - payload: counting
    axes: {cell: [1, 2, 3, 4, 5, 6, 7, 8], seconds: 0.4}
repeats: 7
measure: {window_s: 0.3, warmup_s: 0, idle_s: 0, power: "off"}
limits: {time_s: 30}
"""


def start(workspace: SimWorkspace, *words: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        workspace.command(*words),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def run_with_kills(
    workspace: SimWorkspace, kills: int, chance: random.Random, *, timeout_s: float
) -> int:
    """Run the sweep to its end, `timeout_s` after the last kill; how many kills hit it alive."""
    killed = 0
    process = start(workspace, "run", "kill", "--plain")
    for _ in range(kills):
        text = _kill_after(process, chance)
        assert "internal error" not in text, text
        killed += process.returncode == -signal.SIGKILL
        process = start(workspace, "resume", "last", "--plain")
    text, _ = process.communicate(timeout=timeout_s)
    assert process.returncode == 0, text
    return killed


def check_each_once(workspace: SimWorkspace, trials: int) -> None:
    """All are done, in one attempt each, and the boards counted as many starts."""
    results = workspace.results()
    assert len(results) == trials, len(results)
    ended = {(one["state"], one["attempts"]) for one in results}
    assert ended == {("done", 1)}, ended
    started = sorted(line.split(".", 1)[1] for line in workspace.counted())
    assert started == sorted(f"{one['trial']}-a1" for one in results), started


def _kill_after(process: "subprocess.Popen[str]", chance: random.Random) -> str:
    """Kill at a random moment from the first connection on; what it printed until then."""
    assert process.stdout is not None
    seen = []
    for line in process.stdout:
        seen.append(line)
        if "board ready" in line:
            break
    time.sleep(chance.uniform(0.0, 1.6))  # the random moment: this test's very subject
    process.send_signal(signal.SIGKILL)
    rest = process.stdout.read()
    process.stdout.close()
    process.wait(timeout=30)
    return "".join(seen) + rest
