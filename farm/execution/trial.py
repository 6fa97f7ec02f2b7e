"""One try at a trial, step by step: prove the mode, start, wait, collect, judge, commit."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from functools import partial

from farm.errors import BoardError
from farm.execution.commit import Committer
from farm.execution.equipment import RunServices
from farm.execution.gathering import Gatherer
from farm.execution.idle import IdleBaselines
from farm.execution.judgement import (
    Evidence,
    Judged,
    cancelled,
    judge_attempt,
    lost,
    read_events,
)
from farm.execution.kernel_log import ask_kernel, explained
from farm.execution.preparing import Preparer
from farm.execution.retry import state_after
from farm.execution.session import BoardSession
from farm.execution.steps import timed
from farm.interfaces.agent import Job
from farm.interfaces.sinks import OpenAttempt
from farm.model.attempt import Outcome, StepTime, TrialState, attempt_id
from farm.model.kernel import KernelReport
from farm.model.measurement import IdlePower
from farm.model.plan import Trial
from farm.model.power_mode import AppliedPowerMode

STOP_LIMIT_S = 20.0
END_GRACE_S = 60.0
"""The board enforces an attempt's time limit; the host waits this much longer for its word."""
TRACE_KEPT_S = 120.0


@dataclass(slots=True)
class Ticket:
    """A trial on its way through its attempts; `begun` is the attempt that is open now.

    `disturbed` counts attempts in a row that were so; `has_answer`: one of them is a result.
    `hangs` counts attempts under which the board had to be rebooted or power-cycled.
    `moved_from` is the board that it was planned for, where another one runs it;
    `is_second_chance`: it failed on a board that fails everything, and is not put back again.
    `earlier` are attempts that a killed host had not committed when it began the next one; they
    are `is_superseded`: whatever came of them, the trial goes on with that one.
    """

    trial: Trial
    attempts: int
    begun: OpenAttempt | None = None
    evidence: Evidence | None = None
    previous_reason: str = ""
    disturbed: int = 0
    has_answer: bool = False
    outcome: Outcome | None = None
    moved_from: str = ""
    hangs: int = 0
    is_second_chance: bool = False
    is_superseded: bool = False
    earlier: list["Ticket"] = field(default_factory=list)


