"""The simulated boards' tools print what the real ones were seen to print."""

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from farm.drivers.board_facts.sudo import SudoComplaint, parse_sudo_listing, sudo_complaint
from farm.model.board import Board
from farm.simulation.board_root import boot_files, build_board_root
from tests.simulation.board_shell import BoardShell
from tests.simulation.lab_client import PROFILES

RECORDINGS = Path(__file__).parents[1] / "recordings"


@pytest.fixture
def make_shell(make_board: Callable[..., Board], tmp_path: Path) -> Callable[[str], BoardShell]:
    def make(profile: str) -> BoardShell:
        root = tmp_path / profile
        build_board_root(root, make_board("board", profile), PROFILES[profile])
        boot_files(root, PROFILES[profile], "boot-1")
        return BoardShell(root)

    return make


@pytest.fixture
def tx2(make_shell: Callable[[str], BoardShell]) -> BoardShell:
    return make_shell("jetson-tx2")


@pytest.fixture
def nano(make_shell: Callable[[str], BoardShell]) -> BoardShell:
    return make_shell("jetson-nano")


def recorded(board: str, name: str) -> str:
    return (RECORDINGS / board / "simulated-tools" / f"{name}.txt").read_text()


def lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines()]


def without_present_clocks(text: str) -> list[str]:
    """Present frequencies are of the moment."""
    return lines(re.sub(r"CurrentFreq=\d+", "CurrentFreq=N", text))


def shape(text: str) -> list[str]:
    """The line with every number as N."""
    return [re.sub(r"\d+(\.\d+)?", "N", line) for line in lines(text)]


def test_tx2_query_of_locked_board_is_as_recorded(tx2: BoardShell) -> None:
    tx2("sudo -n nvpmodel -m 3 && sudo -n jetson_clocks")
    printed = tx2("sudo -n nvpmodel -q --verbose")
    assert lines(printed) == lines(recorded("jetson-tx2", "nvpmodel_q_verbose_locked"))


def test_tx2_clocks_are_shown_as_recorded(tx2: BoardShell) -> None:
    tx2("sudo -n nvpmodel -m 0; sudo -n nvpmodel -m 3")
    printed = tx2("sudo -n jetson_clocks --show")
    wanted = recorded("jetson-tx2", "jetson_clocks_show")
    assert without_present_clocks(printed) == without_present_clocks(wanted)


def test_nano_query_is_as_recorded(nano: BoardShell) -> None:
    def known(text: str) -> list[str]:
        # That board printed a fan line, had one more clock, and an older kernel's top clock.
        return [
            line.replace("1479000", "1428000")
            for line in lines(text)
            if "CVNAS" not in line and "fan mode" not in line
        ]

    printed = nano("sudo -n nvpmodel -q --verbose")
    assert known(printed) == known(recorded("jetson-nano", "nvpmodel_q_verbose"))


def test_nano_mode_table_is_as_recorded(nano: BoardShell) -> None:
    printed = nano("nvpmodel -p --verbose")
    assert lines(printed) == lines(recorded("jetson-nano", "nvpmodel_p_verbose"))


def test_nano_locked_clocks_are_shown_as_recorded(nano: BoardShell) -> None:
    nano("sudo -n nvpmodel -m 1; sudo -n jetson_clocks --fan")
    wanted = recorded("jetson-nano", "jetson_clocks_show_locked")
    wanted = wanted.replace("jetson-nano", "NVIDIA Jetson Nano Developer Kit")
    assert lines(nano("sudo -n jetson_clocks --show")) == lines(wanted)


def test_nano_store_lock_restore(nano: BoardShell) -> None:
    nano("sudo -n jetson_clocks --store")
    before = nano("cat $FARM_ROOT/root/l4t_dfs.conf")
    assert lines(before) == lines(recorded("jetson-nano", "store_before"))
    nano("sudo -n jetson_clocks --fan; sudo -n jetson_clocks --store /root/locked")
    locked = nano("cat $FARM_ROOT/root/locked")
    assert lines(locked) == lines(recorded("jetson-nano", "store_locked"))
    nano("sudo -n jetson_clocks --restore")
    shown = nano("sudo -n jetson_clocks --show")
    wanted = recorded("jetson-nano", "jetson_clocks_show")
    assert without_present_clocks(shown) == without_present_clocks(wanted)


