"""Replay one row of cells.csv: its pace, and its watts at the simulated socket.

Batches follow an absolute schedule, so that a late wake-up does not shift what comes after.
The window begins and ends where a batch begins; all figures come from this program's own
clock. Python 3.5, standard library only.
"""

import collections
import csv
import json
import os
import statistics
import subprocess
import sys
import time

import farm_payload as farm

LOAD_FILE = "run/farm-sim/load.json"
QUERY_TIMEOUT_S = 30
DEFAULT_WINDOW_S, DEFAULT_WARMUP_S = 4.0, 0.3
TAIL_S = 0.2  # work after the window, so that a meter's last mean of it holds no rest
ON_TIME = 0.002  # a batch's begin may end the window when it came late by no more, relatively


def board_file(path):
    """The text of a file of the board, '' when there is none. NULs become blanks."""
    try:
        with open(os.path.join(os.environ.get("FARM_ROOT", "/"), path), "rb") as file:
            return file.read(65536).decode("utf-8", "replace").replace("\0", " ").strip()
    except OSError:
        return ""


def platform():
    """The publication's name of this board."""
    if not board_file("etc/farm-simulated"):
        farm.unsupported("replays published figures, on simulated boards only")
    known = board_file("proc/device-tree/model") + " " + board_file("proc/device-tree/compatible")
    if "quill" in known or "p3310" in known:
        return "TX2"
    if "zcu104" in known.lower():
        return "ZCU104"
    farm.unsupported("no figures were published for this board: {}".format(known.strip()))


def power_mode(board):
    """The publication's name of the present power mode, '' for a board that has only one."""
    if board != "TX2":
        return ""
    answer = subprocess.check_output(
        ["nvpmodel", "-q"], stdin=subprocess.DEVNULL, timeout=QUERY_TIMEOUT_S
    ).decode("utf-8", "replace")
    name = answer.partition("NV Power Mode:")[2].split("\n", 1)[0].strip()
    if name.startswith("MAXP"):
        return "MaxP"
    return {"MAXN": "MaxN", "MAXQ": "MaxQ"}.get(name, name)


def find_cell(wanted):
    """The row that has exactly these values, or the end with the reason."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "cells.csv")) as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        if all(row[name] == str(value) for name, value in wanted.items()):
            return row
    text = " ".join("{}={}".format(name, wanted[name]) for name in sorted(wanted))
    farm.unsupported("no such row was published: " + text)


def seconds_of(variable, default):
    """A length in seconds from the environment, where the sweep's measure section puts it."""
    return float(os.environ.get(variable) or default)


class Load:
    """Asks the simulated socket for watts while it is entered."""

    def __init__(self, watts):
        self.watts = watts
        self.path = os.path.join(os.environ["FARM_ROOT"], LOAD_FILE)

    def __enter__(self):
        partial = "{}.{}".format(self.path, os.getpid())
        with open(partial, "w") as file:
            load = {"watts": self.watts, "pid": os.getpid(), "since_s": farm.boot_time()}
            json.dump(load, file)
        os.rename(partial, self.path)

    def __exit__(self, *exc):
        try:
            os.unlink(self.path)
        except OSError:
            pass  # the board was restarted under us


def wait_until(due):
    """Sleep until `due`; the time it is then."""
    now = farm.boot_time()
    while now < due:
        time.sleep(due - now)
        now = farm.boot_time()
    return now


def replay(period, latency, window_s):
    """Keep the pace until `window_s` has passed at a batch's begin that came on time.

    A busy machine wakes us late at times; such a moment is no boundary between batches, so the
    window goes on to the next one, but not beyond twice its length. A batch begins every
    `period` and ends `latency` after its begin; where the board overlaps work, that is after
    the next begin. Returns how many periods passed, in how many seconds, the latencies seen,
    and what is still at work: (begin, due end) each.
    """
    start = now = farm.boot_time()
    done, seen, at_work = 0, [], collections.deque()
    while not is_over(now - start, done * period, window_s):
        at_work.append((now, now + latency))
        due_next = start + (done + 1) * period
        while at_work and at_work[0][1] <= due_next:
            seen.append(end_of(at_work.popleft()))
        now = wait_until(due_next)
        # After a late wake-up, all batches that were due are done.
        done = max(done + 1, int((now - start) / period))
    return done, now - start, seen, at_work


def is_over(passed, due, window_s):
    """Whether the window may end: `passed` seconds, where the schedule says `due`."""
    is_on_time = passed - due <= ON_TIME * passed
    return passed >= window_s and (is_on_time or passed >= 2 * window_s)


def end_of(batch):
    """Wait for a batch's end; how long it took."""
    begin, due = batch
    return wait_until(due) - begin


def main():
    values = farm.params()
    board = platform()
    wanted = {name: values[name] for name in ("model", "precision", "batch", "threads")}
    wanted.update(platform=board, power_mode=power_mode(board))
    cell = find_cell(wanted)
    images_at_once = max(wanted["batch"], wanted["threads"])
    rate, gop = float(cell["images_per_s"]), float(cell["gop_per_image"])
    period, latency = images_at_once / rate, float(cell["latency_ms"]) / 1000
    farm.note(
        "replayed, not computed: {} images/s, {} ms and {} W are printed for this row".format(
            cell["images_per_s"], cell["latency_ms"], cell["power_w"]
        )
    )
    window_s = seconds_of("FARM_WINDOW_S", DEFAULT_WINDOW_S)
    warmup_s = seconds_of("FARM_WARMUP_S", DEFAULT_WARMUP_S)
    with Load(float(cell["power_w"])):
        wait_until(farm.boot_time() + warmup_s)
        with farm.window():
            batches, seconds, latencies, at_work = replay(period, latency, window_s)
        latencies.extend(end_of(batch) for batch in at_work)
        wait_until(farm.boot_time() + TAIL_S)
    images = batches * images_at_once
    farm.metric("throughput", images / seconds, "images/s")
    farm.metric("throughput_gops", images * gop / seconds, "GOP/s")
    farm.metric("latency", 1000 * statistics.median(latencies), "ms")
    farm.metric("images", images, "images")
    return 0


if __name__ == "__main__":
    sys.exit(main())
