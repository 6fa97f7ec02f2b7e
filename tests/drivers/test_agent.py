import asyncio
import os
import signal
import time
from pathlib import Path

import pytest

from farm.drivers.agent import open_agent
from farm.errors import AgentError, CommandTimeoutError, LinkLostError, TransferError
from farm.testing.local_transport import LocalTransport
from tests.boardside.local_board import Bench, bench, job, local_board, until


def write_root(root: Path, files: dict[str, str]) -> str:
    """Files of a containerised board."""
    for path, text in files.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text.encode())
    return str(root)


NANO = {
    "proc/sys/kernel/random/boot_id": "11111111-2222-3333-4444-555555555555\n",
    "proc/device-tree/model": "NVIDIA Jetson Nano Developer Kit\0",
    "proc/meminfo": "MemTotal:        4059520 kB\nMemFree: 1 kB\n",
    "sys/devices/system/cpu/present": "0-3\n",
    "etc/nv_tegra_release": (
        "# R32 (release), REVISION: 7.2, GCID: 30192233, BOARD: t210ref, EABI: aarch64, DATE: x\n"
    ),
    "etc/farm-simulated": "",
    "sys/class/thermal/thermal_zone0/type": "AO-therm\n",
    "sys/class/thermal/thermal_zone0/temp": "41500\n",
    "sys/class/thermal/thermal_zone1/type": "PMIC-Die\n",
    "sys/class/thermal/thermal_zone1/temp": "100000\n",
    "sys/class/thermal/thermal_zone2/type": "GPU-therm\n",
    "sys/class/thermal/thermal_zone2/temp": "-256000\n",
    "sys/class/thermal/thermal_zone3/type": "CPU-therm\n",
    "sys/class/thermal/thermal_zone3/temp": "44250\n",
    "sys/class/thermal/thermal_zone4/type": "no temp: unreadable\n",
}


@pytest.mark.parametrize("way", ["inventory", "environment"])
async def test_facts_are_read_under_the_root_prefix(tmp_path: Path, way: str) -> None:
    root = write_root(tmp_path / "root", NANO)
    fields = {"root_prefix": root} if way == "inventory" else {}
    environment = {"FARM_ROOT": root} if way == "environment" else {}
    async with bench(tmp_path, environment, **fields) as board:
        seen = board.agent.fingerprint
        assert seen.boot_id == "11111111-2222-3333-4444-555555555555"
        assert seen.model == "NVIDIA Jetson Nano Developer Kit"
        assert (seen.l4t, seen.cpu_count, seen.memory_mb) == ("R32.7.2", 4, 3964)
        assert seen.is_simulated
        assert (seen.machine, seen.kernel) == (os.uname().machine, os.uname().release)
        assert await board.agent.temperature_c() == 44.25
        assert await board.agent.read_text("/etc/farm-simulated") == ""
        assert await board.agent.read_text("/etc/passwd") is None
        exited = await board.run_script("a1", "echo $FARM_ROOT")
        assert (await board.files_of(exited))["stdout.log"] == f"{root}\n".encode()


async def test_this_machine_is_not_simulated(board: Bench) -> None:
    assert not board.agent.fingerprint.is_simulated
    assert board.agent.fingerprint.cpu_count >= 1
    assert board.agent.free_mb > 0
    with pytest.raises(AgentError, match="not an absolute path"):
        await board.agent.read_text("etc/passwd")


async def test_command_result(board: Bench) -> None:
    result = await board.agent.run(["sh", "-c", "echo out; echo err >&2; exit 3"])
    assert (result.exit_status, result.stdout, result.stderr) == (3, b"out\n", b"err\n")
    assert (await board.agent.run(["sh", "-c", "kill -9 $$"])).exit_status == -9
    absent = await board.agent.run(["no-such-program"])
    assert absent.exit_status == 127
    assert "No such file" in absent.error_text
    assert (await board.agent.run(["cat"])).stdout == b""  # stdin is closed
    given = bytes(range(256)) * 16
    assert (await board.agent.run(["cat"], stdin=given)).stdout == given
    assert (await board.agent.run(["true"], stdin=given)).exit_status == 0  # it never reads
    with pytest.raises(AgentError, match="longer than 4096"):
        await board.agent.run(["cat"], stdin=given + b"x")


async def test_command_with_terminal(board: Bench) -> None:
    script = "test -t 1 && : >/dev/tty && echo yes; read x || echo closed"
    assert (await board.agent.run(["sh", "-c", script], needs_tty=True)).text.split() == [
        "yes",
        "closed",
    ]
    assert (await board.agent.run(["test", "-t", "1"])).exit_status == 1


async def test_command_that_asks_runs_into_its_limit_and_is_told_what_it_said(
    board: Bench,
) -> None:
    argv = ["sh", "-c", "echo 'Reboot now? (YES/NO)'; sleep 1000"]
    with pytest.raises(CommandTimeoutError, match="Reboot now"):
        await board.agent.run(argv, timeout_s=0.3)
    assert (await board.agent.run(["true"])).exit_status == 0


