"""What each fault does to a lab, seen by an SSH client and at a meter; and that it is undone."""

import asyncio
import json
import os
import shutil
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

import aiohttp
import asyncssh
import pytest

from farm.errors import ConfigError
from farm.model.board import Board, MeterSpec
from farm.simulation.disk_faults import lose_writes
from farm.simulation.fault_control import FaultControl, Request, ask_lab
from farm.simulation.fault_kinds import FaultKind
from farm.simulation.faults import Fault
from farm.simulation.lab import SimulatedLab
from tests.simulation.lab_client import PROFILES, inventory, output, ssh, until

BOOT_ID = "cat $FARM_ROOT/proc/sys/kernel/random/boot_id"
LIMIT_S = 40.0


@dataclass
class Rig:
    """A lab of one board with a meter, and its faults."""

    lab: SimulatedLab
    board: Board
    meter: MeterSpec

    async def have(self, kind: FaultKind, **parameters: float) -> None:
        """Begin a fault and wait until it is there."""
        entry = self.lab.faults.add(
            [Fault(board=self.board.name, kind=kind, parameters=parameters)]
        )[0]
        async with asyncio.timeout(LIMIT_S):
            await entry.settled.wait()
        assert entry.state in {"active", "over"}, entry.note

    async def heal(self) -> None:
        await self.lab.faults.heal()

    async def status(self) -> dict[str, object]:
        """What the meter says."""
        url = f"http://{self.meter.host}:{self.meter.port}/rpc/Switch.GetStatus?id=0"
        async with aiohttp.ClientSession() as session, session.get(url) as answer:
            found: dict[str, object] = await answer.json()
            return found

    @property
    def root(self) -> Path:
        return self.lab.boards[self.board.name].root

    def events(self) -> list[str]:
        lines = (self.lab.root / "faults.jsonl").read_text().splitlines()
        return [json.loads(line)["event"] for line in lines]


@pytest.fixture
async def rig(
    make_board: Callable[..., Board], make_meter: Callable[..., MeterSpec], tmp_path: Path
) -> AsyncIterator[Rig]:
    meter = make_meter("plug")
    board = make_board("pc", "zcu104", meter="plug", outlet="plug")
    entries = inventory([board], [meter])
    async with SimulatedLab(entries, PROFILES, tmp_path / "lab", boot_s=0.1) as lab:
        yield Rig(lab, board, meter)


async def test_a_dropped_link_is_reset_and_refuses_until_it_is_healed(rig: Rig) -> None:
    async with ssh(rig.board) as connection:
        await rig.have(FaultKind.LINK_DROP)
        async with asyncio.timeout(LIMIT_S):
            await connection.wait_closed()
        with pytest.raises((OSError, asyncssh.Error)):
            await output(rig.board, "true")
    await rig.heal()
    assert await output(rig.board, "echo back") == "back\n"
    assert rig.events() == ["planned", "begin", "healed"]


async def test_a_half_open_link_keeps_connections_and_what_was_sent(rig: Rig) -> None:
    async with ssh(rig.board) as connection:
        await rig.have(FaultKind.HALF_OPEN)
        waiting = asyncio.create_task(connection.run("echo late", stdin=asyncssh.DEVNULL))
        done, _ = await asyncio.wait({waiting}, timeout=0.3)
        assert not done
        await rig.heal()
        async with asyncio.timeout(LIMIT_S):
            assert (await waiting).stdout == "late\n"


async def test_a_connection_that_is_given_up_on_a_dead_link_is_forgotten(rig: Rig) -> None:
    async with ssh(rig.board) as connection:
        await rig.have(FaultKind.HALF_OPEN)
        connection.abort()
    await rig.heal()
    server = rig.lab.boards["pc"]._server
    await until(lambda: not server.connections)
    assert await output(rig.board, "echo back") == "back\n"


async def test_latency_is_on_the_way_there_and_back(rig: Rig) -> None:
    async with ssh(rig.board) as connection:
        await rig.have(FaultKind.LATENCY, delay_ms=150)
        loop = asyncio.get_running_loop()
        begin_s = loop.time()
        done = await connection.run("echo slow", stdin=asyncssh.DEVNULL)
        assert done.stdout == "slow\n"
        assert loop.time() - begin_s >= 0.3
        await rig.heal()


