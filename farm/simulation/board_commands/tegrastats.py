"""``tegrastats`` of L4T R32 for TX2 and Nano, from the state that the physics writes.

    tegrastats [--interval MS] [--logfile FILE] [--start | --stop] [--help]

Rail values are milliwatts, now/mean since this process began. As on the boards, some fields
are there for root only. The shares of the rails are assumed; their sum with the carrier's own
need is what the socket meter sees.
"""

import argparse
import contextlib
import os
import signal
import sys
import time
from typing import NamedTuple, TextIO

from farm.simulation.board_commands.board_files import (
    BoardFacts,
    BoardFiles,
    LiveState,
    is_root,
)

_PID_FILE = "/run/farm-sim/tegrastats.pid"
_MODULE_SHARE = 0.85  # assumed: the adapter and the carrier take the rest of the socket's watts


class _Rail(NamedTuple):
    """A rail's share of the module's power at rest, and while the GPU works."""

    name: str
    idle: float
    loaded: float


_TX2_RAILS = (
    _Rail("VDD_SYS_GPU", 0.08, 0.45),
    _Rail("VDD_SYS_SOC", 0.20, 0.12),
    _Rail("VDD_4V0_WIFI", 0.0, 0.0),
    _Rail("VDD_IN", 1.0, 1.0),
    _Rail("VDD_SYS_CPU", 0.13, 0.10),
    _Rail("VDD_SYS_DDR", 0.08, 0.16),
)
_NANO_RAILS = (
    _Rail("POM_5V_IN", 1.0, 1.0),
    _Rail("POM_5V_GPU", 0.03, 0.50),
    _Rail("POM_5V_CPU", 0.13, 0.15),
)


class _Averages:
    """Means since the process began, as tegrastats prints them."""

    def __init__(self) -> None:
        self._sums: dict[str, int] = {}
        self._count = 0

    def rails(self, rails: tuple[_Rail, ...], state: LiveState) -> str:
        """The rails' fields of one line."""
        self._count += 1
        module_mw = state.power_w * 1000 * _MODULE_SHARE
        fields = []
        for rail in rails:
            now = round(module_mw * (rail.loaded if state.is_loaded else rail.idle))
            self._sums[rail.name] = self._sums.get(rail.name, 0) + now
            fields.append(f"{rail.name} {now}/{self._sums[rail.name] // self._count}")
        return " ".join(fields)


def main(argv: list[str]) -> int:
    """Run the command; its exit status."""
    parser = argparse.ArgumentParser(prog="tegrastats")
    parser.add_argument("--interval", type=int, default=1000)
    parser.add_argument("--logfile")
    parser.add_argument("--start", action="store_true")
    parser.add_argument("--stop", action="store_true")
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
    averages = _Averages()
    while True:
        target.write(_line(files, facts, averages) + "\n")
        target.flush()
        time.sleep(max(interval_ms, 10) / 1000)


def _stop(files: BoardFiles) -> int:
    with contextlib.suppress(OSError, ValueError):
        os.kill(int(files.path(_PID_FILE).read_text(encoding="utf-8")), signal.SIGTERM)
    files.path(_PID_FILE).unlink(missing_ok=True)
    return 0


def _line(files: BoardFiles, facts: BoardFacts, averages: _Averages) -> str:
    state = files.live_state()
    cpu = _cpu(files, facts, state)
    if facts.tegrastats == "tx2":
        engines = _engines(files, facts, state, " APE 150 MTS fg 0% bg 0%")
        return (
            f"RAM 1404/7860MB (lfb 236x4MB) SWAP 0/3930MB (cached 0MB) {cpu} {engines} "
            f"{_tx2_temperatures(state)} {averages.rails(_TX2_RAILS, state)}"
        )
    engines = _engines(files, facts, state, " APE 25")
    iram = " IRAM 0/252kB(lfb 252kB)" if is_root() else ""
    return (
        f"RAM 613/3964MB (lfb 634x4MB) SWAP 0/1982MB (cached 0MB){iram} "
        f"{cpu} {engines} {_nano_temperatures(state)} {averages.rails(_NANO_RAILS, state)}"
    )


def _cpu(files: BoardFiles, facts: BoardFacts, state: LiveState) -> str:
    """``CPU [12%@2035,off,...]``: the busy cores' work is spread evenly."""
    online = files.online_cores(len(facts.idle_states))
    percent = min(100, round(100 * state.busy_cores / max(len(online), 1)))
    fields = []
    for core in range(len(facts.idle_states)):
        which = "scaling_max_freq" if percent > 50 else "scaling_min_freq"  # noqa: PLR2004
        khz = int(files.read(f"/sys/devices/system/cpu/cpu{core}/cpufreq/{which}"))
        fields.append(f"{percent}%@{khz // 1000}" if core in online else "off")
    return f"CPU [{','.join(fields)}]"


def _engines(files: BoardFiles, facts: BoardFacts, state: LiveState, root_only: str) -> str:
    """Memory and GPU; clocks and the last fields are for root only."""
    emc, gpu = (38, 99) if state.is_loaded else (1, 0)
    if not is_root():
        return "EMC_FREQ 0% GR3D_FREQ 0%"
    which = "max_freq" if state.is_loaded else "min_freq"
    gpu_hz = int(files.read(f"/sys/devices/{facts.gpu}/devfreq/{facts.gpu}/{which}"))
    cap_hz = int(files.read("/sys/kernel/nvpmodel_emc_cap/emc_iso_cap")) or facts.emc_max_hz
    return f"EMC_FREQ {emc}%@{cap_hz // 10**6} GR3D_FREQ {gpu}%@{gpu_hz // 10**6}{root_only}"


def _degrees(value: float) -> str:
    """Halves of a degree, without a needless point: ``34.5``, ``34``."""
    return f"{round(value * 2) / 2:g}"


def _tx2_temperatures(state: LiveState) -> str:
    core, board = _degrees(state.temperature_c), _degrees(state.temperature_c - 4)
    gpu = _degrees(state.temperature_c + (1 if state.is_loaded else -1.5))
    return (
        f"PLL@{core}C MCPU@{core}C PMIC@100C Tboard@{board}C GPU@{gpu}C BCPU@{core}C "
        f"thermal@{state.temperature_c:.1f}C Tdiode@{board}C"
    )


def _nano_temperatures(state: LiveState) -> str:
    core = _degrees(state.temperature_c)
    return (
        f"PLL@{_degrees(state.temperature_c - 1.5)}C CPU@{core}C PMIC@100C GPU@{core}C "
        f"AO@{_degrees(state.temperature_c + 5)}C thermal@{core}C"
    )
