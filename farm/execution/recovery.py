"""The way back to a board that fails: a ladder of steps, each bounded and journaled.

========== ============================================ ===================================
step       when                                         bound
========== ============================================ ===================================
agent      the board answers, its agent does not        once a climb
reconnect  a fault that may pass, with growing pauses   ``connect_retries`` a climb
reboot     the board answers; ``limits: {reboot: true}`` ``reboots_per_board`` a run
power cyc. an outlet that feeds this board alone        ``power_cycles_per_board`` and ``_night``
========== ============================================ ===================================

A climb ends with the next thing that works. What is at fault (`BoardError.culprit`) says which
steps can help: no board is rebooted for its meter's sake, and none for its payload's. When no
step is left, the lane takes the board out of the run for a while (quarantine).
"""

import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from farm.errors import AuthError, BoardError, ConnectError, Culprit
from farm.execution.equipment import RunServices
from farm.execution.liveness import LabWatch
from farm.execution.recovery_bounds import no_power_cycle, no_reboot
from farm.execution.recovery_counts import BEGUN, POWER_CYCLE, REBOOT, RECOVERY, Spent
from farm.execution.recovery_power_cycle import OutletError, power_cycle, switch_on
from farm.execution.retry import backoff_s
from farm.execution.session import BoardSession

AGENT, RECONNECT = "restart_agent", "reconnect"
LADDERS: Mapping[Culprit, tuple[str, ...]] = {
    "link": (AGENT, RECONNECT, REBOOT, POWER_CYCLE),
    "agent": (AGENT, RECONNECT, REBOOT),
    "meter": (RECONNECT,),
    "people": (RECONNECT,),
    "trial": (),
}
AGENT_AFTER = 2
"""The same link is tried so often before the agent on it is started anew."""
ASK_PAUSE_S = 5.0
REFUSED_LOGINS, REFUSED_WAIT_S = 3, 20.0
"""A board that boots refuses logins for a moment (pam_nologin); more tries may get us banned."""


@dataclass(slots=True)
class Care:
    """What the ladders of all boards of a run share."""

    spent: Spent
    boards: LabWatch
    meters: LabWatch


class OutOfStepsError(Exception):
    """Nothing is left to try now; `error` is the fault that began it, `text` what was tried."""

    def __init__(self, error: BoardError, text: str) -> None:
        super().__init__(text)
        self.error, self.text = error, text


@dataclass(slots=True)
class _Climb:
    """How far one climb has come."""

    tries: int = 0
    since_s: float | None = None
    first: BoardError | None = None
    """What began it: the cause of what is seen later, e.g. of a link that is away."""
    done: set[str] = field(default_factory=set)
    story: list[str] = field(default_factory=list)


