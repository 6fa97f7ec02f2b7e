"""When a simulated Jetson asks for a reboot, with what words, and what the answers do."""

import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import asyncssh
import pytest

from farm.drivers.power_modes.nvpmodel_output import Meaning, parse_set_output, parse_values
from farm.model.board import Board, BoardSimulation, Quirk
from farm.simulation.lab import SimulatedLab
from tests.simulation.board_shell import SHIPPED, BoardShell, boot_board
from tests.simulation.lab_client import inventory, output, run, ssh, until

RECORDINGS = Path(__file__).parents[1] / "recordings"
BOOT_ID = "cat $FARM_ROOT/proc/sys/kernel/random/boot_id"
REAL_MASK = "sudo -n nvpmodel -q --verbose"

BringUp = Callable[..., AbstractAsyncContextManager[Board]]


@pytest.fixture
def make(make_board: Callable[..., Board], tmp_path: Path) -> Callable[..., BoardShell]:
    """Boot a board of a profile, without a server."""

    def boot(profile: str, *quirks: Quirk) -> BoardShell:
        board = make_board("b", profile, simulation=BoardSimulation(quirks=quirks))
        return boot_board(board, tmp_path / profile, SHIPPED[profile])

    return boot


@pytest.fixture
def up(make_board: Callable[..., Board], tmp_path: Path) -> BringUp:
    """A lab with one board of a profile."""

    @asynccontextmanager
    async def bring_up(profile: str, *quirks: Quirk) -> AsyncIterator[Board]:
        board = make_board("b", profile, simulation=BoardSimulation(quirks=quirks))
        async with SimulatedLab(inventory([board]), SHIPPED, tmp_path / "lab", boot_s=0.1):
            yield board

    return bring_up


def masks(shell: BoardShell) -> dict[str, str]:
    values = parse_values(shell(REAL_MASK))
    return {value.arg: value.real for value in values if value.arg.endswith("_PG_MASK")}


def recorded(name: str) -> str:
    return (RECORDINGS / f"{name}.txt").read_text()


async def reboot_by(board: Board, command: str, answer: str = "") -> str:
    """Run what reboots the board; what it printed. Waits until the board is back."""
    before = await output(board, BOOT_ID)
    async with ssh(board) as connection:
        process = await connection.create_process(f"{command}; exec sleep 1000")
        process.stdin.write(answer)
        process.stdin.write_eof()
        lines = []
        with contextlib.suppress(asyncssh.Error):  # the link falls
            while line := await process.stdout.readline():
                lines.append(str(line))
        await connection.wait_closed()

    async def is_back() -> bool:
        try:
            return await output(board, BOOT_ID) != before
        except (OSError, asyncssh.Error):
            return False

    await until(is_back)
    return "".join(lines)


@pytest.mark.parametrize("answer", ["", None])
def test_thor_asks_as_recorded_and_changes_nothing(
    make: Callable[..., BoardShell], answer: str | None
) -> None:
    thor = make("jetson-thor-t5000")
    done = thor.ask("sudo -n nvpmodel -m 2", answer)
    assert done.stdout == recorded("jetson-agx-thor/nvpmodel/set_no_input")
    assert done.returncode == 255
    assert thor("nvpmodel -q") == "NV Power Mode: 120W\n1\n"
    assert masks(thor) == {"TPC_PG_MASK": "0"}
    assert thor("cat $FARM_ROOT/run/farm-sim/request 2>/dev/null") == ""


def test_orin_asks_as_recorded_and_can_be_declined(make: Callable[..., BoardShell]) -> None:
    orin = make("jetson-agx-orin-64gb")
    done = orin.ask("sudo -n nvpmodel -m 1", "no\n")
    assert done.stdout == recorded("jetson-agx-orin/nvpmodel/set_declined")
    assert orin("nvpmodel -q 2>/dev/null") == "NV Power Mode: MODE_30W\n2\n"
    assert parse_set_output(done.stdout).meaning is Meaning.DECLINED


