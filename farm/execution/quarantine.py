"""A board that is out of the run for a while: it rests, and is tried again, at last at the end."""

from farm.errors import BoardError
from farm.execution.equipment import RunServices
from farm.execution.recovery import ASK_PAUSE_S, Ladder
from farm.execution.recovery_rest import Roster
from farm.execution.session import BoardSession


class QuarantinedError(Exception):
    """The board is out of the run for a while; `text` is what was tried before."""

    def __init__(self, error: BoardError, text: str) -> None:
        super().__init__(str(error))
        self.error, self.text = error, text


class Quarantine:
    """One board's rests. `is_out` while it does not take part."""

    def __init__(
        self, session: BoardSession, services: RunServices, ladder: Ladder, roster: Roster
    ) -> None:
        self._session, self._services = session, services
        self._ladder, self._roster = ladder, roster
        self._board = session.board.name
        self._count = 0
        self._error: BoardError | None = None
        self.is_out = False

    def begin(self, out: QuarantinedError) -> None:
        """Tell it. Raises the fault itself for a board that was quarantined too often."""
        limits = self._services.limits.recovery
        if self._count >= limits.quarantines_per_board:
            raise out.error
        self._count += 1
        self._error, self.is_out = out.error, True
        self._services.tell(
            "quarantined",
            board=self._board,
            text=". ".join(part for part in (str(out.error.named(self._board)), out.text) if part),
            number=self._count,
            rest_s=limits.rest_s,
        )

    async def rest(self, *, has_work: bool) -> None:
        """Return when the board is back and open. Raises the fault when it is given up.

        It is tried after each rest, and once more when nobody else works any longer.
        `has_work`: something is left for it; else nobody waits for it.
        """
        limits, error = self._services.limits.recovery, self._error
        if error is None:
            raise RuntimeError("nothing was quarantined")
        rest_s = limits.rest_s
        while has_work:
            is_last = await self._roster.rest(self._board, rest_s)
            if await self._is_back(limits.last_chance_s if is_last else 0.0):
                self.is_out = False
                self._services.tell("board_back", board=self._board, text="out of quarantine")
                return
            if is_last:
                break
            rest_s = min(limits.longest_rest_s, 2 * rest_s)
        raise error

    async def _is_back(self, patience_s: float) -> bool:
        """Try it; a board that was reached before is worth some patience at the end."""
        clock = self._services.clock
        give_up_s = clock.monotonic() + (patience_s if self._session.fingerprint else 0.0)
        while not await self._ladder.answers():
            if clock.monotonic() >= give_up_s:
                return False
            await clock.sleep(ASK_PAUSE_S)
        return True
