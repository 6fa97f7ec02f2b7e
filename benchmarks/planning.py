"""How planning grows: seconds and memory for 1,000, 10,000 and 100,000 trials.

    python benchmarks/planning.py

Each size is planned in a process of its own: once for the processor's time, once under
tracemalloc for the peak of allocated memory. `cells`: every trial its own cell, or ten
repeats of each.
"""

import subprocess
import sys
import tracemalloc
from pathlib import Path
from time import process_time

from farm.model.board import Board
from farm.model.payload import Parameter, Payload, PayloadManifest
from farm.model.plan import Plan
from farm.model.power_mode import PowerMode
from farm.model.profile import BoardProfile
from farm.model.sweep import PayloadAxes, Sweep
from farm.planning.plan import make_plan

SIZES = (1_000, 10_000, 100_000)
MODES = ("MAXN", "MODE_15W")
LIMIT_S = 5.0


def plan_of(trials: int, repeats: int, spread: str) -> Plan:
    """A plan of `trials` trials: up to 500 boards, two power modes, an axis of values."""
    board_count = min(500, trials // 20)
    per_board = trials // (board_count if spread == "every" else 1)
    values = tuple(range(per_board // (len(MODES) * repeats)))
    boards = [
        Board(name=f"b{n:03d}", profile="p", host="127.0.0.1", user="u", meter=f"m{n // 4}")
        for n in range(board_count)
    ]
    profile = BoardProfile(
        name="p",
        summary="",
        cores=8,
        power_modes=tuple(PowerMode(name=m, tpc_mask=n) for n, m in enumerate(MODES)),
    )
    manifest = PayloadManifest(
        name="w",
        level=1,
        summary="",
        command=("true",),
        parameters={
            "n": Parameter(type="int"),
            "precision": Parameter(type="str", default="FP16"),
        },
    )
    payload = Payload(manifest=manifest, folder=Path(), files=(), digest="0" * 64)
    sweep = Sweep.model_validate(
        {
            "name": "bench",
            "spread": spread,
            "power_modes": MODES,
            "repeats": repeats,
            "payloads": (PayloadAxes(payload="w", axes={"n": values}),),
        }
    )
    return make_plan(sweep, boards, {"p": profile}, {"w": payload})


def measure(trials: int, repeats: int, spread: str) -> str:
    """``trials seconds peak_mb`` of one size."""
    begin = process_time()
    plan = plan_of(trials, repeats, spread)
    seconds = process_time() - begin
    count = len(plan.trials)
    del plan
    tracemalloc.start()
    plan = plan_of(trials, repeats, spread)
    peak_mb = tracemalloc.get_traced_memory()[1] / 1e6
    del plan
    return f"{count} {seconds} {peak_mb}"


def main() -> int:
    """Print the table; 1 if 100,000 trials take longer than the limit."""
    print("spread  cells            trials  boards  seconds  us/trial      MB  ratio to 1k")
    is_slow = False
    for spread in ("every", "any"):
        for repeats in (10, 1):
            first_us = 0.0
            for size in SIZES:
                argv = [sys.executable, __file__, str(size), str(repeats), spread]
                out = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
                count, seconds, peak_mb = (float(word) for word in out.split())
                each_us = seconds / count * 1e6
                first_us = first_us or each_us
                print(
                    f"{spread:6}  {'x10 repeats' if repeats > 1 else 'all different':13}"
                    f" {count:9,.0f}  {min(500, size // 20):6}  {seconds:7.3f}"
                    f"  {each_us:8.1f}  {peak_mb:6.1f}  {each_us / first_us:11.2f}"
                )
                is_slow = is_slow or seconds > LIMIT_S
    return int(is_slow)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(measure(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]))
    else:
        sys.exit(main())