async def test_a_board_that_hangs_is_well_again_after_the_power_was_away(rig: Rig) -> None:
    before = await output(rig.board, BOOT_ID)
    async with ssh(rig.board) as connection:
        await connection.create_process("while :; do :; done")
        await until(lambda: bool(rig.lab.processes.count), LIMIT_S)
        await rig.have(FaultKind.HANG)
        await until(lambda: _states(rig) == {"T"}, LIMIT_S)
        await rig.lab.power_cut("pc")
        await rig.lab.power_on("pc")
    assert await output(rig.board, BOOT_ID) != before
    assert rig.lab.faults.entries[0].state == "over"


async def test_slow_processes_stand_still_for_a_while_and_go_on_at_the_end(rig: Rig) -> None:
    async with ssh(rig.board) as connection:
        process = await connection.create_process("exec sleep 600")
        await until(lambda: bool(rig.lab.processes.count), LIMIT_S)
        await rig.have(FaultKind.SLOW_BOARD, share=0.2)
        await until(lambda: "T" in _states(rig), LIMIT_S)
        await rig.heal()
        assert "T" not in _states(rig)
        process.kill()


async def test_another_machine_answers_at_its_address(rig: Rig) -> None:
    await rig.have(FaultKind.WRONG_HOST_KEY)
    with pytest.raises(asyncssh.HostKeyNotVerifiable):
        await output(rig.board, "true")
    await rig.heal()
    assert await output(rig.board, "echo known") == "known\n"


async def test_sudo_and_date_are_wrong_and_right_again(rig: Rig) -> None:
    await rig.have(FaultKind.SUDO_GONE)
    await rig.have(FaultKind.CLOCK_JUMP, jump_s=-864_000)
    said = await output(
        rig.board, "sudo -n true 2>&1; echo $(($(/usr/bin/date +%s) - $(date +%s)))"
    )
    assert said.splitlines()[0] == "sudo: a password is required"
    assert abs(int(said.splitlines()[1]) - 864_000) < 60
    await rig.heal()
    assert (await output(rig.board, "sudo -n true 2>&1")) == ""
    assert await output(rig.board, "date -d @0 -u +%Y") == "1970\n"
    skew = await output(rig.board, "echo $(($(/usr/bin/date +%s) - $(date +%s)))")
    assert abs(int(skew)) < 60


async def test_a_payload_is_killed_and_the_kernel_says_so(rig: Rig) -> None:
    await rig.have(FaultKind.PAYLOAD_OOM)
    async with ssh(rig.board) as connection:
        other = await connection.create_process("exec sleep 600")
        async with asyncio.timeout(LIMIT_S):
            done = await connection.run("FARM_EVENTS=x exec sleep 600", stdin=asyncssh.DEVNULL)
        assert done.exit_signal is not None
        assert done.exit_signal[0] == "KILL"
        assert other.exit_status is None
        other.kill()
    assert "Out of memory: Killed process" in await output(rig.board, "dmesg")
    assert rig.lab.faults.entries[0].state == "over"


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")
async def test_a_full_disk_takes_nothing_and_keeps_what_it_has(rig: Rig) -> None:
    await output(rig.board, "echo old > kept; echo old > gone; mkdir folder")
    await rig.have(FaultKind.FULL_DISK)
    await output(rig.board, "echo more > folder/small; rm gone")
    said = await output(rig.board, "cat kept; head -c 300000 /dev/zero 2>&1 > new")
    assert said.startswith("old\n")
    assert "No space left on device" in said
    await rig.heal()
    assert await output(rig.board, "cat kept folder/small") == "old\nmore\n"
    assert not (rig.root / "home" / "gone").exists()
    assert not rig.root.with_name("pc.full").exists()


async def test_power_that_flickers_takes_the_last_writes_and_comes_back(rig: Rig) -> None:
    before = await output(rig.board, f"echo new > home-file; {BOOT_ID}")
    await rig.have(FaultKind.POWER_LOSS, lost_s=3600)
    assert (await _until_boots(rig, before)) != before
    file = rig.root / "home" / "home-file"
    assert not file.exists() or file.stat().st_size < 4


