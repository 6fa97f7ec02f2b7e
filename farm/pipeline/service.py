"""The service: goes on with every run whose host is gone, and watches over those it started."""

import asyncio
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from farm.errors import NoBoardReachedError, StoreError
from farm.model.attempt import TrialState
from farm.pipeline.detached import CONSOLE, detached_command
from farm.pipeline.lab import Lab
from farm.pipeline.sd_notify import sd_notify
from farm.pipeline.stopping import BY_SYSTEM
from farm.store.database import Store

LOOK_S = 5.0
HUNG_S = 180.0
"""A process that shows no life for so long is killed, and its run resumed."""
STOP_LIMIT_S = 240.0
MOST_FRUITLESS = 5
"""A run is let be after so many processes in a row that decided not one trial."""
FIRST_PAUSE_S = 30.0
LONGEST_PAUSE_S = 900.0
OLDEST = timedelta(days=7)
"""A run that nobody worked on for so long was forgotten, not interrupted by a reboot."""

_SESSION = ("host_began", "host_stopped", "host_ended")
_OPEN = (TrialState.PENDING, TrialState.RUNNING)


def resumable(store: Store) -> list[str]:
    """Runs whose host is gone, oldest first: killed, or ended by the system, not by a user.

    One that ended by itself, or was never begun, or lies for longer than `OLDEST`, is none.
    """
    return [info.run_id for info in store.runs() if _is_resumable(store, info.run_id)]


def _is_resumable(store: Store, run_id: str) -> bool:
    info = store.run(run_id)
    if info.state == "finished" or not any(info.counts.get(state) for state in _OPEN):
        return False
    events = store.events(run_id, kinds=_SESSION)
    if not events or store.run_holder(run_id) is not None:
        return False
    if datetime.now(UTC) - (store.last_beat(run_id) or events[-1].time) > OLDEST:
        return False
    last = events[-1]
    if last.kind == "host_began":
        return info.state == "running"
    return last.kind == "host_stopped" and last.data.get("by") == BY_SYSTEM


@dataclass(slots=True)
class _Child:
    """A process that works on a run; `decided`: how many trials were before it."""

    process: asyncio.subprocess.Process
    decided: int
    beat: datetime | None = None
    beat_s: float = 0.0


@dataclass(slots=True)
class _Record:
    """What came of a run's processes so far."""

    fruitless: int = 0
    not_before_s: float = 0.0
    is_wanted: bool = False
    """Its boards could not be reached: to be tried again."""


