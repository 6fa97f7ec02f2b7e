"""The boards do what boards do; seen with OpenSSH's client, not with ours."""

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.servers.namespace_board import greeting
from tests.servers.namespaces import STATE, BoardLab, BoardOptions, NamespaceBoard

MakeBoard = Callable[[BoardOptions], NamespaceBoard]


def ssh(board: NamespaceBoard, script: str) -> subprocess.CompletedProcess[str]:
    settings = [f"UserKnownHostsFile={board.known_hosts}", "BatchMode=yes", "ConnectTimeout=3"]
    options = [part for setting in settings for part in ("-o", setting)]
    login = ["-F", "/dev/null", "-i", str(board.identity_file), f"jet@{board.address}"]
    return subprocess.run(
        ["ssh", *options, *login, script],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )


def wait_for(what: str, is_so: Callable[[], bool], limit_s: float = 20.0) -> None:
    end = time.monotonic() + limit_s
    while not is_so():
        assert time.monotonic() < end, f"waited in vain: {what}"
        threading.Event().wait(0.05)


def test_each_board_is_a_machine_of_its_own(lab: BoardLab) -> None:
    with lab.host_network():
        boards = lab.up(2)
        told = [
            ssh(board, "hostname; cat /proc/sys/kernel/random/boot_id; ps ax") for board in boards
        ]
    boot_ids = [board.boot_id for board in boards]
    lab.down(boards)
    for board, boot_id, done in zip(boards, boot_ids, told, strict=True):
        assert done.stdout.split()[:2] == [board.name, boot_id]
        assert len(done.stdout.splitlines()) < 15  # its own processes, not this machine's
    assert boot_ids[0] != boot_ids[1]


def test_nobody_outside_reaches_a_board(lab: BoardLab) -> None:
    boards = lab.up(1)
    assert greeting(boards[0].address) is None
    with lab.host_network():
        assert greeting(boards[0].address) is not None
    lab.down(boards)


def test_a_reboot_asked_for_on_the_board(board: NamespaceBoard) -> None:
    before = board.boot_id
    assert ssh(board, "echo kept > ~/kept; echo gone > /tmp/gone; sudo -n reboot").returncode in {
        0,
        255,
    }
    wait_for("a new boot id", lambda: board.boot_id != before)
    board.wait_until_up()
    done = ssh(board, "cat /proc/sys/kernel/random/boot_id ~/kept; ls /tmp")
    assert done.stdout.split() == [board.boot_id, "kept"]


def test_power_modes_are_set_and_kept(board: NamespaceBoard) -> None:
    assert ssh(board, "nvpmodel -q").stdout.splitlines()[:2] == [
        "NV Power Mode: MAXP_CORE_ARM",
        "3",
    ]
    assert "bad power mode 9" in ssh(board, "sudo -n nvpmodel -m 9").stdout
    assert ssh(board, "sudo -n nvpmodel -m 1").returncode == 0
    board.reboot(down_s=0.1)
    assert "MAXQ" in ssh(board, "sudo -n nvpmodel -q").stdout
    verbose = ssh(board, "sudo -n nvpmodel -q --verbose").stdout
    # the kernel snaps 1200000 kHz up to its table
    assert "scaling_max_freq: REAL_VAL: 1267200 CONF_VAL: 1200000" in verbose
    shown = ssh(board, "sudo -n jetson_clocks; sudo -n jetson_clocks --show").stdout
    assert "Online CPUs: 0,3-5" in shown
    assert "GPU MinFreq=905250000 MaxFreq=905250000" in shown


def test_a_frozen_board_takes_connections_and_says_nothing(board: NamespaceBoard) -> None:
    board.freeze()
    assert "banner exchange" in ssh(board, "true").stderr
    board.thaw()
    assert ssh(board, "true").returncode == 0


def test_the_cable(board: NamespaceBoard) -> None:
    board.link_down()
    assert ssh(board, "true").returncode == 255
    board.link_up()
    assert ssh(board, "true").returncode == 0


def test_disk_faults(make_board: MakeBoard) -> None:
    board = make_board(BoardOptions(disk="8m"))
    assert "No space left" in ssh(board, "head -c 20000000 /dev/zero > ~/big").stderr
    assert ssh(board, "rm ~/big").returncode == 0
    board.fill_disk()
    assert "No space left" in ssh(board, "echo x > ~/small").stderr
    board.free_disk()
    assert ssh(board, "echo x > ~/small").returncode == 0
    board.remount_read_only()
    assert "Read-only file system" in ssh(board, "echo x > ~/more").stderr
    assert board.read("/home/jet/small") == b"x\n"


def test_a_new_host_key_is_noticed(board: NamespaceBoard) -> None:
    assert ssh(board, "true").returncode == 0
    board.new_host_key()
    assert "IDENTIFICATION HAS CHANGED" in ssh(board, "true").stderr


def test_a_board_without_python(board: NamespaceBoard) -> None:
    assert ssh(board, "python3 -V").returncode == 0
    board.remove_python()
    assert ssh(board, "python3 -V").returncode == 127
    assert not board.exists("/usr/bin/python3")
    assert Path("/usr/bin/python3").exists()


def test_programs_run_at_the_hosts_place(lab: BoardLab) -> None:
    inside = lab.run_in_host_namespace(["ip", "-o", "addr"])
    assert b"198.18.255.254" in inside.stdout


def test_what_a_killed_process_left_is_removed(lab: BoardLab) -> None:
    script = (
        "import os; from tests.servers.namespaces import BoardLab\n"
        "lab = BoardLab().__enter__(); lab.up(1); os.kill(os.getpid(), 9)"
    )
    root = Path(__file__).parents[2]
    killed = subprocess.Popen([sys.executable, "-c", script], cwd=root)
    assert killed.wait(timeout=30) == -9
    left = STATE / f"farm{killed.pid}x1"
    machine = int((left / "board-1" / "machine.pid").read_text())
    with BoardLab():
        assert not left.exists()
    assert not list(Path("/run/netns").glob(f"farm{killed.pid}x*"))
    wait_for(
        "the board's end", lambda: not Path(f"/proc/{machine}").exists() or _is_zombie(machine)
    )
    assert lab.folder.exists()


def _is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_a_failure_to_boot_is_told(make_board: MakeBoard) -> None:
    with pytest.raises(RuntimeError, match="Bad configuration option: Nonsense"):
        make_board(BoardOptions(sshd_extra=("Nonsense yes",)))
