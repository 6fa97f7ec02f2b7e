"""What follows from an attempt's outcome, and how long to wait between tries."""

import random
import re

from farm.model.attempt import Outcome, TrialState
from farm.model.sweep import Limits, SettleRule

FIRST_DELAY_S = 0.5
LONGEST_DELAY_S = 30.0

_AMOUNT = re.compile(r"\d+(?:\.\d+)?(?= (?:MB|s)\b)")
_ENDS = {Outcome.OK: TrialState.DONE, Outcome.UNSUPPORTED: TrialState.UNSUPPORTED}


def state_after(
    outcome: Outcome,
    reason: str,
    number: int,
    previous_reason: str,
    limits: Limits,
    *,
    is_disturbed: bool = False,
) -> TrialState:
    """The trial's state after attempt `number` ended with `outcome`.

    ``PENDING`` means that it is tried again. A payload that fails twice in the same way
    will do so a third time; a board that was lost or a reading that did not hold may not.
    `is_disturbed`: it is a result, and a better one is worth another try.
    """
    if outcome is Outcome.OK and is_disturbed and number <= limits.requeues:
        return TrialState.PENDING
    if outcome in _ENDS:
        return _ENDS[outcome]
    if outcome is Outcome.CANCELLED:
        return TrialState.PENDING
    is_same_failure = outcome is Outcome.FAILED and _way(reason) == _way(previous_reason)
    if number > limits.retries or is_same_failure:
        return TrialState.FAILED
    return TrialState.PENDING


def _way(reason: str) -> str:
    """How it failed, without how much: no payload eats the same megabytes twice."""
    return _AMOUNT.sub("#", reason)


def cool_down_s(disturbed: int, settle: SettleRule) -> float:
    """Seconds of rest after so many disturbed attempts of a trial in a row: doubling, bounded."""
    if disturbed <= 0:
        return 0.0
    return min(settle.max_wait_s, settle.cool_down_s * 2.0 ** min(disturbed - 1, 32))


def backoff_s(tries: int, chance: random.Random) -> float:
    """Seconds to wait after `tries` failures (from 1): doubling, with full jitter above half."""
    delay_s = min(LONGEST_DELAY_S, FIRST_DELAY_S * 2.0 ** (tries - 1))
    return delay_s * (0.5 + 0.5 * chance.random())