@pytest.mark.parametrize(
    ("profile", "command", "name"),
    [
        ("jetson-tx2", "sudo -n tegrastats --interval 50", "tegrastats_root"),
        ("jetson-nano", "tegrastats", "tegrastats_nonroot"),
    ],
)
def test_tegrastats_has_the_recorded_form(
    make_shell: Callable[[str], BoardShell], profile: str, command: str, name: str
) -> None:
    shell = make_shell(profile)
    if profile == "jetson-tx2":
        shell("sudo -n nvpmodel -m 0")
    printed = shape(shell.first_line(command))
    assert printed
    assert set(printed) == set(shape(recorded(profile, name)))


def test_tegrastats_of_tx2_shows_offline_cores(tx2: BoardShell) -> None:
    tx2("sudo -n nvpmodel -m 1")
    printed = shape(tx2.first_line("tegrastats"))
    recording = shape(recorded("jetson-tx2", "tegrastats_nonroot"))[0]
    assert printed[0] == recording.replace("(lfb NxNMB)", "(lfb NxNMB) SWAP N/NMB (cached NMB)")


def test_tegrastats_tells_the_physics_state(tx2: BoardShell) -> None:
    state = '{"power_w": 10.0, "temperature_c": 51.26, "busy_cores": 3.0, "is_loaded": true}'
    (tx2.root / "run/farm-sim/state.json").write_text(state)
    line = tx2.first_line("sudo -n tegrastats")
    assert "VDD_IN 8500/8500 " in line
    assert "thermal@51.3C" in line
    assert "GR3D_FREQ 99%@1134" in line
    assert "CPU [50%@345," in line


def test_tegrastats_can_be_started_and_stopped(tx2: BoardShell) -> None:
    tx2("tegrastats --start --interval 20 --logfile $HOME/log >/dev/null 2>&1")
    deadline = 500
    while not (tx2.root / "home/log").exists() and deadline:
        tx2("sleep 0.02")
        deadline -= 1
    pid = int(tx2.file("run/farm-sim/tegrastats.pid"))
    assert tx2.full("tegrastats --stop").returncode == 0
    while Path(f"/proc/{pid}").exists() and deadline:
        tx2("sleep 0.02")
        deadline -= 1
    assert not Path(f"/proc/{pid}").exists()
    assert "VDD_IN" in tx2.file("home/log")


def test_mode_is_set_read_back_and_stored(tx2: BoardShell) -> None:
    assert tx2("nvpmodel -q").splitlines()[:2] == ["NV Power Mode: MAXP_CORE_ALL", "2"]
    done = tx2.full("sudo -n nvpmodel -m 1")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert tx2("nvpmodel -q").splitlines()[:2] == ["NV Power Mode: MAXQ", "1"]
    assert tx2.file("var/lib/nvpmodel/status") == "pmode:0001"
    assert tx2.file("sys/devices/system/cpu/cpu1/online") == "0"
    assert tx2.file("sys/devices/system/cpu/online") == "0,3-5"
    assert tx2.file("sys/devices/system/cpu/cpu5/cpufreq/scaling_max_freq") == "1267200"


def test_mode_survives_a_boot_and_the_lock_does_not(tx2: BoardShell) -> None:
    tx2("sudo -n nvpmodel -m 0 && sudo -n jetson_clocks")
    locked = tx2.file("sys/devices/system/cpu/cpu0/cpufreq/scaling_min_freq")
    boot_files(tx2.root, PROFILES["jetson-tx2"], "boot-2")
    assert tx2("nvpmodel -q").splitlines()[0] == "NV Power Mode: MAXN"
    assert locked == "2035200"
    assert tx2.file("sys/devices/system/cpu/cpu0/cpufreq/scaling_min_freq") == "345600"
    assert tx2.file("proc/sys/kernel/random/boot_id") == "boot-2"


