"""The morning's block: groups, reasons, how long, what to do next."""

from datetime import timedelta

from farm.interfaces.sinks import RunEvent
from farm.model.attempt import Outcome, TrialState
from farm.model.measurement import Reason, Verdict, VerdictStatus
from farm.model.result import PowerModeAnswer, TrialResult
from farm.reporting.summary import MOST_REASONS, RunSummary, summarise_run
from tests.store.builders import NOW


def trial(
    board: str,
    state: TrialState,
    reason: str = "",
    outcome: Outcome | None = None,
    *,
    status: VerdictStatus | None = None,
    attempts: int = 1,
) -> TrialResult:
    codes = (Reason(code="spikes", text="2"), Reason(code="clock_drift", text="x"))
    verdict = None if status is None else Verdict(status=status, reasons=codes)
    return TrialResult(
        run="r", trial="t", board=board, profile="p", level=1, payload="x", parameters={},
        power_mode=PowerModeAnswer(asked="maxn"), repeat=1, state=state, attempts=attempts,
        outcome=outcome, reason=reason, verdict=verdict,
    )  # fmt: skip


def event(minutes: float, kind: str, board: str = "", text: str = "") -> RunEvent:
    return RunEvent(NOW + timedelta(minutes=minutes), kind, board, text=text)


def lines(summary: RunSummary) -> dict[str, tuple[int, list[str]]]:
    return {line.name: (line.count, [why.text for why in line.reasons]) for line in summary.lines}


RESULTS = [
    *[trial("a", TrialState.DONE)] * 3,
    trial("a", TrialState.DONE, status=VerdictStatus.SUSPECT),
    trial("b", TrialState.FAILED, "b: exit status 3"),
    trial("a", TrialState.FAILED, "a: exit status 3"),
    trial("a", TrialState.FAILED, "timed out"),
    trial("a", TrialState.FAILED, "no", Outcome.INVALID, status=VerdictStatus.INVALID),
    trial("b", TrialState.UNSUPPORTED, "no such mode"),
    trial("b", TrialState.PENDING, "b: no route to host"),
    trial("b", TrialState.RUNNING, attempts=0),
]


def test_trials_are_grouped_with_their_reasons_counted() -> None:
    found = lines(summarise_run("r", RESULTS, [event(0, "board_lost", "b", "b: no route")]))
    assert found == {
        "done": (3, []),
        "suspect": (1, ["1 on a: clock_drift, spikes"]),
        "failed": (3, ["2 on b, a: exit status 3", "1 on a: timed out"]),
        "invalid": (1, ["1 on a: clock_drift, spikes"]),
        "unsupported": (1, ["1 on b: no such mode"]),
        "pending": (2, ["1 on b: no route to host", "1 on b: not tried yet"]),
        "boards quarantined or lost": (1, ["1 on b: no route"]),
    }


def test_what_to_do_next_is_told_with_the_command() -> None:
    todo = dict(summarise_run("r", RESULTS, []).todo)
    assert todo == {
        "farm resume r": "tries the 2 that are pending",
        "farm resume r --failed": "tries the 4 that failed and those that are pending",
    }
    assert summarise_run("r", RESULTS[:4], []).todo == ()


def test_a_board_that_came_back_is_not_out() -> None:
    events = [event(0, "quarantined", "b", "x"), event(1, "board_ready", "b")]
    assert "boards quarantined or lost" not in lines(summarise_run("r", RESULTS, events))


def test_only_the_time_in_which_a_host_worked_counts() -> None:
    events = [
        event(0, "host_began"),
        event(30, "retry", "a"),  # killed after this
        event(600, "host_began"),
        event(620, "host_ended"),
    ]
    summary = summarise_run("r", RESULTS, events)
    assert (summary.worked_s, summary.sessions) == (50 * 60, 2)
    assert summary.begun == NOW
    assert summary.ended == NOW + timedelta(minutes=620)
    assert summarise_run("r", [], []).begun is None


def test_many_reasons_are_cut() -> None:
    many = [trial("a", TrialState.FAILED, f"reason {n}") for n in range(20)]
    (line,) = summarise_run("r", many, []).lines
    assert (len(line.reasons), line.more) == (MOST_REASONS, 20 - MOST_REASONS)
    boards = [trial(f"b{n:02}", TrialState.FAILED, "same") for n in range(20)]
    assert "20 on b00, b01" in summarise_run("r", boards, []).lines[0].reasons[0].text
    assert "and 14 more: same" in summarise_run("r", boards, []).lines[0].reasons[0].text
