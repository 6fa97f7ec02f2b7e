"""The board's boot-time clock on the host's monotonic axis. All times are in seconds.

One exchange asks the board for its clock: host sent, board answered, host received. The
board's answer lies somewhere between the two host stamps, so the offset
``board - (sent + received) / 2`` is known to half the round trip. The exchange with the
least round trip before and the one after the payload give the line. docs/energy.md, "Clock".
"""

from collections.abc import Sequence
from math import isfinite

from farm.analysis.reasons import ReasonCode, reason
from farm.errors import AnalysisError
from farm.model.measurement import ClockExchange, ClockMap, Reason

MAX_DRIFT = 200e-6
"""Assumed: crystals keep 100 ppm; twice that between two machines means a clock was stepped."""

MAX_BOUND_S = 0.25
"""Assumed: a plug's value is older than this anyway; a wider bound means a sick link."""

_SHORT_BASE_S = 1.0
"""Below this span a slope is round trip noise, so none is taken."""


def fit_clock_map(before: Sequence[ClockExchange], after: Sequence[ClockExchange]) -> ClockMap:
    """The linear map through the best exchange before and the best one after the payload.

    Raises AnalysisError when a side has no usable exchange or the board's clock went back.
    """
    first, last = _best(before), _best(after)
    if first is None or last is None:
        raise AnalysisError("no usable clock exchange before or after the payload")
    span = last.board_s - first.board_s
    if span < 0:
        raise AnalysisError(f"the board's boot-time clock went back by {-span:.3f} s")
    shift = _offset_s(last) - _offset_s(first)
    bound = max(_bound_s(first), _bound_s(last))
    if span < _SHORT_BASE_S:
        return ClockMap(
            offset_s=_offset_s(first) + shift / 2,
            board_ref_s=first.board_s,
            bound_s=bound + abs(shift) / 2,
        )
    return ClockMap(
        offset_s=_offset_s(first),
        drift=shift / span,
        board_ref_s=first.board_s,
        bound_s=bound,
    )


def clock_problems(
    before: Sequence[ClockExchange],
    after: Sequence[ClockExchange],
    *,
    are_boot_ids_equal: bool,
) -> tuple[Reason, ...]:
    """What forbids trusting the map: another boot, no exchange, too much drift, too wide a bound.

    The drift limit allows what the two round trips leave open: over a payload of a few
    seconds a few milliseconds of round trip would else look like hundreds of ppm.
    """
    if not are_boot_ids_equal:
        return (reason(ReasonCode.BOOT_CHANGED, "the board booted during the attempt"),)
    first, last = _best(before), _best(after)
    if first is None or last is None:
        side = "before" if first is None else "after"
        return (reason(ReasonCode.CLOCK_MISSING, f"no clock exchange {side} the payload"),)
    span = last.board_s - first.board_s
    if span < 0:
        return (reason(ReasonCode.BOOT_CHANGED, f"the board's clock went back {-span:.3f} s"),)
    problems: list[Reason] = []
    bounds = _bound_s(first) + _bound_s(last)
    shift = abs(_offset_s(last) - _offset_s(first))
    if shift > MAX_DRIFT * span + bounds:
        text = f"{shift * 1e3:.1f} ms in {span:.1f} s, round trips explain {bounds * 1e3:.1f} ms"
        problems.append(reason(ReasonCode.CLOCK_DRIFT, text))
    bound = max(_bound_s(first), _bound_s(last))
    if bound > MAX_BOUND_S:
        text = f"known to {bound * 1e3:.0f} ms only, {MAX_BOUND_S * 1e3:.0f} ms allowed"
        problems.append(reason(ReasonCode.CLOCK_BOUND, text))
    return tuple(problems)


def _best(exchanges: Sequence[ClockExchange]) -> ClockExchange | None:
    usable = [
        e
        for e in exchanges
        if isfinite(e.board_s) and isfinite(_bound_s(e)) and _bound_s(e) >= 0 <= e.board_s
    ]
    return min(usable, key=_bound_s, default=None)


def _bound_s(exchange: ClockExchange) -> float:
    return (exchange.host_received_s - exchange.host_sent_s) / 2


def _offset_s(exchange: ClockExchange) -> float:
    return exchange.board_s - (exchange.host_sent_s + exchange.host_received_s) / 2
