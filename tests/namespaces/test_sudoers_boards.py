"""The generated sudoers file under a real sudo: what it lists runs, near misses do not."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from farm.drivers.agent import SshBoardAgent, open_agent
from farm.drivers.power_modes.nvpmodel import NvpmodelPowerController
from farm.drivers.transports.asyncssh import AsyncsshTransport
from farm.execution.kept_restore import run_steps
from farm.interfaces.transport import CommandResult, Transport
from farm.model.profile import BoardProfile
from farm.pipeline.boards.needs import RootCommand, root_commands
from farm.pipeline.boards.rights import ask_rights
from farm.pipeline.boards.sudoers import check_sudoers, sudoers_text
from farm.pipeline.lab import Lab, open_lab
from tests.namespaces.board_rig import transport_to
from tests.namespaces.faulty_boards import move_tools, program
from tests.servers.namespace_board import USER
from tests.servers.namespaces import BoardOptions, NamespaceBoard

MakeBoard = Callable[[BoardOptions], NamespaceBoard]
LIMIT_S = 30.0
PROFILES = ("jetson-tx2", "raspberry-pi-4", "nvidia-gpu")
"""One for each power controller that sets something."""
STAND_INS = (
    "/usr/sbin/nvpmodel",
    "/usr/bin/jetson_clocks",
    "/usr/bin/nvidia-smi",
    "/usr/sbin/reboot",
    "/usr/bin/systemctl",
    "/usr/bin/journalctl",
    "/usr/bin/dmesg",
)
"""Programs that this machine has not, or that would do harm: they tell who ran them."""
STAND_IN = '#!/bin/sh\necho "ran as $(id -u): $*"\n'
FOLDERS = (
    *(f"/sys/devices/system/cpu/cpufreq/policy{number}" for number in (1, 11)),
    *(f"/sys/devices/system/cpu/cpu{number}" for number in (1, 11)),
    "/sys/devices/pwm-fan",
    "/sys/devices/platform/pwm-fan/hwmon/hwmon1",
    "/sys/fs/pstore",
)
PSTORE = ("console-ramoops-0", "console-ramoops")
NEAR_MISSES = (
    ("nvpmodel", "-m", "100"),
    ("nvpmodel", "-m", "0 -f /tmp/own"),  # one argument, whose blank a `*` would let through
    ("nvpmodel", "-f", "/tmp/own", "-m", "0"),
    ("nvpmodel", "-m", "a"),
    ("jetson_clocks", "--fan"),
    ("jetson_clocks", "--store", "/etc/passwd"),
    ("jetson_clocks", "--restore", "/tmp/own"),
    ("tee", "/sys/devices/system/cpu/cpufreq/policy1/../../../../../etc/passwd"),
    ("tee", "-a", "/run/farm-cpufreq.conf"),
    ("tee", "/etc/sudoers.d/more"),
    ("nvidia-smi", "-lgc", "300"),
    ("nvidia-smi", "-pm", "2"),
    ("reboot", "-f"),
    ("systemctl", "stop", "ssh"),
    ("dmesg", "--clear"),
    ("cat", "/etc/shadow"),
    ("sh", "-c", "id"),
)


def make_lab(folder: Path) -> Lab:
    boards = {
        f"board-{number}": {"profile": profile, "host": f"192.0.2.{number}", "user": USER}
        for number, profile in enumerate(PROFILES, start=1)
    }
    (folder / "inventory.yaml").write_text(json.dumps({"boards": boards}))
    return open_lab(folder)


def sudoers_of(lab: Lab) -> str:
    text = sudoers_text(
        lab, lab.inventory.boards, with_reboot=True, with_fan=True, with_kernel_log=True
    )
    assert check_sudoers(text), "visudo is not there"
    return text


def needed(lab: Lab) -> list[RootCommand]:
    found: dict[RootCommand, None] = {}
    for profile in PROFILES:
        of_profile = root_commands(
            lab.profiles[profile], with_reboot=True, with_fan=True, with_kernel_log=True
        )
        found.update(dict.fromkeys(of_profile))
    return list(found)


def equip(board: NamespaceBoard) -> None:
    """Stand-ins where boards have the tools, and the files that are written and read."""
    board.console(["sh", "-ec", "cd /usr/local/bin; rm nvpmodel jetson_clocks reboot"])
    for path in STAND_INS:
        program(path, STAND_IN)(board)
    make = [f"mkdir -p {' '.join(FOLDERS)}"]
    make += [f"echo kept > /sys/fs/pstore/{name}" for name in PSTORE]
    board.console(["sh", "-ec", "\n".join(make)])


@asynccontextmanager
async def connected(board: NamespaceBoard) -> AsyncIterator[AsyncsshTransport]:
    transport = transport_to(board)
    try:
        yield await transport.connect()
    finally:
        await transport.close()


async def as_root(transport: Transport, *argv: str) -> CommandResult:
    return await transport.run(["sudo", "-n", "--", *argv], stdin=b"1\n", timeout_s=LIMIT_S)


@pytest.mark.parametrize("lines", ["", "Defaults requiretty\nDefaults use_pty\n"])
async def test_all_that_is_needed_runs_and_nothing_beside_it(
    make_board: MakeBoard, tmp_path: Path, lines: str
) -> None:
    lab = make_lab(tmp_path)
    board = make_board(BoardOptions(sudoers=lines + sudoers_of(lab)))
    equip(board)
    async with connected(board) as transport:
        await check_all(lab, board, transport)
    assert not board.exists("/etc/sudoers.d/more")


async def check_all(lab: Lab, board: NamespaceBoard, transport: Transport) -> None:
    for command in needed(lab):
        done = await as_root(transport, *command.sample)
        assert (done.exit_status, done.error_text) == (0, ""), command.text
        if command.path.endswith("tee"):
            assert board.read(command.sample[1]) == b"1\n"
        else:
            ran = f"ran as 0: {' '.join(command.sample[1:])}\n"
            assert done.text == ("kept\n" if command.path.endswith("cat") else ran)
    near = [*NEAR_MISSES, *((*c.sample, "--more") for c in needed(lab))]
    for argv in near:
        done = await as_root(transport, *argv)
        assert done.exit_status == 1, argv
        assert "a password is required" in done.error_text, argv
        assert done.text == "", argv


async def test_a_controller_does_all_its_work_with_the_file_alone(
    make_board: MakeBoard, tmp_path: Path
) -> None:
    lab = make_lab(tmp_path)
    tx2 = lab.inventory.boards[0]
    text = sudoers_text(lab, [tx2])
    board = make_board(BoardOptions(sudoers=text, disk="256m"))
    move_tools(board)
    async with connected(board) as transport:
        agent = await open_agent(transport, board.inventory_entry())
        try:
            await check_work(lab.profiles["jetson-tx2"], agent)
        finally:
            await agent.close()


async def check_work(profile: BoardProfile, agent: SshBoardAgent) -> None:
    rights = await ask_rights(agent, root_commands(profile))
    assert (rights.state, rights.complaint) == ("free", "")
    controller = NvpmodelPowerController(agent, profile)
    await controller.modes()
    before = await controller.current()
    steps = await controller.restore_steps(before)
    await controller.apply("MAXQ", "locked")
    assert await run_steps(agent, steps) == ""  # as the board does it by itself
    await controller.apply("MAXQ", "locked")
    now = await controller.current()
    assert (now.name, now.is_locked) == ("MAXQ", True)
    await controller.restore(before)
    again = await controller.current()
    assert (again.name, again.is_locked) == (before.name, before.is_locked)
    more = root_commands(profile, with_reboot=True, with_fan=True, with_kernel_log=True)
    assert set(more) > set(root_commands(profile))
    told = await ask_rights(agent, more)
    missing = {one.command for one in told.commands if one.state != "free"}
    assert missing == {one.text for one in more} - {one.text for one in root_commands(profile)}
