"""Each bad manner that the inventory can give to a simulated Jetson."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import ValidationError

from farm.drivers.power_modes.jetson_clocks import parse_clocks
from farm.drivers.power_modes.nvpmodel_output import (
    Meaning,
    parse_query,
    parse_set_output,
    parse_values,
)
from farm.model.board import Board, BoardSimulation, Quirk
from tests.simulation.board_shell import SHIPPED, BoardShell, boot_board


@pytest.fixture
def make(make_board: Callable[..., Board], tmp_path: Path) -> Callable[..., BoardShell]:
    """Boot a board of a profile with quirks."""

    def boot(profile: str, *quirks: Quirk) -> BoardShell:
        board = make_board("b", profile, simulation=BoardSimulation(quirks=quirks))
        return boot_board(board, tmp_path / profile, SHIPPED[profile])

    return boot


def mode_of(shell: BoardShell) -> str:
    answer = parse_query(shell("nvpmodel -q"))
    assert answer is not None
    return answer.name


def test_unknown_quirk_is_refused() -> None:
    assert BoardSimulation.model_validate({"quirks": ["no_sudo"]}).quirks == (Quirk.NO_SUDO,)
    with pytest.raises(ValidationError, match="quirks"):
        BoardSimulation.model_validate({"quirks": ["no_such"]})


def test_prompt_for_current(make: Callable[..., BoardShell]) -> None:
    shell = make("jetson-xavier-nx", Quirk.PROMPT_FOR_CURRENT)
    done = shell.ask("sudo -n nvpmodel -m 5", "")
    assert parse_set_output(done.stdout).meaning is Meaning.BAD_INPUT
    assert parse_set_output(shell.ask("sudo -n nvpmodel -m 4", "").stdout).outcome == "done"


def test_refuse_mode(make: Callable[..., BoardShell]) -> None:
    shell = make("jetson-tx2", Quirk.REFUSE_MODE)
    done = shell.ask("sudo -n nvpmodel -m 0", "")
    assert parse_set_output(done.stdout).meaning is Meaning.NO_DEVICE
    assert (done.returncode, mode_of(shell)) == (255, "MAXP_CORE_ALL")
    assert shell.ask("sudo -n nvpmodel -m 2", "").stdout == ""


def test_refuse_return_as_orin_nano_4gb_does(make: Callable[..., BoardShell]) -> None:
    shell = make("jetson-orin-nano-4gb", Quirk.REFUSE_RETURN)
    assert shell.ask("sudo -n nvpmodel -m 1", "").stdout == ""
    done = shell.ask("sudo -n nvpmodel -m 0", "")
    assert "Error writing 2 to /sys/devices/gpu.0/fbp_pg_mask: 19\n" in done.stdout
    report = parse_set_output(done.stdout)
    assert (report.meaning, report.outcome) == (Meaning.NO_DEVICE, "failed")
    assert mode_of(shell) == "7W_AI"


def test_exit_zero_with_errors(make: Callable[..., BoardShell]) -> None:
    shell = make("jetson-nano", Quirk.EXIT_ZERO_WITH_ERRORS, Quirk.REFUSE_MODE)
    for mode_id in (1, 9):
        done = shell.ask(f"sudo -n nvpmodel -m {mode_id}", "")
        assert done.returncode == 0
        assert "NVPM ERROR" in done.stdout
    assert mode_of(shell) == "MAXN"


def test_boot_service_failed(make: Callable[..., BoardShell]) -> None:
    shell = make("jetson-agx-orin-64gb", Quirk.BOOT_SERVICE_FAILED)
    assert mode_of(shell) == "MODE_30W"
    assert shell.file("sys/devices/system/cpu/online") == "0-11"
    values = {value.arg: value for value in parse_values(shell("nvpmodel -q --verbose"))}
    assert (values["TPC_PG_MASK"].real, values["TPC_PG_MASK"].conf) == ("0", "240")


def test_gpu_unused_switches_live(make: Callable[..., BoardShell]) -> None:
    shell = make("jetson-agx-xavier", Quirk.GPU_UNUSED)
    assert shell.ask("sudo -n nvpmodel -m 1", "").stdout == ""
    assert shell.file("sys/devices/gpu.0/tpc_pg_mask") == "5"
    (shell.root / "run/farm-sim/gpu-used").write_text("1")
    done = shell.ask("sudo -n nvpmodel -m 0", "")
    assert parse_set_output(done.stdout).outcome == "needs_reboot"


def test_slow_query_hangs_only_while_the_gpu_is_full(make: Callable[..., BoardShell]) -> None:
    shell = make("jetson-thor-t5000", Quirk.SLOW_QUERY)
    assert mode_of(shell) == "120W"
    state = '{"power_w": 90.0, "temperature_c": 51.0, "busy_cores": 1.0, "is_loaded": true}'
    (shell.root / "run/farm-sim/state.json").write_text(state)
    assert shell.full("timeout 2 nvpmodel -q").returncode == 124


def test_fan_warning_comes_before_the_mode(make: Callable[..., BoardShell]) -> None:
    shell = make("jetson-agx-orin-32gb", Quirk.FAN_WARNING)
    assert shell("nvpmodel -q").splitlines()[0] == "NVPM WARN: fan mode is not set!"
    assert mode_of(shell) == "MODE_30W"
    fine = make("jetson-xavier-nx")
    answer = parse_query(fine("nvpmodel -q"))
    assert answer is not None
    assert (answer.name, answer.fan_mode) == ("MODE_10W_DESKTOP", "quiet")


def test_lock_without_effect(make: Callable[..., BoardShell]) -> None:
    shell = make("jetson-orin-nano-8gb", Quirk.LOCK_WITHOUT_EFFECT)
    assert shell.full("sudo -n jetson_clocks").returncode == 0
    assert not parse_clocks(shell("sudo -n jetson_clocks --show")).is_locked


def test_no_sudo(make: Callable[..., BoardShell]) -> None:
    shell = make("jetson-nano", Quirk.NO_SUDO)
    done = shell.full("sudo -n nvpmodel -m 1")
    assert done.returncode == 1
    assert parse_set_output(done.stderr).meaning is Meaning.SUDO_PASSWORD
    assert mode_of(shell) == "MAXN"
