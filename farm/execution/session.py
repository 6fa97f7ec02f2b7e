"""One board while a run works on it: link, agent, lease, power mode, original state."""

import asyncio
import contextlib
from datetime import datetime, timedelta

from farm.errors import (
    AgentError,
    BoardError,
    CommandTimeoutError,
    FarmError,
    LinkLostError,
    RebootNeededError,
    UnsupportedPowerModeError,
)
from farm.execution.equipment import BoardEquipment, RunServices
from farm.execution.kept_restore import keep_restore, meet_kept_restore
from farm.execution.reboot import AROUND_LIMIT_S, Rebooter
from farm.interfaces.agent import BoardAgent
from farm.interfaces.power_controller import FanController, PowerController
from farm.interfaces.transport import Transport
from farm.model.attempt import BoardFingerprint
from farm.model.power_mode import AppliedPowerMode, ClockPolicy, PowerModeState

RENEWALS = 5
"""So often a lease is renewed before it would end."""
CLOSE_LIMIT_S = 30.0
REBOOT_COMMANDS = (("reboot",), ("systemctl", "reboot"))


class BoardSession:
    """A board that is ours: opened, leased, its original state known.

    Not safe for use by two tasks at once: a board has one lane.
    """

    def __init__(self, equipment: BoardEquipment, services: RunServices) -> None:
        self.equipment = equipment
        self.board = equipment.board
        self.applied: AppliedPowerMode | None = None
        self.boot_id = ""
        self.fingerprint: BoardFingerprint | None = None
        self._was_tried = False
        self._services = services
        self._transport: Transport | None = None
        self._agent: BoardAgent | None = None
        self._controller: PowerController | None = None
        self._original: PowerModeState | None = services.originals.get(equipment.board.name)
        self._leased: datetime | None = None
        self._renewal: asyncio.Task[None] | None = None
        self._rebooter = Rebooter(self, services, equipment.board.name)

    @property
    def agent(self) -> BoardAgent:
        """The open agent. Raises LinkLostError while there is none."""
        if self._agent is None or self._transport is None or not self._transport.is_connected:
            raise LinkLostError("agent", "the board is not connected", board=self.board.name)
        return self._agent

    @property
    def controller(self) -> PowerController:
        """The board's power controller. Raises LinkLostError while there is no link."""
        if self._controller is None:
            raise LinkLostError("power mode", "the board is not connected", board=self.board.name)
        return self._controller

    @property
    def is_open(self) -> bool:
        """True while the link is up as far as we know."""
        return self._transport is not None and self._transport.is_connected

    async def open(self) -> None:
        """Connect, start the agent, take the lease, learn the original state.

        Raises what the transport, the agent and the power controller raise; a board that has
        been tried before is probed first, so that a dead one costs the others nothing.
        """
        await self.drop_link()
        if self._was_tried and self.equipment.probe is not None:
            await self.equipment.probe()
        self._was_tried = True
        self._transport = self.equipment.transport()
        with self._rebooter.told_if_away():
            await self._transport.connect()
        self._agent = await self.equipment.agent(self._transport)
        self.fingerprint = self._agent.fingerprint
        await self._take_lease()
        if self._agent.fingerprint.boot_id != self.boot_id:
            self.applied = None  # a reboot loses clocks, and on some images the mode
            self.boot_id = self._agent.fingerprint.boot_id
        self._controller = self.equipment.controller(self._agent)
        await self._know_original()
        if self._renewal is None:
            self._renewal = asyncio.create_task(
                self._renew_lease(), name=f"lease {self.board.name}"
            )

    async def ask_reboot(self) -> None:
        """Tell the board to reboot. Raises AgentError when it says no, and link faults."""
        said = ""
        for argv in REBOOT_COMMANDS:
            try:
                result = await self.agent.run(argv, timeout_s=20.0, needs_root=True)
            except (LinkLostError, CommandTimeoutError):
                return  # it may be going down: the new boot id will tell
            if result.exit_status == 0:
                return
            said = (result.error_text or result.text).strip()[-300:]
        raise AgentError("reboot", said or "it says no", board=self.board.name)

    async def come_back(self, before: str) -> None:
        """Wait for another boot id than `before`, and for the boot's services.

        Raises ConnectError when the board stays away, PowerModeError when it did not reboot.
        """
        await self._rebooter.come_back(before)

    async def _know_original(self) -> None:
        """How the board is to be put back, by us or by itself: known before it is changed."""
        services, name, controller = self._services, self.board.name, self.controller
        if await meet_kept_restore(self.agent, services, name):
            self.applied = None
        if self._original is None:
            original = await controller.current()
            if services.fan != "default" and isinstance(controller, FanController):
                detail = {**original.detail, "fan": await controller.fan_state()}
                original = original.model_copy(update={"detail": detail})
            self._original = original
            services.tell(
                "original_state",
                board=name,
                text=original.name,
                state=original.model_dump(mode="json"),
            )
            await services.journal.flush()  # before anything is changed
        await keep_restore(self.agent, controller, self._original, services.run_id)

    async def set_mode(self, asked: str, clocks: ClockPolicy) -> AppliedPowerMode:
        """Put the board into a power mode unless it is proven to be there already.

        Reboots it where the mode needs that and the sweep allows it.
        """
        if self._is_lease_over:  # the host slept: the board may have put itself back
            await self._take_lease()
            await self._know_original()
        if self.applied and self.applied.asked == asked and self.applied.clocks == clocks:
            return self.applied
        self.applied = None
        boot_id = self.boot_id
        try:
            applied = await self.controller.apply(asked, clocks)
        except RebootNeededError as needed:
            applied = await self._rebooter.reboot_into(
                needed, clocks, lambda: self.controller.apply(asked, clocks)
            )
        if self.boot_id != boot_id:
            applied = applied.model_copy(update={"has_changed": True, "has_rebooted": True})
        self.applied = await self._with_fan(applied)
        return self.applied

    async def _with_fan(self, applied: AppliedPowerMode) -> AppliedPowerMode:
        """Hold the fan as the sweep wants; after the clocks, whose tool sets it too."""
        policy, controller = self._services.fan, self.controller
        if policy == "default":
            return applied
        if not isinstance(controller, FanController):
            raise UnsupportedPowerModeError(
                "set the fan", "the board's power controller cannot set a fan"
            )
        await controller.set_fan(policy)
        back = applied.read_back
        back = back.model_copy(
            update={"detail": {**back.detail, "fan": await controller.fan_state()}}
        )
        return applied.model_copy(update={"read_back": back})

    async def close(self) -> None:
        """Restore the board, give the lease back, close the link. Bounded; never raises.

        What could not be restored is recorded: a board must not silently stay changed.
        """
        if self._renewal is not None:
            self._renewal.cancel()
            await asyncio.gather(self._renewal, return_exceptions=True)
            self._renewal = None
        try:
            async with asyncio.timeout(CLOSE_LIMIT_S) as limit:
                await self._give_back(limit)
        except (FarmError, TimeoutError, OSError) as error:
            if self._original is not None:
                self._services.tell(
                    "restore_failed",
                    board=self.board.name,
                    text=f"{self.board.name} was not put back to {self._original.name}: {error}",
                )
        await self.drop_link()

    async def _give_back(self, limit: asyncio.Timeout) -> None:
        if self._original is None and self._agent is None:
            return
        if not self.is_open:
            await self.open()
        try:
            if self._original is not None:
                await self._restore(self._original, limit)
                await self.agent.drop_restore(self._services.run_id)
        finally:  # a board in the wrong mode is still no board that we work on
            if self.is_open:
                await self.agent.release_lease(self._services.run_id)
        if self._original is not None:  # last: what is not told is done again by a resume
            self._services.tell("restored", board=self.board.name, text=self._original.name)

    async def _restore(self, original: PowerModeState, limit: asyncio.Timeout) -> None:
        try:
            await self.controller.restore(original)
        except RebootNeededError as needed:
            whole_s = AROUND_LIMIT_S + self._services.limits.reboot_s
            limit.reschedule(asyncio.get_running_loop().time() + whole_s)
            await self._rebooter.reboot_into(
                needed,
                "locked" if original.is_locked else "default",
                lambda: self.controller.restore(original),
                is_last=True,
            )

    async def _renew_lease(self) -> None:
        while True:
            await self._services.clock.sleep(self._services.limits.lease_s / RENEWALS)
            with contextlib.suppress(BoardError):  # the lane meets a lost link by itself
                if not self._is_lease_over:
                    await self._take_lease()

    async def _take_lease(self) -> None:
        services, asked = self._services, self._services.clock.now()
        await self.agent.take_lease(services.run_id, services.holder, services.limits.lease_s)
        self._leased = asked

    @property
    def _is_lease_over(self) -> bool:
        """By the host's wall clock: its monotonic one stands while it sleeps."""
        length = timedelta(seconds=self._services.limits.lease_s)
        return self._leased is None or self._services.clock.now() - self._leased > length

    async def drop_link(self) -> None:
        """Close agent and link; bounded, never raises."""
        agent, transport = self._agent, self._transport
        self._agent = self._transport = self._controller = None
        if agent is not None:
            await agent.close()
        if transport is not None:
            await transport.close()
