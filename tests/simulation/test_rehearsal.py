"""Each fault of the simulated lab in a night of its own: what a run makes of it."""

from collections.abc import Iterator

import pytest

from tests.simulation.rehearsal import FAULTS, Rehearsal, rehearsed

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rehearsal]:
    with rehearsed(tmp_path_factory.mktemp("rehearsal")) as run:
        yield run


def test_every_fault_was_there_and_nothing_broke(night: Rehearsal) -> None:
    assert "internal error" not in night.text
    assert "Traceback" not in night.text
    for board in FAULTS:
        events = night.events(board)
        assert events[:2] == ["planned", "begin"], (board, events)
        assert "refused" not in events


@pytest.mark.parametrize("board", ["link_drop", "half_open", "hang"])
def test_a_link_that_dies_while_the_payload_runs_costs_nothing(
    night: Rehearsal, board: str
) -> None:
    assert night.of(board)["state"] == "done", night.said_of(board)
    assert "on the board it is lost" not in night.said_of(board)
    assert night.starts(board) == night.of(board)["attempts"]  # nothing ran twice untold


@pytest.mark.parametrize("board", ["latency", "packet_loss", "slow_board", "clock_jump"])
def test_what_only_takes_longer_is_waited_for(night: Rehearsal, board: str) -> None:
    assert night.of(board)["state"] == "done", night.said_of(board)


@pytest.mark.parametrize("board", ["reboot", "reboot_loop", "power_loss"])
def test_an_attempt_that_a_boot_ended_is_lost_and_the_trial_is_not(
    night: Rehearsal, board: str
) -> None:
    assert night.of(board)["state"] == "done", night.said_of(board)
    assert int(str(night.of(board)["attempts"])) >= 2
    assert "the board rebooted or its supervisor died" in night.said_of(board)


def test_another_host_key_is_never_trusted(night: Rehearsal) -> None:
    assert night.of("wrong_host_key")["state"] == "pending"
    assert night.of("wrong_host_key")["attempts"] == 0
    assert "is not the enrolled one" in night.said_of("wrong_host_key")
    assert "farm boards enroll wrong_host_key" in night.text


def test_a_payload_that_the_kernel_killed_is_told_and_run_again(night: Rehearsal) -> None:
    assert night.of("payload_oom")["state"] == "done", night.said_of("payload_oom")
    assert int(str(night.of("payload_oom")["attempts"])) >= 2
    assert "killed by signal 9" in night.said_of("payload_oom")
    assert "memory ran out" in night.said_of("payload_oom")


def test_a_hot_boards_result_is_suspect(night: Rehearsal) -> None:
    verdict = night.of("throttle")["verdict"]
    assert isinstance(verdict, dict)
    assert verdict["status"] == "suspect"
    assert [reason["code"] for reason in verdict["reasons"]] == ["throttled"]


def test_without_sudo_what_needs_no_root_still_runs(night: Rehearsal) -> None:
    assert night.of("sudo_gone")["state"] == "done", night.said_of("sudo_gone")


@pytest.mark.parametrize("board", ["meter_frozen", "meter_zero", "meter_gone", "meter_slow"])
def test_what_a_faulty_meter_read_is_no_result(night: Rehearsal, board: str) -> None:
    assert night.starts(board) >= 2, night.said_of(board)
    assert "(invalid)" in night.said_of(board)
    assert "fresh update" in night.said_of(board)
