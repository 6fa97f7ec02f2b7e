"""``tegrastats`` of a simulated Jetson, from the state that the physics writes.

    tegrastats [--interval MS] [--logfile FILE] [--start | --stop] [--verbose] [--readall]

Rail values are milliwatts, now/mean since this process began, from R39 on also the maximum. As
on the boards, some fields are there for root only.
"""

import argparse
import contextlib
import os
import signal
import sys
import time
from typing import TextIO

from farm.simulation.board_commands.board_files import (
    BoardFacts,
    BoardFiles,
    LiveState,
    is_root,
)
from farm.simulation.board_commands.tegrastats_forms import FORMS, Form, Rail, Sensor

_PID_FILE = "/run/farm-sim/tegrastats.pid"
_WITH_UNITS, _WITH_MAXIMA = 35, 39
"""The releases from which rails have units and lines a time, and from which there are maxima."""


class _History:
    """Means and maxima since the process began, as tegrastats prints them."""

    def __init__(self, l4t: int) -> None:
        self._l4t = l4t
        self._sums: dict[int, int] = {}
        self._tops: dict[str, float] = {}
        self._count = 0

    def rails(self, rails: tuple[Rail, ...], state: LiveState) -> str:
        """The rails' fields of one line."""
        self._count += 1
        unit = "mW" if self._l4t >= _WITH_UNITS else ""
        fields = []
        for number, rail in enumerate(rails):
            now = rail.milliwatts(state)
            self._sums[number] = self._sums.get(number, 0) + now
            values = [now, self._sums[number] // self._count]
            if self._l4t >= _WITH_MAXIMA:
                values.append(round(self._top(f"rail {number}", now)))
            fields.append(f"{rail.name} {'/'.join(f'{value}{unit}' for value in values)}")
        return " ".join(fields)

    def sensors(self, sensors: tuple[Sensor, ...], state: LiveState) -> str:
        """The temperatures of one line."""
        fields = []
        for sensor in sensors:
            if sensor.is_gated and not state.is_loaded:
                continue
            now = sensor.degrees(state)
            text = f"{sensor.name}@{_degrees(now)}C"
            if self._l4t >= _WITH_MAXIMA:
                text += f"/{_degrees(self._top(sensor.name, now))}C"
            fields.append(text)
        return " ".join(fields)

    def _top(self, name: str, now: float) -> float:
        self._tops[name] = max(now, self._tops.get(name, now))
        return self._tops[name]


def main(argv: list[str]) -> int:
    """Run the command; its exit status."""
    parser = argparse.ArgumentParser(prog="tegrastats")
    parser.add_argument("--interval", type=int, default=1000)
    parser.add_argument("--logfile")
    for flag in ("--start", "--stop", "--verbose", "--readall"):
        parser.add_argument(flag, action="store_true")
    options = parser.parse_args(argv)
    files = BoardFiles.here()
    if options.stop:
        return _stop(files)
    if options.start and os.fork():
        return 0
    if options.start:
        os.setsid()
    files.path(_PID_FILE).write_text(str(os.getpid()), encoding="utf-8")
    with contextlib.suppress(KeyboardInterrupt, BrokenPipeError):
        if options.logfile:
            with open(options.logfile, "a", encoding="utf-8") as log:  # noqa: PTH123
                _print_lines(files, log, options.interval)
        else:
            _print_lines(files, sys.stdout, options.interval)
    return 0


def _print_lines(files: BoardFiles, target: TextIO, interval_ms: int) -> None:
    facts = files.facts()
    history = _History(facts.l4t)
    while True:
        target.write(_line(files, facts, history) + "\n")
        target.flush()
        time.sleep(max(interval_ms, 10) / 1000)


def _stop(files: BoardFiles) -> int:
    with contextlib.suppress(OSError, ValueError):
        os.kill(int(files.path(_PID_FILE).read_text(encoding="utf-8")), signal.SIGTERM)
    files.path(_PID_FILE).unlink(missing_ok=True)
    return 0


def _line(files: BoardFiles, facts: BoardFacts, history: _History) -> str:
    form, state = FORMS[facts.kind], files.live_state()
    fields = [
        time.strftime("%m-%d-%Y %H:%M:%S") if facts.l4t >= _WITH_UNITS else "",
        form.memory + (form.root_memory if is_root() else ""),
        _cpu(files, facts, state),
        _engines(files, facts, form, state),
        history.sensors(form.sensors, state),
        history.rails(form.rails, state) if form.has_user_rails or is_root() else "",
    ]
    return " ".join(field for field in fields if field)


def _cpu(files: BoardFiles, facts: BoardFacts, state: LiveState) -> str:
    """``CPU [12%@2035,off,...]``: the busy cores' work is spread evenly."""
    online = files.online_cores(len(facts.idle_states))
    percent = min(100, round(100 * state.busy_cores / max(len(online), 1)))
    fields, share = [], files.clock_share()
    for core in range(len(facts.idle_states)):
        which = "scaling_max_freq" if percent > 50 else "scaling_min_freq"  # noqa: PLR2004
        khz = int(files.read(f"/sys/devices/system/cpu/cpu{core}/cpufreq/{which}"))
        if percent > 50:  # noqa: PLR2004
            khz = int(khz * share)
        fields.append(f"{percent}%@{khz // 1000}" if core in online else "off")
    return f"CPU [{','.join(fields)}]"


def _engines(files: BoardFiles, facts: BoardFacts, form: Form, state: LiveState) -> str:
    """Memory, GPU and the like; most of it is for root only."""
    emc, gpu = (38, 99) if state.is_loaded else (1, 0)
    if not is_root():
        return form.user.format(gpu=gpu)
    which = "max_freq" if state.is_loaded else "min_freq"
    gpu_hz = int(files.read(f"{facts.gpu_clocks}/{which}"))
    if state.is_loaded:
        gpu_hz = int(gpu_hz * files.clock_share())
    if form.has_gated_gpu and not state.is_loaded:
        gpu_hz = 0
    cap_hz = int(files.read(facts.emc_cap)) or facts.emc_max_hz
    return form.root.format(emc=emc, emc_mhz=cap_hz // 10**6, gpu=gpu, gpu_mhz=gpu_hz // 10**6)


def _degrees(value: float) -> str:
    """Without a needless point: ``34.5``, ``34``; thousandths are cut off, as on the boards."""
    return f"{int(value * 1000) / 1000:g}"
