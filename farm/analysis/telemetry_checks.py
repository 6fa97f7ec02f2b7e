"""What a board's telemetry says against an attempt: heat, throttling, low clocks, other load.

All of it makes an attempt suspect, never invalid: it measured what it says, on a board that was
not as it should be. Times: board boot-time seconds, of trace and window alike.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

from farm.analysis.power_checks import Finding
from farm.analysis.reasons import ReasonCode, reason
from farm.model.measurement import Window
from farm.model.power_mode import PowerMode
from farm.model.telemetry import TelemetryTrace

LOADED_PCT = 90.0
"""Assumed: a core or GPU this busy has no reason to run below its cap."""
MIN_LOADED = 3
MIN_CLOCK_SHARE = 0.90
"""Assumed: between it and 1 lie caps that the kernel snaps to its table."""
FOREIGN_PCT = 10.0
REST_S, MIN_REST = 15.0, 3
"""Before an attempt, so far back and so many samples at least: who else uses the GPU?"""
REST_DELAY_S = 1.5
"""A sample's load is a mean over the time since the one before."""
_NOW_BITS = 0xF
_BITS = ("under-voltage", "ARM clock capped", "throttled", "soft temperature limit")
"""get_throttled's bits 0 to 3 (now) and 16 to 19 (since boot), Raspberry Pi documentation."""
_MOST_NAMED = 4


@dataclass(frozen=True, slots=True)
class TelemetryEvidence:
    """A trace that reaches beyond `window` on both sides.

    `begin_s`: when the attempt began. `limit_c`: the profile's. `mode`: the profile's word on
    the mode's caps, for what the board does not tell. `are_caps_reached`: False where a cap is
    a turbo clock that a loaded core does not hold (x86).
    """

    trace: TelemetryTrace
    window: Window
    begin_s: float
    limit_c: float | None = None
    mode: PowerMode | None = None
    are_caps_reached: bool = True


def check_telemetry(evidence: TelemetryEvidence) -> Iterator[Finding]:
    """All findings."""
    if evidence.are_caps_reached:
        yield from _clocks(evidence)
    yield from _temperature(evidence)
    yield from _over_current(evidence)
    yield from _throttled(evidence)
    yield from _foreign_load(evidence)


def _clocks(evidence: TelemetryEvidence) -> Iterator[Finding]:
    low: list[tuple[float, str]] = []
    for name in evidence.trace.named("clock_mhz"):
        cap = _cap_mhz(evidence, name)
        loaded = _loaded_clocks(evidence, name)
        if cap is None or len(loaded) < MIN_LOADED:
            continue
        clock = median(loaded)
        if clock < MIN_CLOCK_SHARE * cap:
            text = f"{name} at {clock:.0f} of {cap:.0f} MHz"
            low.append((clock / cap, f"{text} over {len(loaded)} loaded samples"))
    if low:
        named = [text for _, text in sorted(low)[:_MOST_NAMED]]
        yield _suspect(ReasonCode.CLOCK_BELOW_CAP, ", ".join(named))


def _cap_mhz(evidence: TelemetryEvidence, name: str) -> float | None:
    """The highest cap that the board told around the attempt: heat may lower it meanwhile."""
    told = [value for _, value in evidence.trace.known(f"cap_mhz:{name}")]
    if told:
        return max(told)
    mode = evidence.mode
    if mode is None:
        return None
    caps = {"GPU": mode.gpu_mhz}
    return caps.get(name, mode.cpu_mhz if name.startswith("cpu") else None)


def _loaded_clocks(evidence: TelemetryEvidence, name: str) -> list[float]:
    """Clocks in the window while the last load told was high. A clock of 0 is a gated block."""
    window = evidence.window
    loads = [(t_s, load, True) for t_s, load in evidence.trace.known(f"load_pct:{name}")] + [
        (t_s, clock, False) for t_s, clock in evidence.trace.known(f"clock_mhz:{name}")
    ]
    found, load_now = [], 0.0
    for t_s, value, is_load in sorted(loads, key=lambda one: (one[0], not one[2])):
        if is_load:
            load_now = value
        elif window.begin_s <= t_s <= window.end_s and load_now >= LOADED_PCT and value > 0:
            found.append(value)
    return found


def _temperature(evidence: TelemetryEvidence) -> Iterator[Finding]:
    limit = evidence.limit_c
    if limit is None:
        return
    hottest = [
        (max(values), name)
        for name in evidence.trace.named("temperature_c")
        if (values := _in_window(evidence, f"temperature_c:{name}"))
    ]
    if hottest and max(hottest)[0] > limit:
        celsius, name = max(hottest)
        text = f"{name} reached {celsius:.1f} C, the profile's limit is {limit:.1f} C"
        yield _suspect(ReasonCode.OVER_TEMPERATURE, text)


