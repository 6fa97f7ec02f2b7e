"""What a replaying payload asks of the board it runs on: watts, as long as it lives."""

import json
from dataclasses import dataclass
from pathlib import Path

from farm.simulation.board_processes import is_alive

_LOAD_LIMIT = 4096


@dataclass(frozen=True, slots=True)
class Replay:
    """These watts from `since_s` (boot-time clock) on while `pid` is alive."""

    watts: float
    pid: int
    since_s: float


class ReplayFile:
    """The file in which a payload asks; it is read again only when it has changed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: tuple[int, Replay | None] = (0, None)

    def running(self) -> Replay | None:
        """The replay that runs now."""
        try:
            changed = self._path.stat().st_mtime_ns
            if changed != self._seen[0]:
                with self._path.open("rb") as file:
                    self._seen = (changed, _parse_replay(file.read(_LOAD_LIMIT)))
        except OSError:
            return None
        replay = self._seen[1]
        return replay if replay is not None and is_alive(replay.pid) else None


def _parse_replay(data: bytes) -> Replay | None:
    """What the file asks for; None when it is not a sensible request."""
    try:
        found = json.loads(data)
        replay = Replay(float(found["watts"]), int(found["pid"]), float(found.get("since_s", 0)))
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    return replay if 0 <= replay.watts < 10_000 else None  # noqa: PLR2004 -- also no NaN
