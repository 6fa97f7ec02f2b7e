"""Tells people what a run does, while it goes on: on its end, on a first failure, on quarantine.

Stands before the run's view and sees the same events. Each message goes its way in a task of its
own with a time limit; one that fails or hangs becomes an event and a line of the log, never more.
"""

import asyncio
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from farm.errors import FarmError, StoreError
from farm.interfaces.clock import Clock
from farm.interfaces.notifier import Notice, Notifier
from farm.interfaces.sinks import Journal, Progress, RunEvent
from farm.model.attempt import TrialState
from farm.model.notify import NotifyOn, NotifySpec

MOST_NOTICES = 50
"""Of one run: a night in which all boards fall out must not flood a chat."""
LONGEST_TEXT = 1500
END_GRACE_S = 2.0
"""What a cancelled message may need to clean up after itself."""
TEST = "test"

_UNSHOWN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069"
                      "\ud800-\udfff]")  # fmt: skip
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Hook:
    """One entry of the inventory's ``notify:``; `make` gives its notifier for one message.

    `make` raises FarmError when that cannot be had now: a secret, a library.
    """

    name: str
    spec: NotifySpec
    make: Callable[[], Notifier]


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What every message of a run tells. `results` is the run's folder."""

    run_id: str
    sweep: str
    results: str
    host: str


async def send(hook: Hook, notice: Notice) -> str:
    """Send one message; "" or why it did not work. Never raises but for cancellation."""
    try:
        async with asyncio.timeout(hook.spec.timeout_s):
            await hook.make().send(notice)
    except TimeoutError:
        return f"{hook.name}: no end within {hook.spec.timeout_s:g} s"
    except FarmError as error:
        return f"{hook.name}: {error}"
    except Exception as error:  # noqa: BLE001 - a driver's fault must not touch the run
        _log.debug("%s", hook.name, exc_info=True)
        return f"{hook.name}: internal error: {type(error).__name__}"
    return ""