class TrialRunner:
    """Runs attempts on one board."""

    def __init__(self, session: BoardSession, services: RunServices, idle: IdleBaselines) -> None:
        self._session, self._services = session, services
        feed = session.equipment.feed
        self._feed = feed if services.rules.power != "off" else None
        self._preparer = Preparer(session, services, idle)
        self._gatherer = Gatherer(session, services, self._feed)
        self._committer = Committer(services)

    async def run(self, ticket: Ticket) -> TrialState:
        """Make one attempt, or go on with the one that is open; returns the trial's new state.

        Safe to call again after a retryable error: an attempt that was begun is continued.
        Raises BoardError (see the interfaces) and StoreError.
        """
        trial = ticket.trial
        refusal = self._refusal(trial)
        if refusal and ticket.begun is None:
            return await self._refuse(trial, refusal)
        await self._committer.settle_older()
        while ticket.earlier:
            await self._close_earlier(ticket)
        try:
            if ticket.begun is None:
                mode, idle, steps = await self._preparer.prepare(trial, ticket.disturbed)
                async with self._metering():
                    await self._begin(ticket, mode, idle, steps)
                    return await self._see_through(ticket)
            async with self._metering():
                return await self._continue(ticket)
        except asyncio.CancelledError:
            if ticket.evidence is not None:
                await self._cancel(ticket, ticket.evidence)
            raise

    def _refusal(self, trial: Trial) -> str:
        manifest = self._services.payloads[trial.cell.payload].manifest
        if manifest.requirements.is_simulated and not self._session.agent.fingerprint.is_simulated:
            return f"{manifest.name} replays published figures: it runs on simulated boards only"
        return ""

    async def _refuse(self, trial: Trial, reason: str) -> TrialState:
        state = TrialState.UNSUPPORTED
        await self._services.journal.set_trial_state(trial.trial_id, state, reason)
        self._services.tell(
            "trial_end", board=trial.board, trial_id=trial.trial_id, text=reason, state=state.value
        )
        return state

    async def _begin(
        self,
        ticket: Ticket,
        mode: AppliedPowerMode,
        idle: IdlePower | None,
        steps: list[StepTime],
    ) -> None:
        """Journal the attempt and start it; from here on it must be seen to its end."""
        trial, services = ticket.trial, self._services
        clock_before = await self._gatherer.clock(is_fresh=False)
        number, started = ticket.attempts + 1, services.clock.now()
        begun = OpenAttempt(
            attempt_id(trial.trial_id, number), trial.trial_id, trial.board, number, started
        )
        opening = asyncio.ensure_future(self._open_evidence(trial, begun))
        try:
            await asyncio.shield(opening)
        finally:  # a lane that is stopped here must know what it has journaled
            evidence = await opening
            ticket.begun, ticket.attempts, ticket.evidence = begun, number, evidence
        evidence.mode, evidence.idle, evidence.steps = mode, idle, steps
        evidence.clock_before = clock_before
        evidence.boot_id = self._session.agent.fingerprint.boot_id
        await self._start(evidence)

    async def _open_evidence(self, trial: Trial, begun: OpenAttempt) -> Evidence:
        folder = await self._services.journal.begin_attempt(
            begun.attempt_id, trial.trial_id, trial.board, begun.number, begun.started
        )
        evidence = Evidence(trial, begun.attempt_id, begun.number, begun.started, folder)
        evidence.begin_s = self._services.clock.monotonic()
        self._services.show(
            "trial_start",
            board=trial.board,
            trial_id=trial.trial_id,
            attempt_id=begun.attempt_id,
            number=begun.number,
        )
        return evidence

    async def _start(self, evidence: Evidence) -> None:
        if self._feed is not None and evidence.sink is None:
            evidence.sink = self._services.open_trace(evidence.folder, self._feed.spec.name)
            self._feed.sinks.append(evidence.sink)
        with timed(self._services.clock, evidence.steps, "start"):
            evidence.status = await self._session.agent.start(self._job(evidence))

    def _job(self, evidence: Evidence) -> Job:
        trial, services = evidence.trial, self._services
        payload, rules = services.payloads[trial.cell.payload], services.rules
        environment = {
            **payload.manifest.environment,
            "FARM_WINDOW_S": f"{rules.window_s:g}",
            "FARM_WARMUP_S": f"{rules.warmup_s:g}",
        }
        return Job(
            attempt_id=self._board_id(evidence.attempt_id),
            payload_digest=payload.digest,
            argv=payload.manifest.command,
            params=dict(trial.cell.parameters),
            environment=environment,
            time_limit_s=services.limits.time_s,
            memory_limit_mb=payload.manifest.memory_limit_mb,
            output_limit=int(services.limits.output_mb * 1024 * 1024),
            artifacts=payload.manifest.artifacts,
        )

    def _board_id(self, attempt: str) -> str:
        """The attempt's name on the board, where attempts of other runs may lie too."""
        return f"{self._services.run_id}.{attempt}"

    async def _continue(self, ticket: Ticket) -> TrialState:
        """Go on with what was begun: by us before the link fell, or by a killed host."""
        begun, trial = ticket.begun, ticket.trial
        if begun is None:
            raise RuntimeError("nothing was begun")
        if ticket.evidence is None:
            ticket.evidence = await self._open_evidence(trial, begun)
            ticket.evidence.is_adopted = True
        evidence = ticket.evidence
        if self._session.equipment.telemetry is not None:
            self._session.equipment.telemetry.begin(self._session.agent)
        evidence.status = await self._session.agent.status(self._board_id(begun.attempt_id))
        self._services.tell(
            "attempt_adopted",
            board=trial.board,
            trial_id=trial.trial_id,
            attempt_id=begun.attempt_id,
            text=f"on the board it is {evidence.status.phase}",
        )
        if evidence.status.phase == "absent":
            cell = trial.cell
            evidence.mode = await self._session.set_mode(cell.power_mode, cell.clocks)
            await self._session.agent.ensure_payload(self._services.payloads[cell.payload])
            evidence.clock_before = await self._gatherer.clock()
            await self._start(evidence)
        elif not evidence.clock_before:
            evidence.clock_before = await self._gatherer.clock()
        return await self._see_through(ticket)

    async def _close_earlier(self, ticket: Ticket) -> None:
        """Collect and commit the first of the attempts that were left open before this one."""
        earlier = ticket.earlier[0]
        if earlier.begun is not None:
            board_id = self._board_id(earlier.begun.attempt_id)
            if (await self._session.agent.status(board_id)).phase == "absent":
                await self.abandon(earlier, "its host was killed, and the board has lost it")
            else:
                async with self._metering():
                    await self._continue(earlier)
        ticket.previous_reason, ticket.has_answer = earlier.previous_reason, earlier.has_answer
        ticket.earlier.remove(earlier)

    async def _see_through(self, ticket: Ticket) -> TrialState:
        """Wait for the end of the attempt that is open, collect, judge, commit."""
        evidence = ticket.evidence
        if evidence is None:
            raise RuntimeError("nothing was begun")
        with timed(self._services.clock, evidence.steps, "run"):
            await self._wait_for_end(evidence)
        await self._gatherer.gather(evidence)
        await self._preparer.show_temperature(evidence.trial.board)
        judged = judge_attempt(
            evidence,
            read_events(evidence, self._services),
            self._services,
            self._session.equipment,
            self._session.agent.fingerprint,
        )
        agent = self._session.agent
        kernel = await ask_kernel(
            agent, agent.fingerprint.boot_id, evidence, judged, self._services
        )
        return self._commit(ticket, evidence, judged, kernel)

    async def _wait_for_end(self, evidence: Evidence) -> None:
        """Wait for the board's word; stop the payload when the word does not come in time."""
        board_id = self._board_id(evidence.attempt_id)
        if evidence.status is not None and evidence.status.phase in ("finished", "lost"):
            return
        agent = self._session.agent
        try:
            async with asyncio.timeout(self._services.limits.time_s + END_GRACE_S):
                evidence.status = await agent.wait(board_id)
        except TimeoutError:
            await agent.stop(board_id)
            evidence.status = await agent.status(board_id)

    def _commit(
        self, ticket: Ticket, evidence: Evidence, judged: Judged, kernel: KernelReport | None
    ) -> TrialState:
        """Hand the record over to be committed; the trial's new state."""
        state = state_after(
            judged.outcome,
            judged.reason,
            evidence.number,
            ticket.previous_reason,
            self._services.limits,
            is_disturbed=judged.is_disturbed,
        )
        if state is TrialState.FAILED and ticket.has_answer:
            state = TrialState.DONE  # a disturbed attempt before it is a result
        if ticket.is_superseded:
            state = TrialState.PENDING
        ticket.has_answer = ticket.has_answer or judged.outcome is Outcome.OK
        ticket.disturbed = ticket.disturbed + 1 if judged.is_disturbed else 0
        self._close_sink(evidence)
        if judged.outcome is Outcome.LOST:
            self._session.applied = None  # what was proven before may not hold any more
        agent = self._session.agent
        record = explained(judged.record(evidence, self._services, agent.fingerprint), kernel)
        if ticket.moved_from:
            record = record.model_copy(update={"moved_from": ticket.moved_from})
        board_id = self._board_id(record.attempt_id)
        self._committer.submit(
            record,
            state,
            evidence.trace,
            lambda: agent.remove([board_id]),
            self._saving(evidence),
        )
        ticket.begun, ticket.evidence, ticket.previous_reason = None, None, judged.reason
        ticket.outcome = judged.outcome
        return state

    async def abandon(self, ticket: Ticket, reason: str) -> str:
        """Close the open attempt of a board that is lost, so that its trial may go elsewhere.

        Returns the attempt's name on that board, which may still be at work on it. Raises
        StoreError.
        """
        while ticket.earlier:
            await self.abandon(ticket.earlier[0], reason)
            del ticket.earlier[0]
        begun = ticket.begun
        if begun is None:
            return ""
        if ticket.evidence is None:
            ticket.evidence = await self._open_evidence(ticket.trial, begun)
        self._close_sink(ticket.evidence)
        judged = lost(reason, self._session.fingerprint, self._session.equipment)
        record = judged.record(ticket.evidence, self._services, self._session.fingerprint)
        await self._services.journal.finish_attempt(record, TrialState.PENDING, None)
        self._services.show(
            "trial_end",
            board=record.board,
            trial_id=record.trial_id,
            attempt_id=record.attempt_id,
            text=reason,
            state=TrialState.PENDING.value,
            outcome=record.outcome.value,
            verdict=record.verdict.status.value,
        )
        ticket.begun = ticket.evidence = None
        return self._board_id(begun.attempt_id)

    async def forget_rest(self) -> None:
        """Remove what the board keeps of this run, whose attempts there are all committed.

        A link that falls, or a host that is killed, leaves some. Raises BoardError.
        """
        kept = await self._session.agent.list_attempts()
        mine = [one.attempt_id for one in kept if one.phase != "running"]
        own = self._board_id("")
        await self._session.agent.remove([one for one in mine if one.startswith(own)])

    def _saving(self, evidence: Evidence) -> Callable[[], None] | None:
        """What writes the attempt's telemetry; None where nothing was told while it ran."""
        feed, trace = self._session.equipment.telemetry, evidence.telemetry
        if feed is None or trace is None:
            return None
        return partial(feed.save, evidence.folder, trace)

    async def settle(self) -> None:
        """Wait until every attempt that ended is durable. Raises StoreError, BoardError."""
        await self._committer.settle()

    async def _cancel(self, ticket: Ticket, evidence: Evidence) -> None:
        """The user stops the run: end the payload, let the trial be pending again.

        What fails here leaves the attempt open; `farm resume` adopts it.
        """
        self._close_sink(evidence)
        with contextlib.suppress(BoardError, TimeoutError):
            async with asyncio.timeout(STOP_LIMIT_S):
                board_id, agent = self._board_id(evidence.attempt_id), self._session.agent
                if (await agent.status(board_id)).phase != "absent":
                    await agent.stop(board_id)
                fingerprint = agent.fingerprint
                judged = cancelled(fingerprint, self._session.equipment)
                record = judged.record(evidence, self._services, fingerprint)
                await self._services.journal.finish_attempt(record, TrialState.PENDING, None)
                ticket.begun = ticket.evidence = None
                await agent.remove([board_id])

    def _close_sink(self, evidence: Evidence) -> None:
        if evidence.sink is None:
            return
        if self._feed is not None and evidence.sink in self._feed.sinks:
            self._feed.sinks.remove(evidence.sink)
        evidence.sink.close()
        evidence.sink = None

    @contextlib.asynccontextmanager
    async def _metering(self) -> AsyncIterator[None]:
        """Hold the board's meter, if it has one: what it feeds is told apart by turns."""
        if self._feed is None:
            yield
            return
        async with self._feed.lock:
            self._feed.check_alive()
            self._feed.trace.drop_before(self._services.clock.monotonic() - TRACE_KEPT_S)
            yield
