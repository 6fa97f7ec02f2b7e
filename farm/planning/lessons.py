"""A history of attempts -> how much longer than planned each cell, change and reboot took. Pure.

An attempt's *overhead* is what it took beyond the pause, warm-up and window of its own run's
sweep, from the moment at which its board (and the meter that it shares) was free. So history
holds for sweeps with another window, too, unless a payload runs longer than any window.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple

from farm.model.history import History, PastAttempt
from farm.model.sweep import MeasureRules

LONGEST_GAP_S = 1800.0
"""A longer rest between two attempts was an interruption, not work."""

BETWEEN_S = 0.7
"""From one attempt's end to the next one's begin. Measured on simulated boards."""

IDLE_SHARE = 1.5
"""A change of mode measures idle for half of `idle_s` after the old, for all of it before the
new mode."""

Kind = tuple[str, bool]
"""A profile, and whether the board is simulated."""


@dataclass(slots=True)
class Lessons:
    """Seconds seen: overheads of attempts, changes of mode without reboot, reboots."""

    cells: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    payloads: dict[tuple[str, Kind], list[float]] = field(
        default_factory=lambda: defaultdict(list)
    )
    changes: dict[Kind, list[float]] = field(default_factory=lambda: defaultdict(list))
    board_reboots: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    kind_reboots: dict[Kind, list[float]] = field(default_factory=lambda: defaultdict(list))


class _Step(NamedTuple):
    """An attempt, the one before it on its board, and when it could have begun."""

    before: PastAttempt | None
    attempt: PastAttempt
    ready_s: float


def learn(history: History) -> Lessons:
    """Sort a history into samples. Attempts that were no result teach nothing themselves."""
    lessons = Lessons()
    kinds = {one.board: (one.profile, one.is_simulated) for one in history.attempts}
    reboots: dict[tuple[int, str], list[float]] = defaultdict(list)
    for reboot in history.reboots:
        reboots[reboot.run, reboot.board].append(reboot.end_s)
        lessons.board_reboots[reboot.board].append(reboot.seconds)
        if reboot.board in kinds:
            lessons.kind_reboots[kinds[reboot.board]].append(reboot.seconds)
    for run, group in groupby(sorted(history.attempts), key=lambda one: one.run):
        rules = history.rules.get(run)
        if rules is not None:
            for step in _steps(sorted(group, key=lambda one: one.begin_s)):
                _learn_one(lessons, step, rules, reboots.get((run, step.attempt.board), ()))
    return lessons


def _steps(attempts: Sequence[PastAttempt]) -> Iterator[_Step]:
    last: dict[str, PastAttempt] = {}
    free_s: dict[str, float] = {}
    for attempt in attempts:
        before = last.get(attempt.board)
        ready_s = before.end_s if before else attempt.begin_s
        if attempt.meter is not None:
            ready_s = max(ready_s, free_s.get(attempt.meter, ready_s))
            free_s[attempt.meter] = attempt.end_s
        last[attempt.board] = attempt
        yield _Step(before, attempt, ready_s)


def _learn_one(
    lessons: Lessons, step: _Step, rules: MeasureRules, reboot_ends: Sequence[float]
) -> None:
    before, attempt = step.before, step.attempt
    kind = (attempt.profile, attempt.is_simulated)
    between_s = BETWEEN_S
    gap_s = max(0.0, attempt.begin_s - step.ready_s - rules.settle.pause_s)
    if before is not None and gap_s <= LONGEST_GAP_S:
        if before.power_mode == attempt.power_mode:
            between_s = gap_s
        elif not any(before.end_s <= end_s <= attempt.begin_s for end_s in reboot_ends):
            has_idle = attempt.meter is not None and rules.power != "off"
            idle_s = IDLE_SHARE * rules.idle_s if has_idle else 0.0
            lessons.changes[kind].append(max(0.0, gap_s - idle_s - BETWEEN_S))
    if attempt.is_ok:
        measured_s = rules.warmup_s + rules.window_s
        overhead_s = between_s + attempt.end_s - attempt.begin_s - measured_s
        lessons.cells[attempt.cell_id].append(overhead_s)
        lessons.payloads[attempt.payload, kind].append(overhead_s)