@dataclass(slots=True)
class Notices(Progress):
    """The run's view with messages to people before it."""

    view: Progress
    hooks: Sequence[Hook]
    facts: RunFacts
    journal: Journal
    clock: Clock
    _begin_s: float = field(init=False)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _told: set[tuple[str, str]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._begin_s = self.clock.monotonic()

    def event(self, event: RunEvent) -> None:
        """Show an event; tell people of it if they want to know."""
        self.view.event(event)
        state = event.data.get("state")
        if event.kind == "trial_end" and state == TrialState.FAILED.value:
            self._tell_once(NotifyOn.FIRST_FAILURE, "", event)
        elif event.kind == NotifyOn.QUARANTINED.value:
            self._tell_once(NotifyOn.QUARANTINED, event.board, event)

    def watts(self, board: str, power_w: float) -> None:
        """Pass the newest power on to the view."""
        self.view.watts(board, power_w)

    def tell(self, kind: str, text: str, data: Mapping[str, object] | None = None) -> None:
        """An event of our own. A store that refuses it does so for others, too."""
        event = RunEvent(self.clock.now(), kind, text=_bounded(text), data=data or {})
        try:
            self.journal.record(event)
        except StoreError:
            _log.debug("an event was not kept", exc_info=True)
        self.view.event(event)

    def ended(self, state: str, counts: Mapping[str, int], faults: Sequence[str]) -> None:
        """Tell that the run ended. `counts` by state of a trial, and ``invalid`` ones."""
        self._send(NotifyOn.END, _end_notice(self.facts, self._elapsed_s(), state, counts, faults))

    async def close(self) -> None:
        """Wait until each message is on its way or given up: bounded by their own limits."""
        tasks = tuple(self._tasks)
        if not tasks:
            return
        limit_s = max(hook.spec.timeout_s for hook in self.hooks) + END_GRACE_S
        _, late = await asyncio.wait(tasks, timeout=limit_s)
        for task in late:
            task.cancel()
        for task in late:
            self.tell("notify_failed", f"{task.get_name()}: does not even stop")

    def abandon(self) -> None:
        """Let go of messages that are on their way: the user wants to go."""
        for task in self._tasks:
            task.cancel()

    def fail(self, fault: str) -> None:
        """Note that a message was not sent, or cannot be."""
        _log.warning("notify: %s", _bounded(fault))
        self.tell("notify_failed", fault)

    def _tell_once(self, on: NotifyOn, board: str, event: RunEvent) -> None:
        if (on.value, board) not in self._told and len(self._told) < MOST_NOTICES:
            self._told.add((on.value, board))
            self._send(on, _event_notice(self.facts, self._elapsed_s(), on, event))

    def _send(self, on: NotifyOn, notice: Notice) -> None:
        for hook in self.hooks:
            if on in hook.spec.on:
                task = asyncio.create_task(self._send_one(hook, notice), name=hook.name)
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    async def _send_one(self, hook: Hook, notice: Notice) -> None:
        fault = await send(hook, notice)
        if fault:
            self.fail(fault)

    def _elapsed_s(self) -> float:
        return round(self.clock.monotonic() - self._begin_s, 1)


def check_notice(host: str) -> Notice:
    """What ``farm notify test`` sends."""
    text = f"A test message from farm on {host}. Nothing has happened."
    return Notice(TEST, f"farm: a test from {host}", text, {"host": host})


def _end_notice(
    facts: RunFacts, elapsed_s: float, state: str, counts: Mapping[str, int], faults: Sequence[str]
) -> Notice:
    shown = ", ".join(f"{count} {name}" for name, count in counts.items()) or "no trials"
    command = f"farm {_next_step(counts, faults)} {facts.run_id}"
    lines = [f"Run {facts.run_id} ({facts.sweep}) on {facts.host} {state} after "
             f"{duration_text(elapsed_s)}: {shown}."]  # fmt: skip
    lines += [_bounded(fault, 300) for fault in faults[:5]]
    lines.append(f"Results: {facts.results}. `farm report {facts.run_id}` writes the report.")
    lines.append(f"Go on: `{command}`.")
    values: dict[str, str | int | float] = {
        **_common(facts, elapsed_s),
        "state": state,
        **counts,
        "trials": sum(count for name, count in counts.items() if name != "invalid"),
        "command": command,
    }
    title = f"farm: {facts.sweep} {state}: {shown}"
    return Notice(NotifyOn.END.value, _one_line(title), _bounded("\n".join(lines)), values)


def _next_step(counts: Mapping[str, int], faults: Sequence[str]) -> str:
    """What failed stays so: a resume tries what is pending."""
    if counts.get("pending") or faults:
        return "resume"
    return "runs show" if counts.get("failed") or counts.get("skipped") else "results"


def _event_notice(facts: RunFacts, elapsed_s: float, on: NotifyOn, event: RunEvent) -> Notice:
    what = {
        NotifyOn.FIRST_FAILURE: f"first failure, on {event.board}",
        NotifyOn.QUARANTINED: f"{event.board} is out of the run",
        NotifyOn.END: "ended",
    }[on]
    lines = [
        f"Run {facts.run_id} ({facts.sweep}) on {facts.host}, {duration_text(elapsed_s)} after "
        f"its start: {what}.",
        *([_bounded(event.text, 600)] if event.text else []),
        f"See `farm runs show {facts.run_id}`; results: {facts.results}.",
    ]
    values = {**_common(facts, elapsed_s), "board": event.board, "trial": event.trial_id}
    title = _one_line(f"farm: {facts.sweep}: {what}")
    return Notice(on.value, title, _bounded("\n".join(lines)), values)


def _common(facts: RunFacts, elapsed_s: float) -> dict[str, str | int | float]:
    return {
        "run": facts.run_id,
        "sweep": facts.sweep,
        "host": facts.host,
        "results": facts.results,
        "duration_s": elapsed_s,
    }


def duration_text(seconds: float) -> str:
    """``7 h 12 min``, ``3 min 20 s``, ``12 s``."""
    whole = round(seconds)
    if whole >= 3600:  # noqa: PLR2004 - an hour
        return f"{whole // 3600} h {whole % 3600 // 60} min"
    return f"{whole // 60} min {whole % 60} s" if whole >= 60 else f"{whole} s"  # noqa: PLR2004


def _bounded(text: str, longest: int = LONGEST_TEXT) -> str:
    plain = _UNSHOWN.sub("?", text)
    return plain if len(plain) <= longest else plain[: longest - 4] + " ..."


def _one_line(text: str) -> str:
    return " ".join(_bounded(text, 200).split())