@pytest.mark.parametrize(
    ("profile", "live", "asking"),
    [
        ("jetson-nano", [1, 0], []),
        ("jetson-tx2", [0, 1, 3], []),
        ("jetson-tx2-nx", [0, 1, 3], []),
        ("jetson-xavier-nx", [0, 4, 8, 2], []),
        ("jetson-agx-xavier", [0, 2, 3, 6, 7], [1]),
        ("jetson-orin-nano-4gb", [1, 2, 0], []),
        ("jetson-orin-nano-8gb", [0], [1]),
        ("jetson-orin-nano-super", [0, 2, 1], [3]),
        ("jetson-orin-nx-16gb", [1, 2], [0, 3]),
        ("jetson-orin-nx-super", [0, 3, 4], [1, 2]),
        ("jetson-agx-orin-32gb", [2], [0, 1, 3]),
        ("jetson-agx-orin-64gb", [2], [0, 1, 3]),
        ("jetson-thor-t5000", [0, 1], [2, 3]),
    ],
)
def test_which_modes_ask(
    make: Callable[..., BoardShell], profile: str, live: list[int], asking: list[int]
) -> None:
    shell = make(profile)
    for mode_id in [*asking, *live]:
        done = shell.ask(f"sudo -n nvpmodel -m {mode_id}", "")
        outcome = parse_set_output(done.stdout).outcome
        assert outcome == ("needs_reboot" if mode_id in asking else "done"), mode_id
        now = shell("nvpmodel -q 2>/dev/null").split()[-1]
        assert (now == str(mode_id)) == (mode_id not in asking)


async def test_yes_reboots_into_the_mode(up: BringUp) -> None:
    async with up("jetson-agx-orin-64gb") as board:
        done = await run(board, "sudo -n nvpmodel -m 0")
        assert parse_set_output(str(done.stdout) + str(done.stderr)).meaning is Meaning.BAD_INPUT
        printed = await reboot_by(board, "sudo -n nvpmodel -m 0", "YES\n")
        wanted = recorded("jetson-agx-orin/nvpmodel/set_accepted")
        assert printed == wanted.replace("yes\n", "")  # what the terminal showed of the answer
        assert (await output(board, "nvpmodel -q")).startswith("NV Power Mode: MAXN\n0\n")
        assert await output(board, "cat $FARM_ROOT/sys/devices/system/cpu/online") == "0-11\n"
        masks = "cat $FARM_ROOT/sys/devices/platform/gpu.0/tpc_pg_mask"
        assert await output(board, masks) == "0\n"


async def test_status_file_and_a_reboot_set_the_mode_without_a_question(
    up: BringUp,
) -> None:
    async with up("jetson-orin-nx-16gb") as board:
        status = "$FARM_ROOT/var/lib/nvpmodel/status"
        assert await output(board, f"cat {status}") == "pmode:0002 fmode:fan_mode_quiet\n"
        await output(board, f"echo pmode:0003 > {status}")
        await reboot_by(board, "sudo -n reboot")
        printed = await output(board, REAL_MASK)
        assert "NV Power Mode: 25W\n3\n" in printed
        values = {value.arg: value for value in parse_values(printed)}
        assert values["TPC_PG_MASK"].real == values["TPC_PG_MASK"].conf == "240"
        assert await output(board, "cat $FARM_ROOT/sys/devices/system/cpu/online") == "0-7\n"


async def test_sticky_mask_asks_until_nvpmodel_itself_reboots(up: BringUp) -> None:
    async with up("jetson-orin-nano-super", Quirk.STICKY_MASK) as board:
        for _ in range(2):
            seen = parse_values(await output(board, REAL_MASK))
            wrong = {v.arg: (v.real, v.conf) for v in seen if v.arg.endswith("_PG_MASK")}
            assert wrong == {"FBP_PG_MASK": ("0", "2"), "TPC_PG_MASK": ("0", "240")}
            done = await run(board, "sudo -n nvpmodel -m 1")  # the present mode
            assert parse_set_output(str(done.stdout)).outcome == "needs_reboot"
            await reboot_by(board, "sudo -n reboot")
        await reboot_by(board, "sudo -n nvpmodel -m 1", "YES\n")
        values = parse_values(await output(board, REAL_MASK))
        assert all(v.real == v.conf for v in values if v.arg.endswith("_PG_MASK"))
        assert (await run(board, "sudo -n nvpmodel -m 1")).stdout == ""


async def test_status_lost_at_reboot(up: BringUp) -> None:
    async with up("jetson-nano", Quirk.STATUS_LOST_AT_REBOOT) as board:
        await output(board, "sudo -n nvpmodel -m 1")
        assert (await output(board, "nvpmodel -q")).split()[-1] == "1"
        await reboot_by(board, "sudo -n reboot")
        assert (await output(board, "nvpmodel -q")).split()[-1] == "0"
