"""What follows from an outcome."""

import random

import pytest

from farm.execution.retry import LONGEST_DELAY_S, backoff_s, cool_down_s, state_after
from farm.model.attempt import Outcome, TrialState
from farm.model.sweep import Limits, SettleRule

LIMITS = Limits(retries=2)


@pytest.mark.parametrize(
    ("outcome", "number", "previous", "state"),
    [
        (Outcome.OK, 1, "", TrialState.DONE),
        (Outcome.UNSUPPORTED, 1, "", TrialState.UNSUPPORTED),
        (Outcome.CANCELLED, 9, "", TrialState.PENDING),
        (Outcome.FAILED, 1, "", TrialState.PENDING),
        (Outcome.FAILED, 2, "why", TrialState.FAILED),
        (Outcome.FAILED, 2, "other", TrialState.PENDING),
        (Outcome.LOST, 2, "why", TrialState.PENDING),
        (Outcome.INVALID, 3, "why", TrialState.FAILED),
        (Outcome.TIMED_OUT, 3, "", TrialState.FAILED),
    ],
)
def test_state_after(outcome: Outcome, number: int, previous: str, state: TrialState) -> None:
    assert state_after(outcome, "why", number, previous, LIMITS) is state


def test_the_same_failure_need_not_have_the_same_amount() -> None:
    one, other = (
        f"over its memory limit: {mb} MB resident, more than 96 MB" for mb in (101, 99.5)
    )
    assert state_after(Outcome.FAILED, one, 2, other, LIMITS) is TrialState.FAILED
    one, other = "exit status 1", "exit status 2"
    assert state_after(Outcome.FAILED, one, 2, other, LIMITS) is TrialState.PENDING


def test_a_disturbed_result_is_tried_again_until_the_limit() -> None:
    limits = Limits(retries=0, requeues=2)
    states = [
        state_after(Outcome.OK, "", number, "", limits, is_disturbed=True) for number in (1, 2, 3)
    ]
    assert states == [TrialState.PENDING, TrialState.PENDING, TrialState.DONE]


def test_a_cool_down_doubles_and_is_bounded() -> None:
    rule = SettleRule(cool_down_s=60, max_wait_s=200)
    assert [cool_down_s(number, rule) for number in (0, 1, 2, 3, 99)] == [0, 60, 120, 200, 200]


def test_backoff_doubles_and_is_bounded() -> None:
    chance = random.Random(1)
    delays = [backoff_s(tries, chance) for tries in range(1, 12)]
    assert all(0.25 * 2.0**n <= delay <= 0.5 * 2.0**n for n, delay in enumerate(delays[:6]))
    assert max(delays) <= LONGEST_DELAY_S
