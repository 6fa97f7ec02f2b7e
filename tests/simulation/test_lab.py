"""A lab over a real SSH client: sessions, reboots, power cuts, and what must not be left."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import asyncssh
import pytest

from farm.errors import ConfigError, FarmError, RunHeldError
from farm.model.board import Board
from farm.simulation.lab import SimulatedLab
from tests.simulation.lab_client import (
    PROFILES,
    inventory,
    marked_processes,
    output,
    run,
    ssh,
    until,
)

BOOT_ID = "cat $FARM_ROOT/proc/sys/kernel/random/boot_id"


@pytest.fixture
async def board(
    make_board: Callable[..., Board], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Board]:
    """One TX2 in a lab that is up."""
    monkeypatch.setenv("FARM_TEST_SECRET", "not for boards")
    entry = make_board("tx2-01")
    async with SimulatedLab(inventory([entry]), PROFILES, tmp_path / "lab", boot_s=0.1):
        yield entry


@pytest.fixture
def make_lab(tmp_path: Path) -> Callable[[list[Board]], SimulatedLab]:
    def make(boards: list[Board]) -> SimulatedLab:
        return SimulatedLab(inventory(boards), PROFILES, tmp_path / "lab", boot_s=0.1)

    return make


async def test_command_gives_output_errors_and_status(board: Board) -> None:
    done = await run(board, "echo out; echo err >&2; exit 3")
    assert (done.stdout, done.stderr, done.exit_status) == ("out\n", "err\n", 3)
    assert len(await output(board, "head -c 3000000 /dev/zero | tr '\\0' x")) == 3_000_000
    killed = await run(board, "kill -9 $$")
    assert killed.exit_status != 0
    assert killed.exit_signal is not None
    assert killed.exit_signal[0] == "KILL"


async def test_stdin_reaches_the_command(board: Board) -> None:
    async with ssh(board) as connection:
        done = await connection.run("wc -c", input="x" * 1_000_000)
    assert str(done.stdout).strip() == "1000000"


async def test_environment_is_the_boards_own(board: Board, tmp_path: Path) -> None:
    root = tmp_path / "lab" / "boards" / "tx2-01"
    printed = await output(board, "env; pwd")
    values = dict(line.split("=", 1) for line in printed.splitlines() if "=" in line)
    assert values["HOME"] == f"{root}/home" == printed.splitlines()[-1]
    assert values["PATH"] == f"{root}/bin:/usr/bin:/bin"
    assert values["FARM_ROOT"] == str(root)
    assert values["FARM_SIM_BOARD"] == "tx2-01"
    assert "FARM_TEST_SECRET" not in values


async def test_sftp_shares_the_home_of_the_commands(board: Board) -> None:
    async with ssh(board) as connection, connection.start_sftp_client() as sftp:
        async with sftp.open("here", "w") as file:
            await file.write("text")
        assert await output(board, "cat ~/here") == "text"


async def test_other_keys_and_users_are_refused(board: Board) -> None:
    stranger = asyncssh.generate_private_key("ssh-ed25519")
    owner = asyncssh.read_private_key(str(board.identity_file))
    for user, key in [(board.user, stranger), ("root", owner)]:
        with pytest.raises(asyncssh.PermissionDenied):
            await asyncssh.connect(
                board.host,
                board.port,
                username=user,
                client_keys=[key],
                known_hosts=str(board.known_hosts),
                config=None,
                agent_path=None,
            )


async def test_closed_channel_ends_the_foreground_and_spares_the_detached(
    board: Board, tmp_path: Path
) -> None:
    home = tmp_path / "lab" / "boards" / "tx2-01" / "home"
    script = (
        "setsid sh -c 'echo $$ > detached; exec sleep 1000' </dev/null >/dev/null 2>&1 & "
        "echo $$ > foreground; exec sleep 1000"
    )
    async with ssh(board) as connection:
        await connection.create_process(script)
        await until(lambda: (home / "detached").exists() and (home / "foreground").exists())
        await until(lambda: bool((home / "detached").read_text().strip()))
    foreground, detached = (int((home / name).read_text()) for name in ("foreground", "detached"))
    await until(lambda: foreground not in marked_processes(tmp_path))
    assert detached in marked_processes(tmp_path)


async def test_signals_reach_the_command(board: Board) -> None:
    async with ssh(board) as connection:
        process = await connection.create_process(
            "trap 'echo int; exit 7' INT; echo up; while :; do sleep 0.05; done"
        )
        assert await process.stdout.readline() == "up\n"
        process.send_signal("INT")
        assert await process.stdout.read() == "int\n"
        await process.wait_closed()
        assert process.exit_status == 7


async def test_reboot_from_the_board(board: Board, tmp_path: Path) -> None:
    before = await output(board, BOOT_ID)
    await output(board, "sudo -n nvpmodel -m 1; sudo -n jetson_clocks; echo kept > ~/file")
    await output(board, "setsid sleep 1000 </dev/null >/dev/null 2>&1 &")
    await until(lambda: bool(marked_processes(tmp_path)))
    async with ssh(board) as connection:
        await connection.create_process("sudo -n reboot; exec sleep 1000")
        await connection.wait_closed()

    async def is_back() -> bool:
        try:
            return await output(board, BOOT_ID) != before
        except (OSError, asyncssh.Error):
            return False

    await until(is_back)
    assert marked_processes(tmp_path) == []
    assert await output(board, "cat ~/file") == "kept\n"
    assert (await output(board, "nvpmodel -q")).splitlines()[0] == "NV Power Mode: MAXQ"
    shown = await output(board, "sudo -n jetson_clocks --show")
    assert "cpu0: Online=1 Governor=schedutil MinFreq=345600 MaxFreq=1267200" in shown


async def test_power_cut_refuses_until_power_is_back(
    make_board: Callable[..., Board], make_lab: Callable[..., SimulatedLab], tmp_path: Path
) -> None:
    entry = make_board("tx2-01")
    async with make_lab([entry]) as lab:
        before = await output(entry, BOOT_ID)
        async with ssh(entry) as connection:
            running = await connection.create_process("sleep 1000")
            await until(lambda: bool(marked_processes(tmp_path)))
            await lab.power_cut("tx2-01")
            await running.wait_closed()
            assert running.exit_status is None
        assert marked_processes(tmp_path) == []
        with pytest.raises(ConnectionRefusedError):
            await run(entry, "true")
        await lab.power_on("tx2-01")
        assert await output(entry, BOOT_ID) != before
        await lab.reboot("tx2-01")
        assert await output(entry, "echo again") == "again\n"


async def test_host_key_and_files_outlive_the_lab(
    make_board: Callable[..., Board], make_lab: Callable[..., SimulatedLab]
) -> None:
    entry = make_board("tx2-01")
    assert entry.known_hosts is not None
    entry.known_hosts.parent.mkdir()
    entry.known_hosts.write_text("elsewhere ssh-ed25519 AAAA\n")
    async with make_lab([entry]):
        first = entry.known_hosts.read_text()
        await output(entry, "echo 1 > ~/file; sudo -n nvpmodel -m 0")
    async with make_lab([entry]):
        assert await output(entry, "cat ~/file; nvpmodel -q 2>/dev/null") == (
            "1\nNV Power Mode: MAXN\n0\n"
        )
    assert entry.known_hosts.read_text() == first
    assert first.splitlines()[0] == "elsewhere ssh-ed25519 AAAA"
    assert entry.identity_file is not None
    assert entry.identity_file.stat().st_mode & 0o777 == 0o600


async def test_stop_leaves_no_process(
    make_board: Callable[..., Board], make_lab: Callable[..., SimulatedLab], tmp_path: Path
) -> None:
    entry = make_board("tx2-01")
    async with make_lab([entry]):
        await output(entry, "setsid sleep 1000 </dev/null >/dev/null 2>&1 &")
        async with ssh(entry) as connection:
            await connection.create_process("trap '' HUP TERM; sleep 1000; sleep 1000")
            await until(lambda: len(marked_processes(tmp_path)) >= 3)
    assert marked_processes(tmp_path) == []


async def test_start_ends_what_a_killed_lab_left(
    make_board: Callable[..., Board], make_lab: Callable[..., SimulatedLab], tmp_path: Path
) -> None:
    root = tmp_path / "lab" / "boards" / "tx2-01"
    left = await asyncio.create_subprocess_exec(
        "sleep", "1000", env={"FARM_ROOT": str(root), "FARM_SIM_BOARD": "tx2-01"}
    )
    other = await asyncio.create_subprocess_exec(
        "sleep", "1000", env={"FARM_ROOT": str(root), "FARM_SIM_BOARD": "tx2-02"}
    )
    async with make_lab([make_board("tx2-01")]):
        assert await left.wait() == -9
        assert other.returncode is None
    other.kill()
    await other.wait()


async def test_fifty_boards_in_one_process(
    make_board: Callable[..., Board], make_lab: Callable[..., SimulatedLab]
) -> None:
    profiles = list(PROFILES)
    boards = [make_board(f"b{number:02}", profiles[number % 3]) for number in range(50)]
    async with make_lab(boards):
        gate = asyncio.Semaphore(10)

        async def ask(entry: Board) -> str:
            async with gate:
                return await output(entry, "echo $FARM_SIM_BOARD; " + BOOT_ID)

        answers = await asyncio.gather(*(ask(entry) for entry in boards))
    assert [answer.split()[0] for answer in answers] == [entry.name for entry in boards]
    assert len({answer.split()[1] for answer in answers}) == 50


async def test_busy_cores_heat_the_board_and_cost_power(
    make_board: Callable[..., Board], make_lab: Callable[..., SimulatedLab], tmp_path: Path
) -> None:
    entry = make_board("zcu", "zcu104")
    state = tmp_path / "lab/boards/zcu/run/farm-sim/state.json"

    def shown() -> dict[str, float]:
        found: dict[str, float] = json.loads(state.read_text() or "{}") if state.exists() else {}
        return found

    async with make_lab([entry]) as lab:
        await until(lambda: 19.0 < shown().get("power_w", 0) < 20.1)
        await output(entry, "setsid sh -c 'while :; do :; done' </dev/null >/dev/null 2>&1 &")
        await until(lambda: shown().get("busy_cores", 0) > 0.2)
        await until(lambda: lab.boards["zcu"].power_w > 20.0)
        zone = tmp_path / "lab/boards/zcu/sys/class/thermal/thermal_zone0/temp"
        assert 25_000 <= int(zone.read_text()) < 60_000


async def test_address_in_use_is_a_clear_error(
    make_board: Callable[..., Board], make_lab: Callable[..., SimulatedLab], tmp_path: Path
) -> None:
    entry = make_board("tx2-01")
    async with make_lab([entry]):
        other = SimulatedLab(inventory([entry]), PROFILES, tmp_path / "other")
        with pytest.raises(
            FarmError, match=r"tx2-01: cannot listen on 127\.\d.*: Address already in use\. Is"
        ):
            await other.start()
        with pytest.raises(RunHeldError, match="another simulated lab is up"):
            await make_lab([make_board("tx2-02")]).start()
        assert await output(entry, "echo up") == "up\n"


async def test_start_with_nothing_simulated(tmp_path: Path) -> None:
    async with SimulatedLab(inventory([]), {}, tmp_path / "lab") as lab:
        assert lab.boards == {}


def test_wrong_entries_are_refused(make_board: Callable[..., Board], tmp_path: Path) -> None:
    def check(entry: Board) -> None:
        SimulatedLab(inventory([entry]), profiles, tmp_path)

    wrong_conf = PROFILES["jetson-tx2"].simulation
    assert wrong_conf is not None
    odd = wrong_conf.model_copy(update={"nvpmodel_conf": "xavier"})
    profiles = {**PROFILES, "odd": PROFILES["jetson-tx2"].model_copy(update={"simulation": odd})}
    with pytest.raises(ConfigError, match=r"loopback address.*192\.168\.1\.20"):
        check(make_board("b", host="192.168.1.20", port=22))
    with pytest.raises(ConfigError, match=r"loopback address.*example\.org"):
        check(make_board("b", host="example.org", port=22))
    with pytest.raises(ConfigError, match="'none' has no simulation section"):
        check(make_board("b", "none"))
    with pytest.raises(
        ConfigError, match=r"no simulated Jetson 'xavier'; there are agx-orin-32gb, .*, tx2, "
    ):
        check(make_board("b", "odd"))
    # They would write this machine's /sys, or ask its own graphics card.
    for tool in ("cpufreq", "nvidia-smi"):
        foreign = PROFILES["jetson-tx2"].model_copy(update={"power_controller": tool})
        profiles["foreign"] = foreign
        with pytest.raises(ConfigError, match=f"sets power modes by {tool}.*no simulation"):
            check(make_board("b", "foreign"))


async def test_unusable_client_key_is_a_clear_error(
    make_board: Callable[..., Board], make_lab: Callable[..., SimulatedLab]
) -> None:
    entry = make_board("tx2-01")
    assert entry.identity_file is not None
    entry.identity_file.parent.mkdir()
    entry.identity_file.write_text("no key")
    with pytest.raises(ConfigError, match="not a key that a simulated lab can use"):
        await make_lab([entry]).start()
    assert [path.name for path in entry.identity_file.parent.iterdir()] == ["client"]
