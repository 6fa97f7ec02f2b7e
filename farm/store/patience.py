"""How long to wait for a store that is away, and what is told of it meanwhile.

A database that restarts, a link that is cut and a full disk are one case: what was acknowledged
is safe, nothing new is begun, and in a while it goes on. Outside of a run nobody wants to wait:
then a few quick tries are all.
"""

import asyncio
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from farm.errors import StoreAwayError, StoreFullError

ROOM_BYTES = 64 * 1024 * 1024
"""Free bytes below which no trial is begun: what a lab's boards bring home from the trials that
are on their way must fit, and the database's log beside it. Assumed."""
_MB = 1024 * 1024
_BRIEF_TRIES = 4  # without patience; one on SQLite waits for the busy timeout besides
_PAUSES_S = (0.2, 0.5, 1.0, 2.0)  # between tries; the last again and again
_STOP_S = 5.0  # a stopped run still waits so long: a restart takes some seconds

Tell = Callable[[str, str], None]
"""Takes an event's kind, ``store_waits`` or ``store_back``, and its text."""


class Outage:
    """One cause of waiting, shared by all who wait for it, told of once."""

    def __init__(self, patience: "Patience", what: str) -> None:
        self._patience, self._what = patience, what
        self._lock = threading.Lock()
        self._since_s: float | None = None
        self._tries = 0
        self._is_told = False

    @property
    def is_on(self) -> bool:
        """Whether somebody waits, or gave up waiting."""
        return self._since_s is not None

    def pause_s(self, fault: StoreAwayError, detail: str = "") -> float:
        """Seconds to the next try. Raises what `fault` came to when the patience is at its end."""
        with self._lock:
            now_s = time.monotonic()
            self._since_s = now_s if self._since_s is None else self._since_s
            self._tries += 1
            self._patience.check(fault, now_s - self._since_s, self._tries)
            if self._patience.is_granted and not self._is_told and self._tries > 1:
                self._is_told = True
                self._patience.tell("store_waits", f"waiting for {self._what}: {detail or fault}")
            return _PAUSES_S[min(self._tries, len(_PAUSES_S)) - 1]

    def over(self) -> None:
        """It is back; no harm if it never was away."""
        if not self.is_on:
            return
        with self._lock:
            since_s, self._since_s, self._tries = self._since_s, None, 0
            is_told, self._is_told = self._is_told, False
        if is_told and since_s is not None:
            away_s = time.monotonic() - since_s
            self._patience.tell("store_back", f"{self._what} is back after {away_s:.0f} s")


class Patience:
    """Belongs to one open store. May be used from several threads."""

    def __init__(self, results: Path) -> None:
        self._results = results
        self._database = Outage(self, "the database")
        self._room = Outage(self, "room on the disk")
        self._limit_s = 0.0
        self._tell: Tell | None = None
        self._is_stopping: Callable[[], bool] = lambda: False
        self._stop_s: float | None = None

    @property
    def is_granted(self) -> bool:
        """Whether a run goes on, for which it is worth to wait."""
        return self._tell is not None

    @contextmanager
    def granted(
        self, limit_s: float, tell: Tell, is_stopping: Callable[[], bool]
    ) -> Iterator[None]:
        """Wait meanwhile for whatever is away, each time up to `limit_s`.

        Args:
            limit_s: seconds; then what waits is refused with StoreError.
            tell: called in the running loop, if there is one; else in any thread.
            is_stopping: the user stops the run: seconds are all that it may wait then.
        """
        self._limit_s, self._tell, self._is_stopping = limit_s, _in_loop(tell), is_stopping
        try:
            yield
        finally:
            self._tell = None

    def hurry(self) -> None:
        """The store is to be closed, or the run to be stopped: wait a moment at most."""
        if self._stop_s is None:
            self._stop_s = time.monotonic() + _STOP_S

    def check(self, fault: StoreAwayError, away_s: float, tries: int) -> None:
        """Raise what `fault` came to if there is no more time for it."""
        if not self.is_granted:
            if tries >= _BRIEF_TRIES or isinstance(fault, StoreFullError):
                raise fault
        elif away_s >= self._limit_s:
            raise type(fault)(f"waited {away_s:.0f} s (limits: store_wait_s): {fault}")
        if self._is_stopping():
            self.hurry()
            if isinstance(fault, StoreFullError):
                raise fault
        if self._stop_s is not None and time.monotonic() > self._stop_s:
            raise fault

    def tell(self, kind: str, text: str) -> None:
        """Pass on what happens."""
        if self._tell is not None:
            self._tell(kind, text)

    def pause(self, fault: StoreAwayError) -> None:
        """Block until the next try is worth it. Raises what `fault` came to."""
        if not isinstance(fault, StoreFullError):
            time.sleep(self._database.pause_s(fault))
            return
        while True:
            time.sleep(self._room.pause_s(fault, self._missing()))
            if self.has_room:
                return

    def worked(self) -> None:
        """Something was written."""
        self._database.over()
        if self._room.is_on and self.has_room:
            self._room.over()

    @property
    def has_room(self) -> bool:
        """Whether the disk of the results has room for what trials leave."""
        return self._free() >= ROOM_BYTES

    async def room(self, fault: StoreFullError) -> None:
        """Return after a pause, once there is room. Raises what `fault` came to."""
        while True:
            await asyncio.sleep(self._room.pause_s(fault, self._missing()))
            if self.has_room:
                break
        self._room.over()

    def _missing(self) -> str:
        free = self._free()
        lack_mb = -(-(ROOM_BYTES - free) // _MB)
        free_text = f"{self._results}: {free / _MB:.1f} MB are free"
        return f"{free_text}, {lack_mb} MB are missing" if lack_mb > 0 else free_text

    def _free(self) -> int:
        try:
            return shutil.disk_usage(self._results).free
        except OSError:
            return ROOM_BYTES  # the next try tells what is wrong


def _in_loop(tell: Tell) -> Tell:
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return tell

    def tell_there(kind: str, text: str) -> None:
        with suppress(RuntimeError):  # the loop was closed: nobody looks any more
            loop.call_soon_threadsafe(tell, kind, text)

    return tell_there