def test_bad_mode(tx2: BoardShell) -> None:
    done = tx2.full("sudo -n nvpmodel -m 9")
    assert done.stderr == "NVPM ERROR: request for bad power mode 9\n"
    assert tx2("nvpmodel -q").splitlines()[1] == "2"


def test_without_root_nothing_is_set_whatever_the_exit_status_says(tx2: BoardShell) -> None:
    done = tx2.full("nvpmodel -m 0")
    assert done.returncode == 0
    assert "NVPM ERROR: Error opening /sys/devices/system/cpu/cpu1/online: 13" in done.stderr
    assert "optMask is 1, no request for power mode" in done.stderr
    assert tx2("nvpmodel -q").splitlines()[1] == "2"
    asked = tx2.full("nvpmodel -q")
    assert "Error opening /sys/kernel/nvpmodel_emc_cap/emc_iso_cap: 13" in asked.stderr
    clocks = tx2.full("jetson_clocks")
    assert clocks.returncode == 1
    assert clocks.stdout == "Error: Run this script(/usr/bin/jetson_clocks) as a root user\n"


def test_damaged_status_file_means_the_default(tx2: BoardShell) -> None:
    (tx2.root / "var/lib/nvpmodel/status").write_text("pmode:00xx")
    assert tx2("nvpmodel -q").splitlines()[0] == "NV Power Mode: MAXP_CORE_ALL"


def test_sudo_keeps_words_and_exit_status(tx2: BoardShell) -> None:
    done = tx2.full("sudo -n -- sh -c 'echo \"$1|$2\"; exit 5' x 'a b' '$HOME'")
    assert (done.returncode, done.stdout) == (5, "a b|$HOME\n")
    assert tx2("id -u; sudo -n id -u") == "1000\n0\n"
    assert tx2.full("sudo -n no-such-command").returncode == 127


@pytest.mark.parametrize(
    ("command", "request_text"),
    [
        ("reboot", "reboot"),
        ("systemctl reboot", "reboot"),
        ("shutdown -r now", "reboot"),
        ("poweroff", "power_cut"),
        ("shutdown -h now", "power_cut"),
    ],
)
def test_commands_that_end_the_system_ask_the_lab(
    tx2: BoardShell, command: str, request_text: str
) -> None:
    assert tx2.full(command).returncode == 1
    assert not (tx2.root / "run/farm-sim/request").exists()
    assert tx2.full(f"sudo -n {command}").returncode == 0
    assert tx2.file("run/farm-sim/request") == request_text


def test_files_that_identify_the_board(
    tx2: BoardShell, make_shell: Callable[[str], BoardShell]
) -> None:
    model = (tx2.root / "proc/device-tree/model").read_bytes()
    assert model == b"quill\0"
    compatible = (tx2.root / "sys/firmware/devicetree/base/compatible").read_bytes()
    assert compatible.split(b"\0")[0] == b"nvidia,p2597-0000+p3310-1000"
    assert compatible.endswith(b"\0")
    assert tx2.file("etc/nv_tegra_release").startswith("# R32 (release), REVISION: 6.1, GCID: ")
    assert tx2.file("sys/devices/system/cpu/present") == "0-5"
    zcu104 = make_shell("zcu104")
    assert (zcu104.root / "proc/device-tree/model").read_bytes() == b"ZynqMP ZCU104\0"
    assert not (zcu104.root / "etc/nv_tegra_release").exists()
    assert zcu104.file("sys/devices/system/cpu/online") == "0-3"
    assert zcu104.full("nvpmodel -q").returncode == 127
    assert os.access(zcu104.root / "etc/farm-simulated", os.R_OK)


def test_sudo_lists_what_it_allows(tx2: BoardShell) -> None:
    listing = parse_sudo_listing(tx2("sudo -n -l"))
    assert listing.permission(("/usr/sbin/nvpmodel", "-m", "0")) == "free"
    assert tx2("sudo -n -l -- nvpmodel -m 0").split()[1:] == ["-m", "0"]
    unknown = tx2.full("sudo -n -l -- no-such-command")
    assert (unknown.returncode, unknown.stdout) == (1, "")
    assert sudo_complaint(unknown.returncode, unknown.stderr) is SudoComplaint.NO_COMMAND
