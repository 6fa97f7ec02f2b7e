"""Before an attempt: bring the board into the state that the trial asks for."""

from farm.execution.equipment import RunServices
from farm.execution.idle import IdleBaselines
from farm.execution.retry import cool_down_s
from farm.execution.session import BoardSession
from farm.execution.steps import timed
from farm.model.attempt import StepTime
from farm.model.measurement import IdlePower
from farm.model.plan import Cell, Trial
from farm.model.power_mode import AppliedPowerMode

SETTLE_POLL_S = 2.0
SHOW_EVERY_S = 5.0


class Preparer:
    """Power mode, temperature, idle baseline, payload: in this order, on one board."""

    def __init__(self, session: BoardSession, services: RunServices, idle: IdleBaselines) -> None:
        self._session, self._services, self._idle = session, services, idle
        self._telemetry = session.equipment.telemetry
        self._shown_s = float("-inf")
        self._told: AppliedPowerMode | None = None

    async def prepare(
        self, trial: Trial, disturbed: int = 0
    ) -> tuple[AppliedPowerMode, IdlePower | None, list[StepTime]]:
        """Bring the board into the state that the trial asks for; nothing is begun yet.

        `disturbed`: how many attempts of the trial in a row were so: the board rests longer.
        """
        cell, steps, services = trial.cell, list[StepTime](), self._services
        services.show("trial_prepare", board=trial.board, trial_id=trial.trial_id)
        with timed(services.clock, steps, "power mode"):
            await self._idle.leave(cell.power_mode, cell.clocks)
            mode = await self._set_mode(cell)
        self._tell_pick(trial.board, mode)
        with timed(services.clock, steps, "settle"):
            await self._cool_down(trial.board, disturbed)
            await self._settle(trial.board)
        with timed(services.clock, steps, "idle"):
            idle = await self._idle.before(mode)
        with timed(services.clock, steps, "push"):
            await self._session.agent.ensure_payload(services.payloads[cell.payload])
        await self.show_temperature(trial.board)
        return mode, idle, steps

    def _tell_pick(self, board: str, mode: AppliedPowerMode) -> None:
        """Which of the board's own modes the sweep's word was taken for, once a change."""
        if mode is self._told:
            return
        self._told = mode
        self._services.tell(
            "power_mode",
            board=board,
            text=mode.pick_text,
            asked=mode.asked,
            name=mode.name,
            id=mode.id,
            budget_w=mode.budget_w,
        )

    async def _set_mode(self, cell: Cell) -> AppliedPowerMode:
        """The mode, with no tool at work while it changes; the telemetry runs afterwards."""
        applied = self._session.applied
        if self._telemetry is None:
            return await self._session.set_mode(cell.power_mode, cell.clocks)
        if applied is None or (applied.asked, applied.clocks) != (cell.power_mode, cell.clocks):
            self._telemetry.rest()
        mode = await self._session.set_mode(cell.power_mode, cell.clocks)
        self._telemetry.begin(self._session.agent)
        return mode

    async def _cool_down(self, board: str, disturbed: int) -> None:
        seconds = cool_down_s(disturbed, self._services.rules.settle)
        if seconds:
            text = f"the last attempt was disturbed: {seconds:g} s of rest before the next"
            self._services.tell("cool_down", board=board, text=text, seconds=seconds)
            await self._services.clock.sleep(seconds)

    async def show_temperature(self, board: str) -> None:
        """For the view alone: what a trial was judged by stands in its record."""
        now_s = self._services.clock.monotonic()
        if now_s - self._shown_s < SHOW_EVERY_S:
            return
        self._shown_s = now_s
        celsius = await self._session.agent.temperature_c()
        if celsius is not None:
            self._services.show("temperature", board=board, celsius=round(celsius, 1))

    async def _settle(self, board: str) -> None:
        """Wait for the temperature of the sweep's settle rule, at most as long as it says."""
        rule, clock = self._services.rules.settle, self._services.clock
        if rule.pause_s:
            await clock.sleep(rule.pause_s)
        if rule.max_temperature_c is None:
            return
        give_up_s = clock.monotonic() + rule.max_wait_s
        while True:
            celsius = await self._session.agent.temperature_c()
            if celsius is None or celsius <= rule.max_temperature_c:
                return
            if clock.monotonic() >= give_up_s:
                text = f"{celsius:.1f} C after {rule.max_wait_s:.0f} s, asked for"
                text += f" {rule.max_temperature_c:.1f} C at most; going on"
                self._services.tell("not_settled", board=board, text=text)
                return
            await clock.sleep(SETTLE_POLL_S)
