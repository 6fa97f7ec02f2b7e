"""Looks at boards, all at once and bounded in time: would a run tonight fail, and why?"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

from farm.analysis.profile_match import differences, identify
from farm.drivers.agent import SshBoardAgent
from farm.drivers.board_facts.busy import look_for_load
from farm.drivers.board_facts.probe import BoardFacts, probe
from farm.drivers.transports.ssh_context import SshContext
from farm.errors import BoardError, LinkLostError, PowerModeError
from farm.execution.clock_map import LARGEST_GOAL_S, clock_goal_s, sample_clock
from farm.execution.system_clock import SystemClock
from farm.model.board import Board, MeterSpec
from farm.model.power_mode import PowerModeTable
from farm.pipeline.boards import findings as said
from farm.pipeline.boards.findings import Checkup, Finding
from farm.pipeline.boards.meter_look import MeterLook, look_at_meters
from farm.pipeline.boards.needs import root_commands
from farm.pipeline.boards.reach import Answer, agent_on, context_of, controller_of, on_each
from farm.pipeline.boards.rights import SudoRights, ask_rights
from farm.pipeline.lab import Lab

CHECK_LIMIT_S = 120.0
"""For one board once it is connected: a hung command in each check, and the rest of them."""


async def examine(lab: Lab, boards: Sequence[Board]) -> list[Checkup]:
    """All boards and their meters, the boards that would fail first."""
    names = {board.meter for board in boards if board.meter}
    specs = [meter for meter in lab.inventory.meters if meter.name in names]
    context = context_of(lab)

    async def check(board: Board) -> _Check:
        return await _check(lab, board, context)

    answers, looks = await asyncio.gather(
        on_each(boards, check), look_at_meters(lab, specs, SystemClock())
    )
    meters = {spec.name: spec for spec in specs}
    checkups = [_checkup(lab, answer, meters, looks) for answer in answers]
    return sorted(checkups, key=_severity)


def _severity(checkup: Checkup) -> int:
    if not checkup.findings:
        return len(said.LEVELS)
    return said.LEVELS.index(checkup.findings[0].level)


class _Check:
    """One board while it is looked at: each step adds what it found."""

    def __init__(self, lab: Lab, board: Board, agent: SshBoardAgent) -> None:
        self.lab, self.board, self.agent = lab, board, agent
        self.profile = lab.profiles[board.profile]
        self.findings: list[Finding] = []
        self.facts = BoardFacts()
        self.mode = ""
        self.has_table = False

    @property
    def summary(self) -> str:
        """What was seen of it, in a line."""
        facts = self.agent.fingerprint
        parts = [facts.l4t or facts.kernel, f"Python {facts.python}", self.mode]
        return ", ".join(part for part in parts if part)

    async def attempt(self, step: Callable[[], Awaitable[None]]) -> None:
        """Take one step; its error is a finding. A dead link ends the looking."""
        try:
            await step()
        except LinkLostError:
            raise
        except BoardError as error:
            self.findings.append(said.of_error(error))

    async def look(self) -> None:
        """All steps, in an order in which none disturbs the next."""
        lease = await self.agent.show_lease()
        attempts = await self.agent.list_attempts()
        running = [one.attempt_id for one in attempts if one.phase == "running"]
        self.findings += said.of_lease(lease, running)
        self.findings += said.of_disk(self.agent.free_mb, _largest_payload_mb(self.lab))
        if lease is not None:
            return  # it measures: what we would run there shows in its watts
        self.findings += said.of_kept_restore(await self.agent.kept_restore(), self.board.name)
        for step in (self.load, self.plain_facts, self.clock, self.modes, self.rights):
            await self.attempt(step)

    async def load(self) -> None:
        """First, while nothing of ours runs."""
        look = await look_for_load(self.agent, self.board.python, self.board.root_prefix)
        self.findings += said.of_load(look)

    async def plain_facts(self) -> None:
        """Temperature, date, release."""
        self.facts = await probe(self.agent)
        celsius = await self.agent.temperature_c()
        self.findings += said.of_temperature(celsius, self.profile)
        self.findings += said.of_date(self.facts.clock_error_s)
        if self.profile.power_controller == "nvpmodel" and not self.facts.l4t:
            text = "neither /etc/nv_tegra_release nor dpkg tells its L4T release"
            self.findings.append(Finding("note", "L4T", text))

    async def clock(self) -> None:
        """How near one exchange comes."""
        meter = self.board.meter
        update_s = None if meter is None else self.lab.inventory.meter(meter).update_s
        goal_s = min(LARGEST_GOAL_S, clock_goal_s(update_s))
        exchanges = await sample_clock(self.agent, goal_s)
        bound_s = min((e.host_received_s - e.host_sent_s) / 2 for e in exchanges)
        self.findings += said.of_clock(bound_s, goal_s / 2, is_metered=meter is not None)

    async def modes(self) -> None:
        """The table, and whether it is the profile's; both are told even if one fails."""
        table: PowerModeTable | None = None
        try:
            table = await controller_of(self.lab, self.board, self.agent).modes()
            self.has_table = True
        except PowerModeError as error:
            self.findings.append(said.of_error(error))
        matches = identify(self.facts.compatible, self.facts.model, self.lab.profiles.values())
        lines = differences(self.profile, table) if table else []
        self.findings += said.of_profile(self.board, matches, self.profile, lines)

    async def rights(self) -> None:
        """sudo; then the present mode, if it may be asked for and there is a table to name it."""
        needed = root_commands(self.profile)
        rights = await ask_rights(self.agent, needed)
        self.findings += said.of_rights(self.board, rights)
        if self.has_table and _may_read_mode(rights):
            state = await controller_of(self.lab, self.board, self.agent).current()
            self.mode = f"{state.name}{', clocks locked' if state.is_locked else ''}"


def _may_read_mode(rights: SudoRights) -> bool:
    return not rights.complaint and rights.state not in ("no", "password", "missing")


async def _check(lab: Lab, board: Board, context: SshContext) -> _Check:
    async with agent_on(board, context, limit_s=CHECK_LIMIT_S) as agent:
        check = _Check(lab, board, agent)
        await check.look()
        return check


def _checkup(
    lab: Lab,
    answer: Answer[_Check],
    meters: Mapping[str, MeterSpec],
    looks: Mapping[str, MeterLook],
) -> Checkup:
    board, check = answer.board, answer.value
    found = list(check.findings) if check is not None else []
    if answer.error is not None:
        found.append(said.of_error(answer.error))
    if board.meter is not None:
        found += said.of_meter(meters[board.meter], looks[board.meter])
        others = [one.name for one in lab.inventory.boards if one.meter == board.meter]
        found += said.of_sharing(board.meter, [name for name in others if name != board.name])
    return Checkup(board.name, tuple(found), check.summary if check is not None else "")


def _largest_payload_mb(lab: Lab) -> float:
    sizes = (sum(file.size for file in payload.files) for payload in lab.payloads.values())
    return max(sizes, default=0) / 1e6
