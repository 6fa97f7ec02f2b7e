"""NVIDIA Jetson: ``tegrastats``, the board's own view of load, clocks, temperatures and rails.

Channels, each left out of a sample that does not tell it:

    load_pct:cpu0  load_pct:GPU  load_pct:EMC  load_pct:VIC ...      percent
    clock_mhz:cpu0  clock_mhz:GPU  clock_mhz:EMC  clock_mhz:APE ...  MHz; the fastest of several
    cores_online                                                     count
    ram_used_mb  ram_total_mb  swap_used_mb  swap_total_mb           MB
    temperature_c:GPU  temperature_c:CPU ...                         degrees Celsius
    rail_mw:VDD_IN ...                                               milliwatts, this sample's

Names of temperatures are in upper case on every release, although R36 on prints lower case. Which
rail is the total is a matter of the board and stands in its profile.

The averages that tegrastats prints are no channels: they count from its start, not from a
window's. Tried on captures of L4T R27 to R39 (tests/recordings/jetson-*/tegrastats).
"""

from collections.abc import Iterator, Mapping

from farm.drivers.telemetry.tegrastats_line import Engine, TegrastatsLine, parse_line
from farm.interfaces.telemetry import Telemetry

_ROOT_ONLY = frozenset({"EMC", "GR3D"})
"""Measured on captures: without root their clock is not printed, and the load may be a mere 0."""

_PLAIN_NAMES = {"GR3D": "GPU", "GR3D2": "GPU2"}
_MEMORIES = {"RAM": "ram", "SWAP": "swap"}


class TegrastatsTelemetry(Telemetry):
    """The lines of one tegrastats process, in their order."""

    def __init__(self) -> None:
        self._measured: set[str] = set()

    def command(self, interval_s: float) -> tuple[str, ...]:
        """``tegrastats --interval MS``: on every release, a line each time."""
        return ("tegrastats", "--interval", str(max(1, round(interval_s * 1000))))

    def parse(self, line: str) -> Mapping[str, float]:
        """Channels of one line; {} for a line of something else.

        A load of 0 % without a clock is unknown until this process has shown another load of
        that engine: Orin prints it to everyone but root whatever the GPU does.
        """
        sample = parse_line(line)
        if not sample.is_sample:
            return {}
        self._measured.update(
            name for name, engine in sample.engines.items() if engine.load_pct or engine.clocks_mhz
        )
        return dict(_channels(sample, self._measured))


def channels_of(sample: TegrastatsLine) -> dict[str, float]:
    """The channels of a single sample, of which nothing earlier is known."""
    return dict(_channels(sample, frozenset()))


def _channels(
    sample: TegrastatsLine, measured: set[str] | frozenset[str]
) -> Iterator[tuple[str, float]]:
    yield from _core_channels(sample)
    for name, engine in sample.engines.items():
        yield from _engine_channels(name, engine, is_measured=name in measured)
    for name, memory in sample.memory.items():
        if name in _MEMORIES:
            yield f"{_MEMORIES[name]}_used_mb", memory.used_mb
            yield f"{_MEMORIES[name]}_total_mb", memory.total_mb
    for name, temperature in sample.temperatures.items():
        yield f"temperature_c:{name.upper()}", temperature.now_c
    for name, rail in sample.rails.items():
        yield f"rail_mw:{name}", rail.now_mw


def _core_channels(sample: TegrastatsLine) -> Iterator[tuple[str, float]]:
    if sample.cores:
        yield "cores_online", float(sum(core.is_online for core in sample.cores))
    for number, core in enumerate(sample.cores):
        if core.load_pct is not None:
            yield f"load_pct:cpu{number}", core.load_pct
        if core.clock_mhz is not None:
            yield f"clock_mhz:cpu{number}", core.clock_mhz


def _engine_channels(
    name: str, engine: Engine, *, is_measured: bool
) -> Iterator[tuple[str, float]]:
    plain = _PLAIN_NAMES.get(name, name)
    is_told = bool(engine.load_pct or engine.clocks_mhz) or is_measured or name not in _ROOT_ONLY
    if engine.load_pct is not None and is_told:
        yield f"load_pct:{plain}", engine.load_pct
    if engine.clocks_mhz:
        yield f"clock_mhz:{plain}", max(engine.clocks_mhz)