async def test_background_child_does_not_hold_a_command_open(board: Bench) -> None:
    result = await board.agent.run(["sh", "-c", "sleep 1000 & echo $!"], timeout_s=30)
    os.kill(int(result.stdout), signal.SIGKILL)
    assert result.exit_status == 0


async def test_long_output_is_bounded(board: Bench) -> None:
    result = await board.agent.run(["sh", "-c", "yes | head -c 5000000"])
    assert (result.exit_status, len(result.stdout)) == (0, 1024 * 1024)


async def test_requests_overtake_a_slow_command(board: Bench) -> None:
    slow = asyncio.create_task(board.agent.run(["sh", "-c", "while ! test -e ~/go; do :; done"]))
    for _ in range(10):
        await board.agent.exchange_clock()
    assert not slow.done()
    (board.transport.home / "go").touch()
    assert (await slow).exit_status == 0


async def test_command_is_not_ended_by_a_cut_link(board: Bench) -> None:
    # A mode change that is cut in the middle leaves a board in no mode at all.
    script = "echo >~/begun; while ! test -e ~/go; do sleep 0.02; done; echo >~/done"
    running = asyncio.create_task(board.agent.run(["sh", "-c", script]))
    await until((board.transport.home / "begun").exists, "the command runs")
    board.transport.cut()
    with pytest.raises(LinkLostError):
        await running
    (board.transport.home / "go").touch()
    await until((board.transport.home / "done").exists, "the command ends by itself")


async def test_root_needs_no_sudo(board: Bench) -> None:
    if os.geteuid() != 0:
        pytest.skip("tests do not run as root")
    result = await board.agent.run(["id", "-u"], needs_root=True)
    assert (result.text, board.agent.is_root) == ("0\n", True)


async def test_clock_exchange_is_ordered(board: Bench) -> None:
    first, second = await board.agent.exchange_clock(), await board.agent.exchange_clock()
    assert first.host_sent_s <= first.host_received_s <= second.host_sent_s
    assert first.board_s <= second.board_s <= time.clock_gettime(time.CLOCK_BOOTTIME)


async def test_agent_is_sent_once(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    async with LocalTransport(home) as transport:
        for _ in range(2):
            agent = await open_agent(transport, local_board())
            await agent.close()
        files = list((home / ".farm/agent").glob("*.pyz"))
        assert len(files) == 1
        begun = files[0].stat().st_mtime_ns
        files[0].write_bytes(b"damaged")
        agent = await open_agent(transport, local_board())
        await agent.close()
        assert len(files[0].read_bytes()) > 10000
        assert files[0].stat().st_mtime_ns > begun


async def open_refused(folder: Path, **fields: object) -> str:
    async with LocalTransport(folder) as transport:
        with pytest.raises((AgentError, TransferError)) as caught:
            await open_agent(transport, local_board(**fields))
    return str(caught.value)


async def test_board_without_python_is_told(tmp_path: Path) -> None:
    said = await open_refused(tmp_path, python="python3.no")
    assert said.startswith("b1: start the agent: no Python 3 on the board: python3.no")
    assert "`python:` in the inventory" in said


async def test_python_that_crashes_is_told(tmp_path: Path) -> None:
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho 'Illegal instruction' >&2; exit 132\n")
    broken.chmod(0o755)
    assert "status 132: Illegal instruction" in await open_refused(tmp_path, python=str(broken))


async def test_old_python_is_told(tmp_path: Path) -> None:
    old = tmp_path / "python2"
    old.write_text(
        "#!/usr/bin/env python3\nimport sys\n"
        "code = sys.argv[sys.argv.index('-c') + 1]\nsys.version_info = (2, 7)\n"
        "exec(compile(code, 'bootstrap', 'exec'))\n"
    )
    old.chmod(0o755)
    said = await open_refused(tmp_path, python=str(old))
    assert "is Python 2.7, older than 3.5" in said


async def test_work_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    said = await open_refused(tmp_path, work_dir="~/file/farm")
    assert "the work folder ~/file/farm cannot be used" in said
    assert "`work_dir:` in the inventory" in said


async def test_silent_board_runs_into_the_limit(tmp_path: Path) -> None:
    silent = tmp_path / "python"
    silent.write_text("#!/bin/sh\nexec sleep 1000\n")
    silent.chmod(0o755)
    async with LocalTransport(tmp_path) as transport:
        with pytest.raises(CommandTimeoutError, match="no answer within"):
            await open_agent(transport, local_board(python=str(silent)), timeout_s=0.2)


async def test_clean_frees_the_cache_but_spares_what_runs(board: Bench) -> None:
    kept = await board.push({"run.sh": "while ! test -e go; do sleep 0.02; done; cat run.sh"})
    thrown = await board.push({"run.sh": "exit 0", "data": "x" * 100_000})
    await board.agent.start(job("a1", kept))
    assert await board.agent.clean() >= 0
    assert await board.agent.ensure_payload(thrown) is True
    board.path("a1", "work/go").touch()
    assert (await board.exit_of("a1")).exit_status == 0
