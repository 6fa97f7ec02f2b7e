"""What is learned from attempts of the past: times by hand, seconds of UTC."""

import pytest

from farm.model.history import History, PastAttempt, PastReboot
from farm.model.sweep import MeasureRules, SettleRule
from farm.planning.lessons import BETWEEN_S, LONGEST_GAP_S, learn

RULES = MeasureRules(window_s=20, warmup_s=5, idle_s=10, settle=SettleRule(pause_s=1))
REAL = ("tx2", False)


def past(
    begin_s: float,
    end_s: float,
    cell: str = "c",
    *,
    board: str = "a",
    meter: str | None = None,
    power_mode: str = "maxn",
    run: int = 1,
    is_ok: bool = True,
    is_simulated: bool = False,
) -> PastAttempt:
    return PastAttempt(
        run=run,
        board=board,
        profile="tx2",
        meter=meter,
        cell_id=cell,
        payload="w",
        power_mode=power_mode,
        is_simulated=is_simulated,
        is_ok=is_ok,
        begin_s=begin_s,
        end_s=end_s,
    )


def test_an_overhead_is_what_goes_beyond_pause_warmup_and_window() -> None:
    # 3 s from end to begin, one of them the pause; 27 s for 25 s of warm-up and window
    lessons = learn(History((past(100, 127), past(130, 157)), (), {1: RULES}))
    assert lessons.cells["c"] == pytest.approx([BETWEEN_S + 2, 2 + 2])
    assert lessons.payloads["w", REAL] == lessons.cells["c"]
    assert not lessons.changes


def test_who_waits_for_a_shared_meter_is_not_slow() -> None:
    attempts = (
        past(100, 127, board="a", meter="m"),
        past(128, 155, board="b", meter="m"),
        past(157, 184, board="a", meter="m"),
    )
    lessons = learn(History(attempts, (), {1: RULES}))
    assert lessons.cells["c"][-1] == pytest.approx(1 + 2)  # since the meter was free, less pause


def test_a_rest_is_an_interruption_and_a_failed_attempt_no_sample() -> None:
    after_s = 127 + LONGEST_GAP_S + 2
    attempts = (past(100, 127), past(after_s, after_s + 26), past(9000, 9500, is_ok=False))
    lessons = learn(History(attempts, (), {1: RULES}))
    assert lessons.cells["c"] == pytest.approx([BETWEEN_S + 2, BETWEEN_S + 1])


def test_changes_of_mode_are_learned_without_idle_and_reboots() -> None:
    attempts = (
        past(100, 127, meter="m"),
        past(151, 178, meter="m", power_mode="maxq"),
        past(300, 327, meter="m", power_mode="maxp"),
    )
    reboots = (PastReboot(1, "a", 290.0, 80.0),)
    lessons = learn(History(attempts, reboots, {1: RULES}))
    # 24 s, less the pause, idle for 15 s and what lies between any two attempts
    assert lessons.changes[REAL] == pytest.approx([24 - 1 - 15 - BETWEEN_S])
    assert lessons.board_reboots["a"] == lessons.kind_reboots[REAL] == [80.0]


def test_runs_and_simulated_boards_are_kept_apart() -> None:
    attempts = (past(100, 127), past(130, 157, run=2), past(130, 160, is_simulated=True, run=3))
    lessons = learn(History(attempts, (), {1: RULES, 3: RULES}))  # 2 is not known any more
    assert lessons.payloads["w", REAL] == pytest.approx([BETWEEN_S + 2])
    assert lessons.payloads["w", ("tx2", True)] == pytest.approx([BETWEEN_S + 5])
