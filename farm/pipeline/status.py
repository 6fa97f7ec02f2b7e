"""How a run stands, read from the store alone: by another process, at any time."""

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Literal

from farm.errors import StoreError
from farm.interfaces.sinks import RunEvent, TrialProgress
from farm.model.attempt import TrialState
from farm.model.plan import Plan
from farm.store.database import Store
from farm.store.locks import Holder
from farm.store.runs import RunInfo

SILENT_S = 60.0
"""A process that shows no life for twelve beats hangs, or its disk does."""
FINAL = (TrialState.DONE, TrialState.FAILED, TrialState.UNSUPPORTED, TrialState.SKIPPED)
MOST_TRACE_BYTES = 1024 * 1024
"""A longer trace is not read for its last value alone."""

Liveness = Literal["working", "silent", "gone", "stopped", "finished"]


@dataclass(frozen=True, slots=True)
class RunStatus:
    """Who works on a run. `beat`: the last sign of life of `holder`, who may be gone; UTC."""

    info: RunInfo
    liveness: Liveness
    holder: Holder | None
    beat: datetime | None


def run_status(store: Store, run_id: str) -> RunStatus:
    """Whether somebody works on the run, and who. Raises StoreError."""
    info = store.run(run_id)
    holder, beat = store.run_holder(run_id), store.last_beat(run_id)
    if holder is not None:
        is_silent = beat is not None and datetime.now(UTC) - beat > timedelta(seconds=SILENT_S)
        return RunStatus(info, "silent" if is_silent else "working", holder, beat)
    if info.state == "finished":
        return RunStatus(info, "finished", None, beat)
    liveness: Liveness = "gone" if info.state == "running" else "stopped"
    return RunStatus(info, liveness, store.last_holder(run_id), beat)


def shown_runs(store: Store) -> list[RunStatus]:
    """Runs that are worked on, and those whose host died; oldest first."""
    found = [run_status(store, info.run_id) for info in store.runs()]
    return [one for one in found if one.liveness in ("working", "silent", "gone")]


@dataclass(slots=True)
class RunFollower:
    """Tells of a run's events by polling its store; writes nothing.

    `known` is what was decided when the present host began; `past` what happened since then,
    until now, in order; `poll` what happened since it was last asked.
    """

    store: Store
    run_id: str
    plan: Plan = field(init=False)
    known: Mapping[str, TrialProgress] = field(init=False)
    past: list[RunEvent] = field(init=False)
    _number: int = field(init=False, default=0)
    _progress: dict[str, TrialProgress] = field(init=False)
    _open: set[str] = field(init=False, default_factory=set)
    _boards: dict[str, str] = field(init=False)
    _counts: Mapping[TrialState, int] = field(init=False)

    def __post_init__(self) -> None:
        self.plan = self.store.load_plan(self.run_id)
        self._boards = {trial.trial_id: trial.board for trial in self.plan.trials}
        self._counts = self.store.run(self.run_id).counts
        self._progress = self.store.progress(self.run_id)
        events = self.store.events(self.run_id)
        self._number = events[-1].number if events else 0
        began = [event.time for event in events if event.kind == "host_began"]
        since = began[-1] if began else datetime.min.replace(tzinfo=UTC)
        past: list[RunEvent] = [event for event in events if event.time >= since]
        ended = {event.trial_id for event in past if event.kind == "trial_end"}
        last = {end.trial_id: end for end in self.store.attempt_ends(self.run_id)}
        for end in last.values():
            state = self._progress[end.trial_id].state
            if end.ended >= since and state in FINAL:
                ended.add(end.trial_id)
                past.append(self._end(end.ended, end.trial_id, state, end.verdict))
        self.known = {
            name: one
            for name, one in self._progress.items()
            if name not in ended and one.state in FINAL
        }
        past += self._begun()
        self.past = sorted(past, key=lambda event: event.time)

    def poll(self) -> list[RunEvent]:
        """What is new."""
        stored = self.store.events(self.run_id, self._number)
        self._number = stored[-1].number if stored else self._number
        told = {event.trial_id for event in stored if event.kind == "trial_end"}
        counts = self.store.run(self.run_id).counts
        ends = self._ended(told) if counts != self._counts else []
        self._counts = counts
        return [*stored, *ends, *self._begun()]

    def watts(self) -> dict[str, float]:
        """The newest power of each board whose attempt is open, in watts."""
        found = {}
        for attempt in self.store.open_attempts(self.run_id):
            folder = self.store.attempt_folder(self.run_id, attempt.attempt_id)
            with contextlib.suppress(OSError, StoreError):
                if any(file.stat().st_size > MOST_TRACE_BYTES for file in folder.glob("power*")):
                    continue
                trace = self.store.read_trace(self.run_id, attempt.attempt_id)
                if trace is not None and len(trace):
                    found[attempt.board] = float(trace.power_w[-1])
        return found

    def _begun(self) -> list[RunEvent]:
        attempts = self.store.open_attempts(self.run_id)
        new = [one for one in attempts if one.attempt_id not in self._open]
        self._open = {one.attempt_id for one in attempts}
        return [
            RunEvent(one.started, "trial_start", one.board, one.trial_id, one.attempt_id)
            for one in new
        ]

    def _ended(self, told: set[str]) -> list[RunEvent]:
        progress = self.store.progress(self.run_id)
        changed = [
            name
            for name, one in progress.items()
            if one.state in FINAL and self._progress[name].state not in FINAL
        ]
        self._progress = progress
        now = datetime.now(UTC)
        return [self._end(now, name, progress[name].state) for name in changed if name not in told]

    def _end(self, when: datetime, trial: str, state: TrialState, verdict: str = "") -> RunEvent:
        data = {"state": state.value, "verdict": verdict}
        return RunEvent(when, "trial_end", self._boards[trial], trial, data=data)