def _over_current(evidence: TelemetryEvidence) -> Iterator[Finding]:
    grown = _grown(evidence, "over_current_count")
    if grown:
        yield _suspect(ReasonCode.OVER_CURRENT, f"over-current events: {', '.join(grown)}")


def _throttled(evidence: TelemetryEvidence) -> Iterator[Finding]:
    texts = [f"{text} throttling events" for text in _grown(evidence, "throttle_count")]
    for name in evidence.trace.named("cooling_state"):
        states = _in_window(evidence, f"cooling_state:{name}")
        if states and max(states) > 0:
            count = sum(state > 0 for state in states)
            texts.append(f"{name} at {max(states):.0f} in {count} of {len(states)} samples")
    bits = 0
    for value in _in_window(evidence, "throttled_bits"):
        bits |= int(value) & _NOW_BITS
    first, last = _around(evidence, "throttled_bits")
    bits |= ((int(last) & ~int(first)) >> 16) & _NOW_BITS
    texts += [name for number, name in enumerate(_BITS) if bits >> number & 1]
    if texts:
        yield _suspect(ReasonCode.THROTTLED, ", ".join(texts[:_MOST_NAMED]))


def _foreign_load(evidence: TelemetryEvidence) -> Iterator[Finding]:
    texts = []
    for name, percent in sorted(_foreign_shares(evidence).items(), key=lambda one: -one[1]):
        if percent > FOREIGN_PCT:
            texts.append(f"{name} used {percent:.0f} % of a core")
    resting = _loads_at_rest(evidence)
    if len(resting) >= MIN_REST and median(resting) > FOREIGN_PCT:
        text = f"the GPU was {median(resting):.0f} % busy while nothing of ours ran"
        texts.append(f"{text} ({len(resting)} samples)")
    if texts:
        yield _suspect(ReasonCode.FOREIGN_LOAD, ", ".join(texts[:_MOST_NAMED]))


def _foreign_shares(evidence: TelemetryEvidence) -> dict[str, float]:
    """Percent of a core over the window, by process; not of spans that lie mostly outside."""
    window = evidence.window
    length_s = window.end_s - window.begin_s
    shares: dict[str, float] = {}
    for load in evidence.trace.foreign:
        overlap_s = min(load.end_s, window.end_s) - max(load.begin_s, window.begin_s)
        if length_s > 0 and overlap_s > 0 and overlap_s >= (load.end_s - load.begin_s) / 2:
            share = load.percent * overlap_s / length_s
            shares[load.name] = shares.get(load.name, 0.0) + share
    return shares


def _loads_at_rest(evidence: TelemetryEvidence) -> list[float]:
    """The GPU's load before the attempt, while no attempt ran on the board."""
    trace, begin_s = evidence.trace, evidence.begin_s
    counts = [(t_s, count, True) for t_s, count in trace.known("attempts")]
    loads = [(t_s, load, False) for t_s, load in trace.known("load_pct:GPU")]
    found, rest_since = [], None
    for t_s, value, is_count in sorted(counts + loads, key=lambda one: (one[0], not one[2])):
        if not begin_s - REST_S <= t_s < begin_s:
            continue
        if is_count:
            rest_since = None if value else t_s if rest_since is None else rest_since
        elif rest_since is not None and t_s - rest_since >= REST_DELAY_S:
            found.append(value)
    return found


def _grown(evidence: TelemetryEvidence, kind: str) -> list[str]:
    """Counters that went up from before the window to after it."""
    texts = []
    for name in evidence.trace.named(kind):
        first, last = _around(evidence, f"{kind}:{name}")
        if last > first:
            texts.append(f"{last - first:.0f} of {name}")
    return texts


def _around(evidence: TelemetryEvidence, channel: str) -> tuple[float, float]:
    """The last figure before the window and the first after it, else the nearest within."""
    window, known = evidence.window, list(evidence.trace.known(channel))
    if not known:
        return 0.0, 0.0
    before = [value for t_s, value in known if t_s <= window.begin_s]
    after = [value for t_s, value in known if t_s >= window.end_s]
    return (before[-1] if before else known[0][1], after[0] if after else known[-1][1])


def _in_window(evidence: TelemetryEvidence, channel: str) -> list[float]:
    window = evidence.window
    return [
        value
        for t_s, value in evidence.trace.known(channel)
        if window.begin_s <= t_s <= window.end_s
    ]


def _suspect(code: ReasonCode, text: str) -> Finding:
    return Finding(reason(code, text), is_invalid=False)
