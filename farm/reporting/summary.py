"""What a run came to, for who looks in the morning: counts, why, how long, what to do next."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from farm.interfaces.sinks import RunEvent
from farm.model.attempt import Outcome, TrialState
from farm.model.measurement import VerdictStatus
from farm.model.result import TrialResult

MOST_REASONS = 5
LONGEST_REASON = 200
MOST_BOARDS = 6
_OPEN = (TrialState.PENDING, TrialState.RUNNING)
_LOST = ("board_lost", "quarantined")
_FOUND = ("board_ready", "board_back", "rebooted")
_SESSION = ("host_began", "host_stopped", "host_ended")


@dataclass(frozen=True, slots=True)
class WhyCount:
    """A reason, how many trials have it, and on which boards."""

    reason: str
    count: int
    boards: tuple[str, ...]

    @property
    def text(self) -> str:
        """``12 on a, b: no route to host``."""
        more = len(self.boards) - MOST_BOARDS
        boards = ", ".join(self.boards[:MOST_BOARDS]) + (f" and {more} more" if more > 0 else "")
        return f"{self.count} on {boards}: {self.reason or 'no reason was noted'}"


@dataclass(frozen=True, slots=True)
class SummaryLine:
    """Trials that ended alike; `reasons`: the commonest first, `more` trials have others."""

    name: str
    count: int
    reasons: tuple[WhyCount, ...] = ()
    more: int = 0


@dataclass(frozen=True, slots=True)
class RunSummary:
    """The block on top of `farm runs show` and of the report.

    `worked_s`: how long a host worked on the run, `sessions`: how many times one began.
    """

    run_id: str
    lines: tuple[SummaryLine, ...]
    begun: datetime | None
    ended: datetime | None
    worked_s: float
    sessions: int
    todo: tuple[tuple[str, str], ...]
    """What to do next: the command, and what it does."""


def summarise_run(
    run_id: str, results: Sequence[TrialResult], events: Sequence[RunEvent]
) -> RunSummary:
    """Put a run's trials and events into one block. Boards that are out now have a line each."""
    groups: dict[str, list[tuple[str, str]]] = {}
    for one in results:
        name = _group(one)
        groups.setdefault(name, []).append((one.board, _reason(one, name)))
    names = ("done", "suspect", "failed", "invalid", "unsupported", "skipped", "pending")
    lines = [_line(name, groups[name]) for name in names if name in groups]
    out = _out_of_run(events, {one.board for one in results if one.state in _OPEN})
    if out:
        lines.append(_line("boards quarantined or lost", out))
    spans = _spans(events, results)
    return RunSummary(
        run_id=run_id,
        lines=tuple(lines),
        begun=spans[0][0] if spans else None,
        ended=spans[-1][1] if spans else None,
        worked_s=sum((end - begin for begin, end in spans), timedelta()).total_seconds(),
        sessions=len(spans),
        todo=_todo(run_id, {name: len(found) for name, found in groups.items()}),
    )


def _group(one: TrialResult) -> str:
    if one.state is TrialState.DONE:
        is_suspect = one.verdict is not None and one.verdict.status is VerdictStatus.SUSPECT
        return "suspect" if is_suspect else "done"
    if one.state is TrialState.FAILED and one.outcome is Outcome.INVALID:
        return "invalid"
    return "pending" if one.state in _OPEN else one.state.value


def _reason(one: TrialResult, group: str) -> str:
    if group == "done":
        return ""
    if group in ("suspect", "invalid") and one.verdict is not None and one.verdict.reasons:
        return ", ".join(sorted({reason.code for reason in one.verdict.reasons}))
    text = " ".join(one.reason.split())
    if not text and group == "pending":
        return "not tried yet" if not one.attempts else "was stopped"
    return text if len(text) <= LONGEST_REASON else text[: LONGEST_REASON - 4] + " ..."


def _line(name: str, found: Sequence[tuple[str, str]]) -> SummaryLine:
    """Groups by reason; a board's own name in one does not keep it apart from others' alike."""
    if name == "done":
        return SummaryLine(name, len(found))
    by_reason: dict[str, list[str]] = {}
    for board, reason in found:
        by_reason.setdefault(reason.removeprefix(f"{board}: "), []).append(board)
    common = sorted(by_reason.items(), key=lambda item: -len(item[1]))
    shown = tuple(
        WhyCount(reason, len(boards), tuple(Counter(boards)))
        for reason, boards in common[:MOST_REASONS]
    )
    return SummaryLine(name, len(found), shown, len(found) - sum(one.count for one in shown))


def _out_of_run(events: Iterable[RunEvent], with_work: set[str]) -> list[tuple[str, str]]:
    """Boards whose last word is that they fell out, and whose trials wait for them."""
    out: dict[str, str] = {}
    for event in events:
        if event.kind in _LOST:
            out[event.board] = " ".join(event.text.split())[:LONGEST_REASON]
        elif event.kind in _FOUND:
            out.pop(event.board, None)
    return [(board, text) for board, text in out.items() if board in with_work]


def _spans(
    events: Sequence[RunEvent], results: Sequence[TrialResult]
) -> list[tuple[datetime, datetime]]:
    """From when to when a host worked on the run; a killed one, until its last trace."""
    marks = [event for event in events if event.kind in _SESSION]
    traces = sorted(
        [event.time for event in events] + [one.ended for one in results if one.ended is not None]
    )
    if not traces:
        return []
    begins = [event for event in marks if event.kind == "host_began"]
    if not begins:  # of a farm that did not note it
        return [(traces[0], traces[-1])]
    spans = []
    for begin, following in pairwise([*begins, None]):
        if begin is None:
            continue
        limit = following.time if following is not None else None
        ends = [time for time in traces if time >= begin.time and (limit is None or time < limit)]
        spans.append((begin.time, max(ends, default=begin.time)))
    return spans


def _todo(run_id: str, counts: dict[str, int]) -> tuple[tuple[str, str], ...]:
    todo = []
    bad = counts.get("failed", 0) + counts.get("invalid", 0)
    if left := counts.get("pending", 0):
        todo.append((f"farm resume {run_id}", f"tries the {left} that are pending"))
    if bad:
        more = " and those that are pending" if left else ""
        todo.append((f"farm resume {run_id} --failed", f"tries the {bad} that failed{more}"))
    return tuple(todo)
