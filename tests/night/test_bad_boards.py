"""Boards, meters and payloads with one fault each, in one run: each is told, none harms another.

What a message must hold: the board, the step, what was seen, and what to do.
"""

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.night.faulty_lab import (
    BOARDS,
    FLOOD_MB,
    HEALTHY,
    MEMORY_MB,
    OUTPUT_MB,
    UNMETERED,
    UNREACHED,
    FaultyRun,
    faulty_run,
)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultyRun]:
    with faulty_run(tmp_path_factory.mktemp("faults")) as made:
        yield made


def assert_told(run: FaultyRun, board: str, *parts: str) -> None:
    """The message has all parts; each of the board's trials is pending and says why."""
    message = run.message(board)
    for part in parts:
        assert part in message
    trials = run.of(board)
    assert {one["state"] for one in trials} == {"pending"}
    assert {one["attempts"] for one in trials} == {0}
    for one in trials:
        assert parts[0] in str(one["reason"])


def log_of(run: FaultyRun, board: str, name: str) -> bytes:
    (trial,) = run.of(board, "trouble")
    found = run.workspace.root.glob(f"results/runs/*/attempts/{trial['trial']}-a*/{name}")
    return max(found).read_bytes()


def test_it_ends_with_1(run: FaultyRun) -> None:
    assert run.status == 1, run.text
    assert "internal error" not in run.text


def test_the_other_boards_finish_and_each_trial_ran_once(run: FaultyRun) -> None:
    for board in HEALTHY:
        trials = run.of(board)
        assert [one["state"] for one in trials] == ["done", "done"], board
        assert [one["attempts"] for one in trials] == [1, 1]
    counted = sorted(line.split(".", 1)[1] for line in run.workspace.counted())
    wanted = [f"{one['trial']}-a1" for board in HEALTHY for one in run.of(board)]
    assert counted == sorted(wanted)


def test_the_store_is_whole(run: FaultyRun) -> None:
    assert len(run.results) == 2 * len(BOARDS) + 4
    assert len({one["trial"] for one in run.results}) == len(run.results)
    shown = run.workspace.show()
    assert shown["trials"] == Counter(one["state"] for one in run.results)
    open_ones = [one for one in run.results if one["state"] != "done"]
    assert shown["unfinished"]
    assert [one["reason"] for one in open_ones] == [
        one["reason"]
        for one in shown["unfinished"]  # type: ignore[attr-defined]
    ]
    assert "" not in {one["reason"] for one in open_ones}


def test_runs_show_tells_what_is_not_done_and_why(run: FaultyRun) -> None:
    text = run.workspace.farm("runs", "show", "last")
    for board in (*UNREACHED, *UNMETERED, "exits", "hangs", "eats"):
        assert board in text
    assert "farm resume" in text


def test_a_board_that_is_off(run: FaultyRun) -> None:
    assert_told(run, "off", "connect: ", "refused the connection", "Is the SSH server running")


def test_a_host_key_that_is_not_known(run: FaultyRun) -> None:
    assert_told(
        run,
        "unknown-key",
        "connect: ",
        "is not known",
        "hosts_unknown",
        "SHA256:",
        "ssh-keygen -lf",
    )


def test_a_host_key_that_changed(run: FaultyRun) -> None:
    assert_told(
        run, "changed-key", "connect: ", "is not the enrolled one", "hosts_changed", "SHA256:"
    )


def test_a_board_without_python(run: FaultyRun) -> None:
    assert_told(run, "no-python", "start the agent: ", "no Python 3", "python9", "`python:`")


def test_a_refused_login(run: FaultyRun) -> None:
    assert_told(run, "no-login", "connect: ", "refused the login of 'farm'", "authorized_keys")


def test_a_meter_that_refuses(run: FaultyRun) -> None:
    assert_told(run, "meter-refuses", "meter", "plug-refuses", "refused")


def test_a_meter_that_never_answers(run: FaultyRun) -> None:
    assert_told(run, "meter-mute", "meter", "plug-mute", "0.5 s")


def test_a_payload_that_fails_is_not_run_a_third_time(run: FaultyRun) -> None:
    (trial,) = run.of("exits", "trouble")
    assert (trial["state"], trial["outcome"], trial["attempts"]) == ("failed", "failed", 2)
    assert trial["reason"] == "exit status 1"
    assert b"cannot find the frobnicator" in log_of(run, "exits", "stderr.log")
    text = run.workspace.farm("logs", "last", str(trial["trial"]), "--stderr")
    assert text.count("cannot find the frobnicator") == 2


def test_100_mb_of_output_are_cut_in_the_middle(run: FaultyRun) -> None:
    (trial,) = run.of("floods", "trouble")
    assert (trial["state"], trial["attempts"]) == ("done", 1)
    log = log_of(run, "floods", "stdout.log")
    assert log.startswith(b"the first line\n")
    assert log.endswith(b"the last line\n")
    left_out = FLOOD_MB * 2**20 + len(b"the first line\nthe last line\n") - OUTPUT_MB * 2**20
    assert f"\n[farm: {left_out} bytes left out here]\n".encode() in log
    assert len(log) < OUTPUT_MB * 2**20 + 100


def test_the_host_does_not_hold_the_output(run: FaultyRun) -> None:
    assert run.peak_mb < FLOOD_MB + 80


def test_a_payload_that_forks_and_hangs_is_ended_with_all_it_started(run: FaultyRun) -> None:
    (trial,) = run.of("hangs", "trouble")
    assert (trial["state"], trial["outcome"]) == ("failed", "timed_out")
    assert "over its time limit: longer than 6.0 s" in str(trial["reason"])
    root = run.workspace.board_root("hangs")
    pids = (root / "var" / "hanging").read_text().split()
    assert len(pids) == 7 * int(str(trial["attempts"]))
    assert not processes_of(root)


def test_a_payload_that_eats_memory(run: FaultyRun) -> None:
    (trial,) = run.of("eats", "trouble")
    assert (trial["state"], trial["outcome"], trial["attempts"]) == ("failed", "failed", 2)
    assert "over its memory limit: " in str(trial["reason"])
    assert f"MB resident, more than {MEMORY_MB} MB" in str(trial["reason"])


def processes_of(root: Path) -> list[str]:
    """Processes of a simulated board: all that it starts carry its mark."""
    mark = f"FARM_ROOT={root}".encode()
    found = []
    for path in Path("/proc").iterdir():
        if path.name.isdigit() and path.name != str(os.getpid()):
            try:
                marks = (path / "environ").read_bytes().split(b"\0")
            except OSError:  # gone meanwhile
                continue
            if mark in marks:
                found.append(path.name)
    return found
