"""The board at rest: mean socket watts per power mode, before its trials and after them."""

from farm.analysis.energy import idle_power
from farm.execution.equipment import RunServices
from farm.execution.session import BoardSession
from farm.model.measurement import IdlePower
from farm.model.power_mode import AppliedPowerMode

DRIFT_SHARE, DRIFT_W = 0.10, 1.0
"""Idle watts after and before may differ by so much; beyond, the baseline does not hold."""


class IdleBaselines:
    """Idle watts of one board, measured once per power mode and session."""

    def __init__(self, session: BoardSession, services: RunServices) -> None:
        self._session, self._services = session, services
        self._known: dict[tuple[str, str], IdlePower] = {}
        self._mode: AppliedPowerMode | None = None

    async def before(self, mode: AppliedPowerMode) -> IdlePower | None:
        """Idle watts for a trial in `mode`; measured when the board has just come into it.

        Returns None where nothing measures the board. Raises MeterError.
        """
        key = (mode.name, mode.clocks)
        if self._mode is not None and (self._mode.name, self._mode.clocks) != key:
            self._mode = None  # its closing baseline was taken by `leave`
        if key not in self._known:
            watts = await self._measure(self._services.rules.idle_s)
            if watts is None:
                return None
            self._known[key] = IdlePower(before_w=watts)
            self._services.tell(
                "idle",
                board=self._session.board.name,
                text=f"idle {watts:.2f} W in {mode.name}",
                mode=mode.name,
                watts=watts,
            )
        self._mode = mode
        return self._known[key]

    async def leave(self, asked: str, clocks: str) -> None:
        """Before the board leaves its mode for another: measure idle again, tell of a drift."""
        mode = self._mode
        if mode is None or (mode.asked, mode.clocks) == (asked, clocks):
            return
        self._mode = None
        key = (mode.name, mode.clocks)
        before_w = self._known[key].before_w
        after_w = await self._measure(self._services.rules.idle_s / 2)
        if before_w is None or after_w is None:
            return
        self._known[key] = IdlePower(before_w=before_w, after_w=after_w)
        drift_w = after_w - before_w
        is_drift = abs(drift_w) > max(DRIFT_SHARE * before_w, DRIFT_W)
        self._services.tell(
            "idle_drift" if is_drift else "idle_after",
            board=self._session.board.name,
            text=f"idle {after_w:.2f} W in {mode.name}, {drift_w:+.2f} W since before its trials",
            mode=mode.name,
            before_w=before_w,
            after_w=after_w,
        )

    async def finish(self) -> None:
        """The closing baseline of the last mode."""
        await self.leave("", "")

    async def _measure(self, seconds: float) -> float | None:
        feed = self._session.equipment.feed
        if feed is None or self._services.rules.power == "off" or seconds <= 0:
            return None
        async with feed.lock:
            feed.check_alive()
            begin_s = self._services.clock.monotonic() + feed.margin_s
            end_s = begin_s + seconds
            await feed.wait_past(end_s, seconds + 2 * feed.margin_s + feed.spec.deadline_s)
            return idle_power(feed.trace.between(begin_s, end_s), begin_s, end_s, feed.spec)
