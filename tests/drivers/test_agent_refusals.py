"""Whose no it was: sudo's, or the command's own. The recordings are those of sudo's parser."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.drivers.agent_refusals import check_sudo
from farm.errors import AgentError
from farm.interfaces.transport import CommandResult
from farm.model.board import Board
from tests.recording_cases import cases, meant, printed

BOARD = Board(name="tx2-01", profile="jetson-tx2", host="192.0.2.1", user="nvidia")
WARNINGS = (
    "sudo: unable to resolve host board1",
    "sudo: unable to resolve host board1: Name or service not known",
    "sudo: setrlimit(RLIMIT_CORE): Operation not permitted",
    "sudo: unable to mkdir /run/sudo/ts: Read-only file system",
    "/bin/bash: warning: setlocale: LC_ALL: cannot change locale (en_US.UTF-8)",
)
REFUSALS = (
    "sudo: a password is required",
    "sudo: sorry, you must have a tty to run sudo",
    "sudo: no tty present and no askpass program specified",
    "sudo: Ein Passwort ist notwendig",
    "sudo: パスワードが必要です",
    "Sorry, user nvidia is not allowed to execute '/sbin/reboot' as root on board1.",
    "sudo: I'm sorry nvidia. I'm afraid I can't do that",
)


def ended(status: int, stderr: str, stdout: str = "") -> CommandResult:
    argv = ("nvpmodel", "-m", "0")
    return CommandResult(argv, status, stdout.encode(), stderr.encode(), 0.1)


@pytest.mark.parametrize("path", cases("sudo", "refused_"))
def test_recorded_complaints(path: Path) -> None:
    expected = meant(path)
    result = ended(expected["exit_status"], printed(path))
    if expected["complaint"] in (None, "no_command"):
        check_sudo(result, BOARD)
        return
    with pytest.raises(AgentError) as caught:
        check_sudo(result, BOARD)
    assert caught.value.step == "run nvpmodel as root"
    assert caught.value.seen.removeprefix("sudo: ") == expected["line"].removeprefix("sudo: ")
    assert "farm boards sudoers tx2-01" in caught.value.remedy


@pytest.mark.parametrize(
    ("status", "stderr", "remedy"),
    [
        (127, "sudo: No such file or directory", "install sudo"),
        (1, "sudo: effective uid is not 0, is sudo installed setuid root?", "setuid"),
    ],
)
def test_where_no_rule_would_help_another_remedy_is_told(
    status: int, stderr: str, remedy: str
) -> None:
    with pytest.raises(AgentError) as caught:
        check_sudo(ended(status, stderr), BOARD)
    assert remedy in caught.value.remedy
    assert "sudoers" not in caught.value.remedy


@given(
    warnings=st.lists(st.sampled_from(WARNINGS), max_size=3),
    own=st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), max_size=40),
    status=st.integers(0, 255),
)
def test_a_commands_own_failure_is_never_taken_for_sudos(
    warnings: list[str], own: str, status: int
) -> None:
    stderr = "\n".join((*warnings, f"NVPM ERROR: {own}"))
    check_sudo(ended(status, stderr), BOARD)
    check_sudo(ended(status, "\n".join(warnings)), BOARD)


@given(warnings=st.lists(st.sampled_from(WARNINGS), max_size=3), refusal=st.sampled_from(REFUSALS))
def test_a_refusal_is_seen_behind_any_warnings(warnings: list[str], refusal: str) -> None:
    stderr = "\n".join((*warnings, refusal)) + "\n"
    with pytest.raises(AgentError) as caught:
        check_sudo(ended(1, stderr), BOARD)
    assert caught.value.seen.startswith("sudo:")  # so that it can be told from other errors
    assert refusal.removeprefix("sudo: ") in caught.value.seen
    for status in (0, 2, 255):  # sudo itself ends with 1
        check_sudo(ended(status, stderr), BOARD)


def test_words_that_are_not_known_count_only_where_nothing_ran() -> None:
    unknown = "sudo: novel warning\n"
    with pytest.raises(AgentError, match="novel"):
        check_sudo(ended(1, unknown), BOARD)
    check_sudo(ended(1, unknown, "NV Power Mode: MAXN\n"), BOARD)
    check_sudo(ended(1, unknown + "cannot open the conf\n"), BOARD)
