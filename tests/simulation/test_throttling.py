"""A simulated board that throttles: its clocks fall, and a cooling device tells it."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from farm.drivers.telemetry.tegrastats import TegrastatsTelemetry
from farm.model.board import Board, BoardSimulation, Quirk
from farm.simulation.board_commands.board_files import COOLING, STATE_FILE, BoardFiles, LiveState
from farm.simulation.lab import SimulatedLab
from tests.simulation.board_shell import SHIPPED, boot_board
from tests.simulation.lab_client import inventory, output, ssh, until

LOADED = json.dumps(LiveState(12.0, 90.0, 6.0, is_loaded=True)._asdict())


def test_its_clocks_fall_to_half_of_their_caps(
    make_board: Callable[..., Board], tmp_path: Path
) -> None:
    shell = boot_board(make_board("b", "jetson-tx2"), tmp_path / "b", SHIPPED["jetson-tx2"])
    files = BoardFiles(shell.root)
    files.write(STATE_FILE, LOADED)

    def clocks() -> list[float]:
        told = TegrastatsTelemetry().parse(shell.first_line("sudo -n tegrastats"))
        return [told["clock_mhz:cpu0"], told["clock_mhz:GPU"]]

    caps = clocks()
    files.path(COOLING).mkdir(parents=True)
    files.write(COOLING + "cur_state", "0")
    assert clocks() == caps
    files.write(COOLING + "cur_state", "3")
    assert clocks() == [pytest.approx(cap / 2, abs=1) for cap in caps]


async def test_the_quirk_throttles_a_busy_board(
    make_board: Callable[..., Board], tmp_path: Path
) -> None:
    settings = BoardSimulation(quirks=(Quirk.THROTTLES,))
    board = make_board("b", "jetson-tx2", simulation=settings)
    async with SimulatedLab(inventory([board]), SHIPPED, tmp_path / "lab", boot_s=0.1):
        state = f"cat $FARM_ROOT{COOLING}cur_state"
        assert await is_state(board, state, "0")
        async with ssh(board) as connection:
            async with connection.create_process("while :; do :; done") as busy:
                await until(lambda: is_state(board, state, "3"), 60.0)
                busy.kill()
            await until(lambda: is_state(board, state, "0"), 60.0)


async def is_state(board: Board, command: str, wanted: str) -> bool:
    return (await output(board, command)).strip() == wanted
