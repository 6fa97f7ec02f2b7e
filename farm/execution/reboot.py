"""A reboot into a power mode, as a closed loop: asked for, seen to happen, proven afterwards."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Protocol, TypeVar

from farm.errors import (
    AuthError,
    BoardError,
    CommandTimeoutError,
    ConnectError,
    LinkLostError,
    PowerModeError,
    RebootNeededError,
)
from farm.execution.equipment import RunServices
from farm.interfaces.agent import BoardAgent
from farm.interfaces.power_controller import PowerController, RebootingController
from farm.model.power_mode import ClockPolicy
from farm.model.sweep import Limits

T = TypeVar("T")

DOWN_LIMIT_S = 60.0
"""How long the link may stay after the board said that it goes down (assumed: services stop)."""
BACK_LIMIT_S = Limits().reboot_s
"""How long a board may stay away, where the sweep says nothing else."""
POLL_S = 2.0
REFUSED_LOGINS, REFUSED_WAIT_S = 3, 20.0
"""While a board boots it may refuse logins (pam_nologin). Few tries: more could get us banned."""
SETTLE_LIMIT_S = 120.0
STABLE_S = 10.0
"""Without systemd's word: so long the power mode must read the same (assumed)."""
LOCK_AFTER_S = 60.0
"""In the first minute after a boot other services reset the clocks (rbonghi/jetson_stats#3)."""
AROUND_LIMIT_S = DOWN_LIMIT_S + SETTLE_LIMIT_S + LOCK_AFTER_S + 120.0
"""No reboot with its proof takes longer, plus the time for which the board may stay away; the
rest is for the commands of the proof."""

_BOOTING = ("initializing", "starting")
_BOOTED = ("running", "degraded", "maintenance")
_STEP = "reboot"
_AWAY_REMEDY = "Look at the board itself; when it answers, `farm resume` goes on."


class RebootedSession(Protocol):
    """What a reboot needs of a board's session."""

    boot_id: str

    @property
    def agent(self) -> BoardAgent:
        """The open agent."""

    @property
    def controller(self) -> PowerController:
        """The board's power controller."""

    @property
    def is_open(self) -> bool:
        """Whether the link is up as far as we know."""

    async def open(self) -> None:
        """Connect anew, take the lease, tell the boot id."""