class Service:
    """Resumes runs in processes of their own. `say` takes a line for the service's log."""

    def __init__(
        self,
        lab: Lab,
        store: Store,
        say: Callable[[str], None],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._lab, self._store, self._say, self._now = lab, store, say, monotonic
        self._children: dict[str, _Child] = {}
        self._records: dict[str, _Record] = {}
        self._is_store_away = False

    async def run(self, *, once: bool) -> None:
        """Until SIGTERM or SIGINT, which stop the runs in order, to be resumed at the next start.

        `once`: until nothing is left to resume.
        """
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        numbers = (signal.SIGTERM, signal.SIGINT)
        for number in numbers:
            loop.add_signal_handler(number, stop.set)
        sd_notify("READY=1")
        try:
            while not stop.is_set():
                await self._look_patiently()
                sd_notify(f"WATCHDOG=1\nSTATUS={len(self._children)} runs go on")
                if once and not self._children and not self._is_waiting():
                    self._say("nothing is left to resume")
                    return
                try:
                    await asyncio.wait_for(stop.wait(), LOOK_S)
                except TimeoutError:
                    continue
        finally:
            sd_notify("STOPPING=1")
            await self._stop_all()
            for number in numbers:
                loop.remove_signal_handler(number)

    async def _look_patiently(self) -> None:
        """A store that is away ends nothing: the runs wait for it themselves."""
        try:
            await self.look()
        except StoreError as error:
            if not self._is_store_away:
                self._say(f"waiting for the store: {error}")
            self._is_store_away = True
            for child in self._children.values():
                child.beat_s = self._now()  # their beats wait with it
        else:
            if self._is_store_away:
                self._say("the store is back")
            self._is_store_away = False

    async def look(self) -> None:
        """Reap what ended, kill what hangs, start what is to be resumed."""
        for run_id, child in list(self._children.items()):
            if child.process.returncode is not None:
                await self._reap(run_id, child)
                del self._children[run_id]
            else:
                await self._check_life(run_id, child)
        wanted = await asyncio.to_thread(resumable, self._store)
        wanted += [name for name, one in self._records.items() if one.is_wanted]
        for run_id in dict.fromkeys(wanted):
            record = self._records.setdefault(run_id, _Record())
            if run_id not in self._children and self._may_start(record):
                record.is_wanted = False
                await self._start(run_id)

    def _may_start(self, record: _Record) -> bool:
        return record.fruitless < MOST_FRUITLESS and self._now() >= record.not_before_s

    def _is_waiting(self) -> bool:
        """Whether a run is to be tried again later."""
        return any(
            one.fruitless < MOST_FRUITLESS and (one.is_wanted or one.not_before_s > self._now())
            for one in self._records.values()
        )

    async def _start(self, run_id: str) -> None:
        decided = await asyncio.to_thread(self._decided, run_id)
        path = self._store.run_folder(run_id) / CONSOLE
        environment = {name: value for name, value in os.environ.items() if name not in _OURS}
        with path.open("ab") as console:
            process = await asyncio.create_subprocess_exec(
                *detached_command(self._lab, run_id),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=console,
                stderr=console,
                start_new_session=True,
                env=environment,
            )
        self._children[run_id] = _Child(process, decided, beat_s=self._now())
        self._say(f"run {run_id}: process {process.pid} goes on with it")

    async def _reap(self, run_id: str, child: _Child) -> None:
        record, code = self._records[run_id], child.process.returncode
        decided = await asyncio.to_thread(self._decided, run_id)
        self._say(f"run {run_id}: process {child.process.pid} ended with {code}")
        is_unreached = code == NoBoardReachedError.exit_code
        is_open = is_unreached or await asyncio.to_thread(_is_resumable, self._store, run_id)
        if not is_open or decided > child.decided:
            record.fruitless, record.not_before_s = 0, 0.0
            record.is_wanted = is_unreached
            return
        record.fruitless += 1
        pause_s = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** (record.fruitless - 1))
        record.not_before_s, record.is_wanted = self._now() + pause_s, is_unreached
        if record.fruitless >= MOST_FRUITLESS:
            self._say(
                f"run {run_id}: {MOST_FRUITLESS} processes got nowhere; left alone. See its "
                f"{CONSOLE} and `farm logs {run_id}`; `farm resume {run_id}` tries again"
            )
        else:
            self._say(f"run {run_id}: again in {pause_s:.0f} s")

    async def _check_life(self, run_id: str, child: _Child) -> None:
        """Kill a process whose heart does not beat: its change counts, not what clock it shows."""
        beat = await asyncio.to_thread(self._store.last_beat, run_id)
        if beat != child.beat:
            child.beat, child.beat_s = beat, self._now()
        elif self._now() - child.beat_s > HUNG_S:
            self._say(f"run {run_id}: process {child.process.pid} hangs; killed")
            child.process.kill()
            child.beat_s = self._now()

    def _decided(self, run_id: str) -> int:
        counts = self._store.run(run_id).counts
        return sum(count for state, count in counts.items() if state not in _OPEN)

    async def _stop_all(self) -> None:
        """SIGTERM to all, which is no user's stop; SIGKILL to who takes too long."""
        alive = [one.process for one in self._children.values() if one.process.returncode is None]
        for process in alive:
            process.terminate()
        waits = [asyncio.ensure_future(process.wait()) for process in alive]
        give_up_s = self._now() + STOP_LIMIT_S
        while waits and self._now() < give_up_s:
            _, pending = await asyncio.wait(waits, timeout=LOOK_S)
            sd_notify("WATCHDOG=1")
            waits = list(pending)
        for process in alive:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if alive:
            self._say("stopped; its runs go on at the next start")


_OURS = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID")
"""Of the service alone: a run's process must not speak to systemd in its name."""
