"""Ends a run from outside: by signals to its process."""

import asyncio
import contextlib
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from farm.errors import InterruptedRunError, RunHeldError
from farm.interfaces.sinks import RunEvent
from farm.store.database import Store
from farm.store.locks import Holder, process_start

STOP_LIMIT_S = 300.0
"""To stop payloads, fetch what is there and put boards back, all at once; a board that is away
is waited for as long as its lane would."""
POLL_S = 0.2
BY_USER, BY_SYSTEM = "user", "system"


@dataclass(slots=True)
class Stop:
    """Why the run's process was asked to stop; `number` 0: it was not."""

    number: int = 0

    @property
    def by(self) -> str:
        """A user's Ctrl-C and `farm stop` mean it; a host that shuts down would go on later."""
        return BY_USER if self.number == signal.SIGINT else BY_SYSTEM

    def event(self) -> RunEvent:
        """As the store keeps it."""
        name = signal.Signals(self.number).name if self.number else "cancelled"
        return RunEvent(datetime.now(UTC), "host_stopped", text=name, data={"by": self.by})


@contextlib.contextmanager
def stopping_on_signals(work: "asyncio.Task[object]", stop: Stop) -> Iterator[None]:
    """Cancel `work` at the first SIGINT, SIGTERM or SIGHUP; end the process at another.

    SIGHUP: the terminal is gone. Under nohup it stays ignored; it never counts as the second,
    since the kernel and the shell may both send one.
    """
    loop = asyncio.get_running_loop()
    numbers = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:
        numbers.append(signal.SIGHUP)

    def on_signal(number: int) -> None:
        if number == signal.SIGHUP:
            _leave_terminal()
        if work.cancelling():
            if number != signal.SIGHUP:
                os._exit(InterruptedRunError.exit_code)
            return
        stop.number = number
        work.cancel()

    for number in numbers:
        loop.add_signal_handler(number, on_signal, number)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


def _leave_terminal() -> None:
    """What is printed from now on goes nowhere: writing to a closed terminal is an error."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def active_runs(store: Store) -> list[tuple[str, Holder]]:
    """Runs that a process works on now, oldest first."""
    found = []
    for info in store.runs():
        holder = store.run_holder(info.run_id)
        if holder is not None:
            found.append((info.run_id, holder))
    return found


def run_to_stop(store: Store, ref: str | None) -> str:
    """The run that is meant: `ref`, else the only active one. Raises RunHeldError, StoreError."""
    if ref is not None:
        return store.find_run(ref)
    active = active_runs(store)
    if len(active) == 1:
        return active[0][0]
    if active:
        names = ", ".join(run_id for run_id, _ in active)
        raise RunHeldError(f"several runs go on: {names}. Name one")
    return store.find_run("last")


def stop_run(store: Store, run_id: str, *, now: bool = False) -> Holder | None:
    """Ask the process that works on a run to stop, as Ctrl-C would; returns who that is.

    `now`: kill it instead; boards keep what they do until their leases end. None: nobody worked
    on it, but its host had died; it is marked so that `farm service` lets it be.

    Raises RunHeldError when there is nothing to stop, or when its process is on another host.
    """
    holder = store.run_holder(run_id)
    if holder is None:
        has_begun = bool(store.events(run_id, kinds=("host_began",), limit=1))
        if store.run(run_id).state != "running" or not has_begun:
            raise RunHeldError(f"nobody works on run {run_id}")
        _mark_stopped(store, run_id)
        return None
    if holder.host != socket.gethostname() or not holder.pid:
        raise RunHeldError(
            f"run {run_id} is worked on by {holder}: run `farm stop {run_id}` there"
        )
    os.kill(holder.pid, signal.SIGKILL if now else signal.SIGINT)
    return holder


def wait_stopped(
    store: Store,
    run_id: str,
    holder: Holder,
    on_event: Callable[[RunEvent], None],
    *,
    after: int,
    limit_s: float = STOP_LIMIT_S,
) -> bool:
    """Wait until the process has let go of the run; False when time ran out.

    `on_event` is told of the run's events with a number above `after` meanwhile.
    """
    give_up_s = time.monotonic() + limit_s
    while True:
        held = store.run_holder(run_id)
        is_gone = held is None or (held.pid, held.started) != (holder.pid, holder.started)
        for event in store.events(run_id, after):
            after = event.number
            on_event(event)
        if is_gone:
            break
        if time.monotonic() > give_up_s:
            return False
        time.sleep(POLL_S)
    if store.run(run_id).state == "running" and process_start(holder.pid) != holder.started:
        _mark_stopped(store, run_id)  # killed before it could say so
    return True


def _mark_stopped(store: Store, run_id: str) -> None:
    with store.lock_run(run_id):
        event = Stop(signal.SIGINT).event()
        store.set_run_state(run_id, "interrupted")
        store.add_event(run_id, event)