def test_only_young_files_are_spoilt(tmp_path: Path) -> None:
    for name in ("old", "young"):
        (tmp_path / "home" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "home" / name).write_text("0123456789")
    os.utime(tmp_path / "home" / "old", (0, 0))
    (tmp_path / "home" / "link").symlink_to(tmp_path / "home" / "old")
    assert lose_writes(tmp_path, 60, Random(1)) == ["/home/young"]
    assert (tmp_path / "home" / "old").read_text() == "0123456789"
    shutil.rmtree(tmp_path / "home")
    assert lose_writes(tmp_path, 60, Random(1)) == []


async def test_a_reboot_happens_once_and_is_over(rig: Rig) -> None:
    before = await output(rig.board, BOOT_ID)
    await rig.have(FaultKind.REBOOT)
    await until(lambda: rig.lab.faults.entries[0].state == "over", LIMIT_S)
    assert await output(rig.board, BOOT_ID) != before


async def test_a_boot_loop_ends_with_a_board_that_is_on(rig: Rig) -> None:
    boots = rig.root / "var" / "log" / "farm-sim-boots"
    await rig.have(FaultKind.REBOOT_LOOP, every_s=0.5)
    await until(lambda: len(boots.read_text().split()) >= 3, LIMIT_S)
    await rig.heal()
    assert await output(rig.board, "echo on") == "on\n"


async def test_a_meter_is_frozen_then_zero_then_slow_then_gone(rig: Rig) -> None:
    await until(lambda: rig.lab.boards["pc"].power_w > 1, LIMIT_S)
    await rig.have(FaultKind.METER_FROZEN)
    first = await rig.status()
    await asyncio.sleep(0.5)  # five refreshes: nothing to wait for, as nothing must change
    assert await rig.status() == first
    await rig.heal()
    await rig.have(FaultKind.METER_ZERO)
    assert (await rig.status())["apower"] == 0
    await rig.heal()
    await rig.have(FaultKind.METER_SLOW, delay_s=0.5)
    begin_s = asyncio.get_running_loop().time()
    assert (await rig.status())["apower"] != 0
    assert asyncio.get_running_loop().time() - begin_s >= 0.5
    await rig.heal()
    await rig.have(FaultKind.METER_GONE)
    with pytest.raises(aiohttp.ClientConnectorError):
        await rig.status()
    await rig.heal()
    assert (await rig.status())["output"] is True


async def test_throttling_shows_until_it_is_healed_whatever_the_board_does(rig: Rig) -> None:
    state = "cat $FARM_ROOT/sys/class/thermal/cooling_device0/cur_state"
    await rig.have(FaultKind.THROTTLE)
    assert await output(rig.board, state) == "3\n"
    await rig.heal()
    assert await output(rig.board, state) == "0\n"


async def test_another_process_asks_through_the_socket(rig: Rig) -> None:
    async with FaultControl(rig.lab.faults, rig.lab.root):
        folder = rig.lab.root / "control"
        assert folder.stat().st_mode & 0o777 == 0o700
        ask = Request(
            ask="fault",
            faults=(
                Fault(board="pc", kind=FaultKind.LINK_DROP),
                Fault(board="pc", kind=FaultKind.HANG, after_s=1000),
            ),
        )
        rows = await asyncio.to_thread(ask_lab, rig.lab.root, ask)
        assert [row.state for row in rows] == ["active", "planned"]
        real = Request(ask="fault", faults=(Fault(board="pcc", kind=FaultKind.HANG),))
        with pytest.raises(ConfigError, match='did you mean "pc"'):
            await asyncio.to_thread(ask_lab, rig.lab.root, real)
        healed = await asyncio.to_thread(ask_lab, rig.lab.root, Request(ask="heal"))
        assert [row.state for row in healed] == ["healed", "healed"]
        every = await asyncio.to_thread(ask_lab, rig.lab.root, Request(ask="faults"))
        assert len(every) == 2
    assert await output(rig.board, "echo mended") == "mended\n"


async def _until_boots(rig: Rig, before: str) -> str:
    """The boot id when the board has booted again."""

    def is_back() -> bool:
        board = rig.lab.boards["pc"]
        return board.is_on and board.boot_id + "\n" != before

    await until(is_back, LIMIT_S)
    return await output(rig.board, BOOT_ID)


def _states(rig: Rig) -> set[str]:
    """The kernel's letters of what the board's processes do."""
    states = set()
    for pid in list(rig.lab.processes._boards["pc"].busy_ns):
        try:
            text = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            continue
        states.add(text.rpartition(")")[2].split()[0])
    return states
