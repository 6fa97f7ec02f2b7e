"""After an attempt: fetch from board and meter what the judgement needs, while it is there."""

from farm.execution.clock_map import KnownClock, clock_goal_s, sample_clock
from farm.execution.equipment import RunServices
from farm.execution.judgement import Evidence
from farm.execution.room import with_room
from farm.execution.sampling import MeterFeed
from farm.execution.session import BoardSession
from farm.execution.steps import timed
from farm.model.measurement import ClockExchange


class Gatherer:
    """Clock exchanges, files, power mode, trace: of one board's attempts."""

    def __init__(
        self, session: BoardSession, services: RunServices, feed: MeterFeed | None
    ) -> None:
        self._session, self._services, self._feed = session, services, feed
        self._clock_goal_s = clock_goal_s(feed.spec.update_s if feed else None)
        self._known_clock: KnownClock | None = None

    async def clock(self, *, is_fresh: bool = True) -> list[ClockExchange]:
        """Exchanges with the board's clock; those of a moment ago will do unless `is_fresh`.

        The end of one trial is the beginning of the next: what was asked there holds here.
        """
        agent, now_s = self._session.agent, self._services.clock.monotonic()
        boot_id = agent.fingerprint.boot_id
        known = self._known_clock
        if is_fresh or known is None or known.boot_id != boot_id or known.is_old(now_s):
            exchanges = await sample_clock(agent, self._clock_goal_s)
            self._known_clock = known = KnownClock(boot_id, now_s, exchanges)
        return known.exchanges

    async def gather(self, evidence: Evidence) -> None:
        """Everything the judgement needs, fetched while it is there."""
        agent, status = self._session.agent, evidence.status
        with timed(self._services.clock, evidence.steps, "clock"):
            # Without a trace to place, exchanges of up to two seconds ago are as good.
            has_traces = bool(self._feed or self._session.equipment.telemetry)
            evidence.clock_after = await self.clock(is_fresh=has_traces)
        if status is not None and status.exit is not None:
            with timed(self._services.clock, evidence.steps, "collect"):
                ended = status.exit
                evidence.files = await with_room(
                    self._services.journal, lambda: agent.collect(ended, evidence.folder)
                )
        cell = evidence.trial.cell
        if evidence.mode is None:  # adopted: what the board is in now is what it ran in
            mode = await self._session.set_mode(cell.power_mode, cell.clocks)
            evidence.mode = None if mode.has_changed else mode
        else:
            evidence.state_after = await self._session.controller.current()
        self._gather_telemetry(evidence)
        if self._feed is not None:
            with timed(self._services.clock, evidence.steps, "trace"):
                await self._gather_trace(evidence, self._feed)

    def _gather_telemetry(self, evidence: Evidence) -> None:
        """What came so far: the agent sent its last reading before it answered for the clock."""
        feed, status = self._session.equipment.telemetry, evidence.status
        if feed is not None and status is not None and status.exit is not None:
            ended = status.exit
            evidence.telemetry = feed.of_attempt(ended.begin_s, ended.end_s, ended.boot_id)

    async def _gather_trace(self, evidence: Evidence, feed: MeterFeed) -> None:
        now_s = self._services.clock.monotonic()
        await feed.wait_past(now_s + feed.margin_s, feed.margin_s + 2 * feed.spec.deadline_s)
        begin_s = evidence.begin_s - feed.margin_s
        evidence.trace = feed.trace.between(begin_s, float("inf"))
        if evidence.is_adopted:
            earlier = self._services.read_trace(evidence.folder)
            if earlier is not None:
                evidence.trace = earlier.followed_by(evidence.trace)