class Rebooter:
    """Reboots one board, as often as the sweep's limits allow.

    A mode that a reboot did not bring into force is not tried again in this run.
    """

    def __init__(self, session: RebootedSession, services: RunServices, board: str) -> None:
        self._session, self._services, self._board = session, services, board
        self._count = 0
        self._away = ""
        self._failures: dict[str, tuple[str, str]] = {}

    async def reboot_into(
        self,
        needed: RebootNeededError,
        clocks: ClockPolicy,
        prove: Callable[[], Awaitable[T]],
        *,
        is_last: bool = False,
    ) -> T:
        """Reboot the board into the mode that `needed` names, and return what `prove` finds.

        `is_last`: the way back to the board's original mode, on top of `max_reboots`. Raises
        PowerModeError (not allowed, too often, refused, in vain), ConnectError when the board
        stays away, and what `prove` raises.
        """
        controller = self._permitted(needed, is_last=is_last)
        services, mode = self._services, needed.mode
        services.tell("reboot", board=self._board, text=f"into {mode}: {needed.seen}", mode=mode)
        await services.journal.flush()  # whoever resumes must know why the board is away
        begin_s, before = services.clock.monotonic(), self._session.boot_id
        try:
            is_going = await controller.request_reboot_into(mode)
        except (LinkLostError, CommandTimeoutError):
            is_going = True
        if not is_going:  # it changed live after all
            return await prove()
        self._count += 1
        await self._wait_for_boot(before)
        await self._settle(clocks)
        try:
            found = await prove()
        except RebootNeededError as again:
            raise await self._in_vain(again) from again
        seconds = services.clock.monotonic() - begin_s
        services.tell(
            "rebooted",
            board=self._board,
            text=f"in {mode} after {seconds:.0f} s",
            mode=mode,
            seconds=round(seconds, 1),
            boot_id=self._session.boot_id,
        )
        return found

    async def come_back(self, before: str) -> None:
        """Wait for a boot that somebody else began, with its services, and long enough to lock.

        Raises as `reboot_into` does.
        """
        await self._wait_for_boot(before)
        await self._settle("locked")

    def _permitted(self, needed: RebootNeededError, *, is_last: bool) -> RebootingController:
        """The controller that can do it. Raises PowerModeError where it must not be done."""
        limits, controller = self._services.limits, self._session.controller
        if not limits.reboot:
            raise PowerModeError(
                needed.step,
                f"{needed.mode} needs a reboot, which the sweep does not allow: {needed.seen}",
                remedy="Allow it in the sweep: limits: {reboot: true}.",
            )
        if needed.mode in self._failures:
            seen, remedy = self._failures[needed.mode]
            raise PowerModeError(needed.step, seen, remedy=remedy)
        if self._count >= limits.max_reboots and not is_last:
            raise PowerModeError(
                needed.step,
                f"the board was rebooted {self._count} times in this run, which is the limit",
                remedy="Raise it in the sweep: limits: {max_reboots: N}.",
            )
        if not isinstance(controller, RebootingController):
            raise PowerModeError(
                needed.step, f"its power controller cannot reboot it: {needed.seen}"
            )
        return controller

    async def _in_vain(self, again: RebootNeededError) -> PowerModeError:
        """The board came back and still asks: another reboot would do no better."""
        state = await self._session.controller.current()
        if state.name == again.mode:
            seen = f"after the reboot the board is in {state.name}, and still: {again.seen}"
            remedy = "Its boot services may use the GPU too early, or have failed."
        else:
            seen = f"after the reboot the board is in {state.name}, not in {again.mode}"
            remedy = "It does not keep the mode: is its root file system read-only or volatile?"
        self._failures[again.mode] = seen, remedy
        return PowerModeError(again.step, seen, remedy=remedy)

    @contextmanager
    def told_if_away(self) -> Iterator[None]:
        """A connect: when it fails after a reboot in vain, the reboot is the fault to tell."""
        try:
            yield
        except ConnectError as error:
            if not self._away:
                raise
            seen = f"{self._away}: {error.step}: {error.seen}"
            raise ConnectError(_STEP, seen, remedy=_AWAY_REMEDY) from error
        self._away = ""

    async def _wait_for_boot(self, before: str) -> None:
        """Wait until the board is there with another boot id, lease taken."""
        clock, session = self._services.clock, self._session
        limit_s = self._services.limits.reboot_s
        give_up_s = clock.monotonic() + DOWN_LIMIT_S
        while session.is_open and clock.monotonic() < give_up_s:
            await clock.sleep(POLL_S)
        give_up_s = clock.monotonic() + limit_s
        seen, refused = "it did not answer", 0
        while clock.monotonic() < give_up_s:
            await clock.sleep(POLL_S)
            try:
                await session.open()
            except AuthError as error:
                refused += 1
                if refused > REFUSED_LOGINS:
                    raise
                seen = f"{error.step}: {error.seen}"
                await clock.sleep(REFUSED_WAIT_S)
            except BoardError as error:
                if not error.retryable:
                    raise
                seen = f"{error.step}: {error.seen}"
            else:
                if session.boot_id != before:
                    return
                seen = ""
        if seen:
            self._away = f"not back after {limit_s:.0f} s"
            raise ConnectError(_STEP, f"{self._away}: {seen}", remedy=_AWAY_REMEDY)
        raise PowerModeError(
            _STEP,
            f"the board was told to reboot and did not within {limit_s:.0f} s",
            remedy="Reboot it by hand, then resume the run.",
        )

    async def _settle(self, clocks: ClockPolicy) -> None:
        """Wait, for a bounded time, until the boot's services have done their part."""
        clock, agent = self._services.clock, self._session.agent
        give_up_s = clock.monotonic() + SETTLE_LIMIT_S
        while (state := await self._system_state()) in _BOOTING:
            if clock.monotonic() >= give_up_s:
                break
            await clock.sleep(POLL_S)
        if state not in _BOOTED:
            await self._wait_for_a_stable_mode(give_up_s)
        if clocks == "locked":
            up_s = (await agent.exchange_clock()).board_s
            await clock.sleep(max(0.0, LOCK_AFTER_S - up_s))

    async def _system_state(self) -> str:
        """How far the boot is by systemd's word; "" where there is no systemd.

        Asked again and again: ``--wait`` is younger than the systemd of older boards (240).
        """
        result = await self._session.agent.run(["systemctl", "is-system-running"])
        return result.text.strip()[:40]

    async def _wait_for_a_stable_mode(self, give_up_s: float) -> None:
        clock = self._services.clock
        last: tuple[str, int | None] | None = None
        since_s = clock.monotonic()
        while clock.monotonic() < give_up_s:
            try:
                state = await self._session.controller.current()
                now = (state.name, state.id)
            except PowerModeError:  # none yet: its boot service has not run
                now = None
            if now is None or now != last:
                last, since_s = now, clock.monotonic()
            elif clock.monotonic() - since_s >= STABLE_S:
                return
            await clock.sleep(POLL_S)