class Ladder:
    """One board's steps, and what is used up of them.

    `rescues` counts the reboots and power cycles that brought the board back.
    """

    def __init__(self, session: BoardSession, services: RunServices, care: Care) -> None:
        self._session, self._services, self._care = session, services, care
        self._board = session.board.name
        self._chance = random.Random(self._board)  # noqa: S311 - jitter, no secret
        self._climb = _Climb()
        self._outlet_fault = ""
        self.rescues = 0
        self._refused = 0
        self._steps: Mapping[
            str,
            tuple[Callable[[BoardError], str], Callable[[BoardError], Awaitable[None]]],
        ] = {
            AGENT: (self._no_agent, self._restart_agent),
            RECONNECT: (self._no_reconnect, self._pause),
            REBOOT: (self._no_reboot, self._reboot),
            POWER_CYCLE: (self._no_power_cycle, self._power_cycle),
        }

    async def begin(self) -> None:
        """Before anything else: an outlet that a killed host switched off goes on again."""
        outlet = self._session.equipment.outlet
        if outlet is not None and self._board in self._care.spent.left_off:
            await switch_on(self._board, outlet, self._services)
            self._care.spent.left_off.discard(self._board)

    def worked(self) -> None:
        """Something went well: the next fault begins at the bottom again."""
        if self._climb.tries and not self._climb.done:
            self._tell(RECONNECT, "; ".join(self._climb.story), "done")
        self._climb, self._refused = _Climb(), 0
        if self._session.is_open:
            self._care.boards.seen(self._board)
        feed = self._session.equipment.feed
        if feed is not None and feed.facts is not None:
            self._care.meters.seen(feed.spec.name)

    def leave(self) -> None:
        """The board's work is over."""
        self._care.boards.leave(self._board)

    async def after(self, error: BoardError) -> None:
        """Do the next thing that may help after `error`; then what failed is to be tried again.

        Raises `error` where trying again cannot help, and OutOfStepsError.
        """
        error.named(self._board)
        if not self._may_help(error):
            raise error
        if isinstance(error, AuthError):
            self._refused += 1
            await self._services.clock.sleep(REFUSED_WAIT_S)
        elif await self._waited_for_lab(error):
            self._climb = _Climb()
        else:
            if self._climb.since_s is None:
                self._climb.since_s = self._services.clock.monotonic()
                self._climb.first = error
            await self._step_up(error)

    async def _step_up(self, error: BoardError) -> None:
        """The first step that is possible and does what it should. Raises as `after`."""
        refusals = []
        for name in LADDERS[error.culprit]:
            refusal_of, do = self._steps[name]
            if refusal := refusal_of(error):
                refusals.append(f"{name.replace('_', ' ')}: {refusal}")
                continue
            try:
                return await do(error)
            except BoardError as fault:
                self._fail(name, fault)
                if fault.culprit == "people" and not fault.retryable:
                    raise
                if fault.culprit in ("link", "agent"):
                    error = fault
        if error.culprit == "link" and await self._is_lab_or_back(error):
            return None
        tried, first = "; ".join(self._climb.story) or "nothing", self._climb.first or error
        now = "" if str(first) == str(error) else f"now: {error.seen}. "
        text = f"{now}tried: {tried}. Not done: {'; '.join(refusals)}"
        raise OutOfStepsError(first, text)

    async def _is_lab_or_back(self, error: BoardError) -> bool:
        """Before it is charged: ask for as long as others may take to be found lost, too."""
        clock, since_s = self._services.clock, self._climb.since_s
        if since_s is None or not self._care.boards.may_be_lab(self._board):
            return False
        give_up_s = since_s + self._services.limits.recovery.together_s
        while clock.monotonic() < give_up_s:
            if await self._waited_for_lab(error) or await self.answers():
                return True
            await clock.sleep(ASK_PAUSE_S)
        return await self._waited_for_lab(error)

    async def answers(self) -> bool:
        """Whether the board can be worked with; it is open then. Raises what never passes."""
        try:
            await self._session.open()
        except AuthError:
            self._refused += 1
            if self._refused > REFUSED_LOGINS:
                raise
            await self._services.clock.sleep(REFUSED_WAIT_S)
            return False
        except BoardError as error:
            if not error.retryable and error.culprit == "people":
                raise
            return False
        self._refused = 0
        return True

    def _may_help(self, error: BoardError) -> bool:
        if isinstance(error, AuthError):  # a board that knew us may be booting
            was_away = bool(self._session.boot_id and self._climb.tries)
            return was_away and self._refused < REFUSED_LOGINS
        if error.culprit == "agent" and not error.retryable:
            return bool(self._session.boot_id)  # one that never ran needs people, not reboots
        return error.retryable

    async def _waited_for_lab(self, error: BoardError) -> bool:
        """Tell the watches of a loss, and wait where it is the lab's fault."""
        feed = self._session.equipment.feed
        if error.culprit == "link" and not self._session.is_open:
            self._care.boards.lose(self._board)
            return await self._care.boards.wait_out(self._board, self.answers)
        if error.culprit == "meter" and feed is not None:
            self._care.meters.lose(feed.spec.name)
            return await self._care.meters.wait_out(feed.spec.name, self._meter_answers)
        return False

    async def _meter_answers(self) -> bool:
        feed = self._session.equipment.feed
        if feed is None:
            return True
        try:
            await feed.open()
            feed.check_alive()
        except BoardError:
            return False
        return True

    def _no_agent(self, error: BoardError) -> str:
        if AGENT in self._climb.done:
            return "done already"
        if not self._session.is_open:
            return "the link is down"
        return "" if self._climb.tries >= AGENT_AFTER or not error.retryable else "too early"

    async def _restart_agent(self, error: BoardError) -> None:
        self._begin(AGENT, error)
        await self._session.open()
        self._tell(AGENT, str(error), "done")

    def _no_reconnect(self, error: BoardError) -> str:
        if not error.retryable:
            return "it would fail the same way"
        limit = self._services.limits.connect_retries
        return f"tried {self._climb.tries} times" if self._climb.tries >= limit else ""

    async def _pause(self, error: BoardError) -> None:
        """The link is opened anew by whoever tries again."""
        self._climb.tries += 1
        tries, delay_s = self._climb.tries, backoff_s(self._climb.tries, self._chance)
        if tries == 1:
            self._climb.story.append(f"reconnect ({error.seen[:120]})")
        self._services.tell(
            "retry",
            board=self._board,
            text=f"{error} (again in {delay_s:.1f} s)",
            step=RECONNECT,
            number=tries,
        )
        await self._services.clock.sleep(delay_s)

    def _no_reboot(self, error: BoardError) -> str:
        del error
        if REBOOT in self._climb.done:
            return "done already"
        spent = self._care.spent.reboots[self._board]
        return no_reboot(self._session, self._services.limits, spent)

    async def _reboot(self, error: BoardError) -> None:
        before = self._session.boot_id
        self._begin(REBOOT, error)
        self._care.spent.reboots[self._board] += 1
        await self._services.journal.flush()
        await self._session.ask_reboot()
        await self._session.come_back(before)
        self._rescued(REBOOT, error)

    def _no_power_cycle(self, error: BoardError) -> str:
        del error
        if POWER_CYCLE in self._climb.done:
            return "done already"
        equipment, bounds = self._session.equipment, self._services.limits.recovery
        return self._outlet_fault or no_power_cycle(equipment, bounds, self._care.spent)

    async def _power_cycle(self, error: BoardError) -> None:
        outlet, clock = self._session.equipment.outlet, self._services.clock
        if outlet is None:
            raise RuntimeError("asked for without an outlet")
        since_s = self._climb.since_s or clock.monotonic()
        give_up_s = since_s + self._services.limits.recovery.patience_s
        while clock.monotonic() < give_up_s and not self._session.is_open:
            if await self.answers():
                return
            await clock.sleep(ASK_PAUSE_S)
        if await self._waited_for_lab(error):
            return
        # Asked again: another board may have taken the night's last one meanwhile.
        if refusal := self._no_power_cycle(error):
            raise ConnectError("power cycle", refusal)
        self._begin(POWER_CYCLE, error)
        self._care.spent.power_cycles[self._board] += 1
        await self._services.journal.flush()
        await power_cycle(self._session, outlet, self._services)
        self._rescued(POWER_CYCLE, error)

    def _rescued(self, step: str, error: BoardError) -> None:
        self._climb.tries = 0
        self.rescues += 1
        self._tell(step, str(error), "done")

    def _begin(self, step: str, error: BoardError) -> None:
        self._climb.done.add(step)
        self._climb.story.append(step.replace("_", " "))
        self._tell(step, str(error), BEGUN)

    def _fail(self, step: str, fault: BoardError) -> None:
        if isinstance(fault, OutletError):
            self._outlet_fault = fault.seen
        self._climb.story.append(f"in vain: {fault.seen[:200]}")
        self._tell(step, str(fault.named(self._board)), "failed")

    def _tell(self, step: str, reason: str, outcome: str) -> None:
        self._services.tell(
            RECOVERY,
            board=self._board,
            text=f"{step.replace('_', ' ')} {outcome}: {reason}",
            step=step,
            reason=reason,
            outcome=outcome,
        )
