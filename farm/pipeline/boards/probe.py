"""What boards are: their facts, their mode table, and which profile they have by that."""

from collections.abc import Sequence
from datetime import UTC, datetime

from farm.analysis.profile_match import differences, identify
from farm.drivers.agent import SshBoardAgent
from farm.drivers.board_facts.probe import BoardFacts, probe
from farm.errors import BoardError, LinkLostError
from farm.model.attempt import BoardFingerprint
from farm.model.board import Board
from farm.model.power_mode import PowerModeState, PowerModeTable
from farm.model.record import Record
from farm.pipeline.boards.needs import root_commands
from farm.pipeline.boards.notes import note_path, write_note
from farm.pipeline.boards.reach import Answer, agent_on, context_of, controller_of, on_each
from farm.pipeline.boards.rights import SudoRights, ask_rights
from farm.pipeline.lab import Lab


class Suggestion(Record):
    """A profile that fits the board, and why in one line."""

    profile: str
    why: str


class BoardProbe(Record):
    """All facts of one board, at `time` (UTC).

    `table` and `mode` are None where they could not be read; `problems` tells why.
    `suggestions`: profiles that fit, best first; `differences`: where the board's own mode
    table is not as its profile expects.
    """

    board: str
    time: datetime
    profile: str
    fingerprint: BoardFingerprint
    facts: BoardFacts
    free_mb: int
    temperature_c: float | None = None
    table: PowerModeTable | None = None
    mode: PowerModeState | None = None
    sudo: SudoRights
    suggestions: tuple[Suggestion, ...] = ()
    differences: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


async def probe_boards(lab: Lab, boards: Sequence[Board]) -> list[Answer[BoardProbe]]:
    """Ask all at once, and keep each answer as results/boards/<board>.json."""
    context = context_of(lab)

    async def ask(board: Board) -> BoardProbe:
        async with agent_on(board, context) as agent:
            found = await probe_board(lab, board, agent)
        write_note(note_path(lab, board.name), found)
        return found

    return await on_each(boards, ask)


async def probe_board(lab: Lab, board: Board, agent: SshBoardAgent) -> BoardProbe:
    """Ask one. What it cannot tell is a problem in the answer; a dead link is an error."""
    profile = lab.profiles[board.profile]
    facts = await probe(agent)
    problems: list[str] = []
    table, mode = await _modes(lab, board, agent, problems)
    fingerprint = agent.fingerprint.model_copy(
        update={"mode_table": table.digest if table else ""}
    )
    return BoardProbe(
        board=board.name,
        time=datetime.now(UTC),
        profile=board.profile,
        fingerprint=fingerprint,
        facts=facts,
        free_mb=agent.free_mb,
        temperature_c=await agent.temperature_c(),
        table=table,
        mode=mode,
        sudo=await ask_rights(agent, root_commands(profile)),
        suggestions=tuple(
            Suggestion(profile=match.profile.name, why=match.why)
            for match in identify(facts.compatible, facts.model, lab.profiles.values())
        ),
        differences=tuple(differences(profile, table)) if table else (),
        problems=tuple(problems),
    )


async def _modes(
    lab: Lab, board: Board, agent: SshBoardAgent, problems: list[str]
) -> tuple[PowerModeTable | None, PowerModeState | None]:
    controller = controller_of(lab, board, agent)
    table = mode = None
    try:
        table = await controller.modes()
        mode = await controller.current()
    except LinkLostError:
        raise
    except BoardError as error:
        problems.append(str(error))
    return table, mode
