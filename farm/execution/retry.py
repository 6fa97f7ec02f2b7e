"""What follows from an attempt's outcome, and how long to wait between tries."""

import random

from farm.model.attempt import Outcome, TrialState
from farm.model.sweep import Limits

FIRST_DELAY_S = 0.5
LONGEST_DELAY_S = 30.0

_ENDS = {Outcome.OK: TrialState.DONE, Outcome.UNSUPPORTED: TrialState.UNSUPPORTED}


def state_after(
    outcome: Outcome, reason: str, number: int, previous_reason: str, limits: Limits
) -> TrialState:
    """The trial's state after attempt `number` ended with `outcome`.

    ``PENDING`` means that it is tried again. A payload that fails twice in the same way
    will do so a third time; a board that was lost or a reading that did not hold may not.
    """
    if outcome in _ENDS:
        return _ENDS[outcome]
    if outcome is Outcome.CANCELLED:
        return TrialState.PENDING
    is_same_failure = outcome is Outcome.FAILED and reason == previous_reason
    if number > limits.retries or is_same_failure:
        return TrialState.FAILED
    return TrialState.PENDING


def backoff_s(tries: int, chance: random.Random) -> float:
    """Seconds to wait after `tries` failures (from 1): doubling, with full jitter above half."""
    delay_s = min(LONGEST_DELAY_S, FIRST_DELAY_S * 2.0 ** (tries - 1))
    return delay_s * (0.5 + 0.5 * chance.random())
