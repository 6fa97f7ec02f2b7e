"""One board while a run works on it: link, agent, lease, power mode, original state."""

import asyncio
import contextlib

from farm.errors import BoardError, FarmError, LinkLostError, RebootNeededError
from farm.execution.equipment import BoardEquipment, RunServices
from farm.execution.reboot import AROUND_LIMIT_S, Rebooter
from farm.interfaces.agent import BoardAgent
from farm.interfaces.power_controller import PowerController
from farm.interfaces.transport import Transport
from farm.model.power_mode import AppliedPowerMode, ClockPolicy, PowerModeState

LEASE_TTL_S = 900.0
"""How long a board stays ours when the host vanishes: longer than a host's reboot (assumed)."""
LEASE_RENEW_S = 180.0
CLOSE_LIMIT_S = 30.0


class BoardSession:
    """A board that is ours: opened, leased, its original state known.

    Not safe for use by two tasks at once: a board has one lane.
    """

    def __init__(self, equipment: BoardEquipment, services: RunServices) -> None:
        self.equipment = equipment
        self.board = equipment.board
        self.applied: AppliedPowerMode | None = None
        self.boot_id = ""
        self._services = services
        self._transport: Transport | None = None
        self._agent: BoardAgent | None = None
        self._controller: PowerController | None = None
        self._original: PowerModeState | None = services.originals.get(equipment.board.name)
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

        Raises what the transport, the agent and the power controller raise.
        """
        await self._drop_link()
        services = self._services
        self._transport = self.equipment.transport()
        await self._transport.connect()
        self._agent = await self.equipment.agent(self._transport)
        await self._agent.take_lease(services.run_id, services.holder, LEASE_TTL_S)
        if self._agent.fingerprint.boot_id != self.boot_id:
            self.applied = None  # a reboot loses clocks, and on some images the mode
            self.boot_id = self._agent.fingerprint.boot_id
        self._controller = self.equipment.controller(self._agent)
        if self._original is None:
            self._original = await self._controller.current()
            services.tell(
                "original_state",
                board=self.board.name,
                text=self._original.name,
                state=self._original.model_dump(mode="json"),
            )
            await services.journal.flush()  # before anything is changed
        if self._renewal is None:
            self._renewal = asyncio.create_task(
                self._renew_lease(), name=f"lease {self.board.name}"
            )

    async def set_mode(self, asked: str, clocks: ClockPolicy) -> AppliedPowerMode:
        """Put the board into a power mode unless it is proven to be there already.

        Reboots it where the mode needs that and the sweep allows it.
        """
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
        self.applied = applied
        return applied

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
        await self._drop_link()

    async def _give_back(self, limit: asyncio.Timeout) -> None:
        if self._original is None and self._agent is None:
            return
        if not self.is_open:
            await self.open()
        try:
            if self._original is not None:
                await self._restore(self._original, limit)
                self._services.tell("restored", board=self.board.name, text=self._original.name)
        finally:  # a board in the wrong mode is still no board that we work on
            if self.is_open:
                await self.agent.release_lease(self._services.run_id)

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
            await self._services.clock.sleep(LEASE_RENEW_S)
            with contextlib.suppress(BoardError):  # the lane meets a lost link by itself
                await self.agent.take_lease(
                    self._services.run_id, self._services.holder, LEASE_TTL_S
                )

    async def _drop_link(self) -> None:
        agent, transport = self._agent, self._transport
        self._agent = self._transport = self._controller = None
        if agent is not None:
            await agent.close()
        if transport is not None:
            await transport.close()
