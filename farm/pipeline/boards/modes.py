"""Power modes by hand: what boards have, setting one with proof, and back."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from farm.drivers.agent import SshBoardAgent
from farm.errors import BoardError, LinkLostError, PowerModeError, UnsupportedPowerModeError
from farm.execution.kept_restore import run_steps
from farm.interfaces.power_controller import PowerController
from farm.model.board import Board
from farm.model.mode_words import resolve_mode
from farm.model.power_mode import AppliedPowerMode, ClockPolicy, PowerModeState, PowerModeTable
from farm.model.record import Record
from farm.pipeline.boards.notes import note_path, read_note, write_note
from farm.pipeline.boards.reach import (
    Answer,
    agent_on,
    context_of,
    controller_of,
    leased,
    on_each,
)
from farm.pipeline.lab import Lab

ALIASES = ("maxn", "maxp", "maxq")
_KIND = "mode"


class BoardModes(Record):
    """One board's table; `aliases`: word -> the mode it means there.

    `current` is None where the board names none or does not tell; `problem` says why.
    """

    board: str
    table: PowerModeTable
    current: PowerModeState | None = None
    aliases: Mapping[str, str] = {}
    problem: str = ""


class RememberedMode(Record):
    """results/boards/<board>.mode.json: what was before the last `farm modes set`."""

    board: str
    time: datetime
    asked: str
    clocks: ClockPolicy
    before: PowerModeState


async def list_modes(lab: Lab, boards: Sequence[Board]) -> list[Answer[BoardModes]]:
    """Every board's own table, its present mode, and what the aliases mean there."""
    context = context_of(lab)

    async def ask(board: Board) -> BoardModes:
        async with agent_on(board, context) as agent:
            controller = controller_of(lab, board, agent)
            table = await controller.modes()
            current, problem = await _current(controller)
        aliases = _aliases(table, current)
        return BoardModes(
            board=board.name, table=table, current=current, aliases=aliases, problem=problem
        )

    return await on_each(boards, ask)


async def set_mode(
    lab: Lab, boards: Sequence[Board], asked: str, clocks: ClockPolicy
) -> list[Answer[AppliedPowerMode]]:
    """Set a mode on boards that no run works on, and prove it.

    What was before is noted first, durably; a change that did not happen leaves no note.

    An answer's error may be PowerModeError: read back differently, or a reboot is needed.
    """
    context = context_of(lab)

    async def change(board: Board) -> AppliedPowerMode:
        async with agent_on(board, context) as agent, leased(agent, "modes"):
            controller = controller_of(lab, board, agent)
            path = note_path(lab, board.name, _KIND)
            earlier, (before, _) = read_note(path, RememberedMode), await _current(controller)
            if before is not None:  # a board in no mode has none to go back to
                write_note(path, _note(board, asked, clocks, before))
            try:
                return await controller.apply(asked, clocks)
            except PowerModeError:
                if before == (await _current(controller))[0]:
                    _put_back(path, earlier)  # nothing was changed: the way back is the older one
                raise

    return await on_each(boards, change)


def remembered(lab: Lab, boards: Sequence[Board]) -> list[Board]:
    """Those of the boards that `restore_mode` can put back."""
    return [board for board in boards if note_path(lab, board.name, _KIND).exists()]


async def restore_mode(lab: Lab, boards: Sequence[Board]) -> list[Answer[PowerModeState]]:
    """Put each board back to what it was before the last `set_mode`; what it is then.

    What a run whose host vanished left there is undone first.
    """
    context = context_of(lab)

    async def put_back(board: Board) -> PowerModeState:
        path = note_path(lab, board.name, _KIND)
        noted = read_note(path, RememberedMode)
        async with agent_on(board, context) as agent, leased(agent, "modes"):
            was_left = await _undo_left(agent)
            if noted is None and not was_left:
                raise PowerModeError(
                    "restore power mode",
                    f"nothing is remembered: there is no {path}",
                    remedy="`farm modes set MODE` sets one, and remembers what was before.",
                )
            controller = controller_of(lab, board, agent)
            if noted is not None:
                await controller.restore(noted.before)
            state = await controller.current()
        path.unlink(missing_ok=True)
        return state

    return await on_each(boards, put_back)


async def _undo_left(agent: SshBoardAgent) -> bool:
    """Undo what a run left there whose host vanished. Whether there was something of one."""
    kept = await agent.kept_restore()
    if kept is None:
        return False
    step, whose = "restore power mode", f"run {kept.run_id} of {kept.holder}"
    attempts = await agent.list_attempts()
    running = [one.attempt_id for one in attempts if one.phase == "running"]
    if kept.is_pending and running:
        raise PowerModeError(
            step,
            f"payload {running[0]} of {whose} still runs there",
            remedy="Its end is waited for, then the board puts itself back; or `farm resume` it.",
        )
    failed = await run_steps(agent, kept.steps) if kept.is_pending else ""
    if failed:
        raise PowerModeError(
            step,
            f"what {whose} changed was not undone: {failed}",
            remedy="A mode that needs a reboot: `farm boards reboot` it, then set it by hand.",
        )
    await agent.drop_restore(kept.run_id)
    return True


def _note(board: Board, asked: str, clocks: ClockPolicy, before: PowerModeState) -> RememberedMode:
    now = datetime.now(UTC)
    return RememberedMode(board=board.name, time=now, asked=asked, clocks=clocks, before=before)


def _put_back(path: Path, earlier: RememberedMode | None) -> None:
    if earlier is None:
        path.unlink(missing_ok=True)
    else:
        write_note(path, earlier)


async def _current(controller: PowerController) -> tuple[PowerModeState | None, str]:
    try:
        return await controller.current(), ""
    except LinkLostError:
        raise
    except BoardError as error:
        return None, str(error)


def _aliases(table: PowerModeTable, current: PowerModeState | None) -> dict[str, str]:
    if len(table.modes) == 1:
        return dict.fromkeys(ALIASES, table.modes[0].name)
    state = current or PowerModeState(name="")
    found: dict[str, str] = {}
    for word in ALIASES:
        try:
            found[word] = resolve_mode(word, table, state).name
        except UnsupportedPowerModeError:
            continue
    return found
